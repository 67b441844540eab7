// minus: the difference of two tensors of one shape.
#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X - Y. Use elementwise_sub to broadcast Y.)";

Status InferMinus(InferContext& c) {
  if (!Compatible(c.ShapeOf("X"), c.ShapeOf("Y")))
    return c.Error("Y (", c.ShapeOf("Y"), ") must have the shape of X (", c.ShapeOf("X"), ")");
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class MinusKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    return RequireShape(k, "Y", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] - y[i];
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
};

// As in Fluid, two scale ops; there is no minus_grad.
Result<std::vector<Op>> MakeMinusGrad(const GradRequest& request) {
  const std::string dout = request.grad_of(request.forward.OutputName("Out"));
  std::vector<Op> ops;
  for (const auto& [slot, factor] : {std::pair("X", 1.0f), std::pair("Y", -1.0f)}) {
    const std::string grad = request.grad_of(request.forward.InputName(slot));
    if (grad.empty()) continue;
    Op op("scale");
    op.AddInput("X", {dout}).AddOutput("Out", {grad}).Set("scale", factor);
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace

void RegisterMinus(OpRegistry& ops) {
  ops.Add("minus")
      .Doc("The difference of two tensors.", kDoc)
      .Input("X", "any shape", Floats())
      .Input("Y", "shaped like X", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .InferShape(InferMinus)
      .Elementwise()
      .Kernel<Cpu, MinusKernel, float, double>()
      .GradMadeBy(MakeMinusGrad);
}

}  // namespace penstock
