// increment: adds a step to a counter.
#include <type_traits>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/float_attr.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X + step, for one element; Out is usually X itself. Integers add the truncated step, and wrap around. A
counter has no gradient. Instead, the block of a gradient decrements it, so that the ops there read the value
that it had in the forward run.)";

Status InferIncrement(InferContext& c) {
  if (!Compatible(c.ShapeOf("X").Count(), 1)) {
    return c.Error("X (", c.ShapeOf("X"), ") must hold one element");
  }
  return c.ShareAll("X", "Out");
}

template <typename T>
T Plus(T x, T step) {
  if constexpr (std::is_integral_v<T>) {
    using Wrapping = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Wrapping>(x) + static_cast<Wrapping>(step));
  } else {
    return x + step;
  }
}

template <typename Device, typename T>
class IncrementKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    step_ = ElementFrom<T>(k.Attr<float>("step"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    *k[out_].template Data<T>() = Plus(*k[x_].template Data<T>(), step_);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  T step_ = 1;
};

// In place, the gradient decrements the counter. Otherwise Out differs from X by a constant.
Result<std::vector<Op>> IncrementGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  if (forward.InputName("X") == forward.OutputName("Out")) {
    Op back("increment");
    back.AddInput("X", forward.Output("Out")).AddOutput("Out", forward.Input("X"));
    back.Set("step", -forward.GetOr("step", 1.0f));
    return std::vector<Op>{std::move(back)};
  }
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op assign("assign");
  assign.AddInput("X", {request.grad_of(forward.OutputName("Out"))}).AddOutput("Out", {dx});
  return std::vector<Op>{std::move(assign)};
}

}  // namespace

void RegisterIncrement(OpRegistry& ops) {
  ops.Add("increment")
      .Doc("Adds a step to a counter.", kDoc)
      .Input("X", "one element", Numbers())
      .Output("Out", "one element; may be X", SameTypeAs("X"))
      .Attr("step", 1.0f, "the number to add")
      .InferShape(InferIncrement)
      .Elementwise()
      .Kernel<Cpu, IncrementKernel, float, double, std::int32_t, std::int64_t>()
      .GradMadeBy(IncrementGrad);
}

}  // namespace penstock
