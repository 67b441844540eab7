// cast: the same elements as another type.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = X[i] as element type out_dtype, by C++'s conversions: towards zero from floats to integers, and
from any number to bool by comparison with zero. in_dtype is a note for the reader; X's own type counts.)";

template <typename From, typename To>
void Convert(const Tensor& x, Tensor& out) {
  const From* const from = x.Data<From>();
  To* const to = out.Data<To>();
  const std::int64_t count = x.count();
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<To>(from[i]);  // int8 is a number here: NOLINT(bugprone-signed-char-misuse)
  }
}

template <typename Device, typename From>
class CastKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    if (x_.kind != VarKind::kTensor)
      return Unimplemented("E-op-rows", "cast: X (", x_.name, ") must be a dense tensor");
    switch (out_.dtype) {
      case DType::kBool:
        convert_ = Convert<From, bool>;
        break;
      case DType::kUInt8:
        convert_ = Convert<From, std::uint8_t>;
        break;
      case DType::kInt8:
        convert_ = Convert<From, std::int8_t>;
        break;
      case DType::kInt16:
        convert_ = Convert<From, std::int16_t>;
        break;
      case DType::kInt32:
        convert_ = Convert<From, std::int32_t>;
        break;
      case DType::kInt64:
        convert_ = Convert<From, std::int64_t>;
        break;
      case DType::kFp32:
        convert_ = Convert<From, float>;
        break;
      case DType::kFp64:
        convert_ = Convert<From, double>;
        break;
      default:
        return Unimplemented("E-op-unimplemented", "cast: to ", DTypeName(out_.dtype), " is not supported");
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    convert_(k[x_], k[out_]);
    return OkStatus();
  }

 private:
  Operand x_, out_;
  void (*convert_)(const Tensor&, Tensor&) = nullptr;
};

// Back to the type it came from.
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
      .Doc("The elements of X as another type.", kDoc)
      .Input("X", "any shape", AnyType())
      .Output("Out", "shaped like X", TypeFromAttr("out_dtype"))
      .RequiredAttr("out_dtype", AttrKind::kInt, "Out's element type, as Fluid numbers them")
      .RequiredAttr("in_dtype", AttrKind::kInt, "X's element type")
      .InferShape(SameShape("X", "Out"))
      .Elementwise()
      .KernelTypeFrom("X")
      .Kernel<Cpu, CastKernel, bool, std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
              float, double>()
      .GradMadeBy(CastGrad);
}

}  // namespace penstock
