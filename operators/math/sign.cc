// sign: -1, 0 or 1 for each element.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = 1 where X > 0, -1 where X < 0, otherwise X itself (zero or NaN). The gradient is zero.)";

template <typename Device, typename T>
class SignKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] > T{0} ? T{1} : x[i] < T{0} ? T{-1} : x[i];
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

Result<std::vector<Op>> SignGrad(const GradRequest& request) {
  const std::string dx = request.grad_of(request.forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("scale");
  grad.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))}).AddOutput("Out", {dx});
  return std::vector<Op>{std::move(grad.Set("scale", 0.0f))};
}

}  // namespace

void RegisterSign(OpRegistry& ops) {
  ops.Add("sign")
      .Doc("The sign of each element.", kDoc)
      .Input("X", "any shape", Floats())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .Elementwise()
      .Kernel<Cpu, SignKernel, float, double>()
      .GradMadeBy(SignGrad);
}

}  // namespace penstock
