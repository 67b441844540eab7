// cast: converts elements to another type.
#include "framework/op/op_registry.h"
#include "operators/common/convert.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] is X[i] converted to element type out_dtype by C++ conversions: from float to integer truncates
towards zero, and a bool is true for any nonzero number. in_dtype is informative; the op uses the element
type of X.)";

class CastKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    convert_ = ConverterOf(k[x_].dtype, k[out_].dtype);
    if (convert_ != nullptr) return OkStatus();
    return Unimplemented("E-op-unimplemented", "cast: from ", DTypeName(k[x_].dtype), " to ",
                         DTypeName(k[out_].dtype), " is not supported");
  }
  Status Run(KernelRun& k) override {
    convert_(k[x_], k[out_]);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  Converter convert_ = nullptr;
};

// Converts the gradient back to the type of X.
Result<std::vector<Op>> CastGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("cast");
  grad.AddInput("X", {request.grad_of(forward.OutputName("Out"))}).AddOutput("Out", {dx});
  grad.Set("out_dtype", forward.GetOr<std::int32_t>("in_dtype", 0));
  grad.Set("in_dtype", forward.GetOr<std::int32_t>("out_dtype", 0));
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterCast(OpRegistry& ops) {
  ops.Add("cast")
      .Doc("Converts the elements of X to another type.", kDoc)
      .Input("X", "any shape", AnyType())
      .Output("Out", "shaped like X", TypeFromAttr("out_dtype"))
      .RequiredAttr("out_dtype", AttrKind::kInt, "the element type of Out, numbered as in Fluid")
      .RequiredAttr("in_dtype", AttrKind::kInt, "the element type of X")
      .Nan("NaN becomes the smallest integer of 32 or 64 bits, 0 for smaller integers, and true for bool.")
      .InferShape(SameShape("X", "Out"))
      .Elementwise()
      .KernelForAnyType<Cpu, CastKernel>()
      .GradMadeBy(CastGrad);
}

}  // namespace penstock
