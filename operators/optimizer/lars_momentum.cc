// lars_momentum: momentum with a learning rate scaled by the ratio of the parameter's norm to the gradient's
// norm.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/norm.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
rate        = LearningRate * lars_coeff * |Param| / (|Grad| + lars_weight_decay * |Param|)
VelocityOut = mu * Velocity + rate * (Grad + lars_weight_decay * Param)
ParamOut    = Param - VelocityOut

|x| is the root of the sum of squares of the whole tensor. Where one of the norms is 0, rate is
LearningRate. You, Gitman, Ginsburg: "Large batch training of convolutional networks", 2017.)";

template <typename Device, typename T>
class LarsMomentumKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, velocity_, rate_, param_out_, velocity_out_);
    mu_ = static_cast<T>(k.Attr<float>("mu"));
    coefficient_ = static_cast<T>(k.Attr<float>("lars_coeff"));
    decay_ = static_cast<T>(k.Attr<float>("lars_weight_decay"));
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.LoadInOnePiece(k));
    const T* const param = k[param_].template Data<T>();
    const T* const velocity = k[velocity_].template Data<T>();
    T* const param_out = k[param_out_].template Data<T>();
    T* const velocity_out = k[velocity_out_].template Data<T>();
    T rate = *k[rate_].template Data<T>();
    const T param_norm = Norm<T>(k[param_].template Span<T>());
    const T grad_norm = Norm(grad_.values());
    if (param_norm != 0 && grad_norm != 0)
      rate *= coefficient_ * param_norm / (grad_norm + decay_ * param_norm);
    const T mu = mu_, decay = decay_;
    grad_.ForEach([=](std::int64_t i, T g) {
      const T v = mu * velocity[i] + rate * (g + decay * param[i]);
      velocity_out[i] = v;
      param_out[i] = param[i] - v;
    });
    return OkStatus();
  }

 private:
  In<"Param"> param_;
  In<"Velocity"> velocity_;
  In<"LearningRate"> rate_;
  Out<"ParamOut"> param_out_;
  Out<"VelocityOut"> velocity_out_;
  Gradient<T> grad_;
  T mu_ = 0, coefficient_ = 0, decay_ = 0;
};

}  // namespace

void RegisterLarsMomentum(OpRegistry& ops) {
  ops.Add("lars_momentum")
      .Doc("Momentum, scaled layer by layer.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("Velocity", "the running sum of steps; shaped like Param", SameTypeAs("Param"))
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("VelocityOut", "names Velocity's variable", SameTypeAs("Param"))
      .RequiredAttr("mu", AttrKind::kFloat, "how much of the running sum is kept")
      .Attr("lars_coeff", 0.001f, "how far a step may go, as a part of the parameter's norm")
      .Attr("lars_weight_decay", 0.0005f, "the pull towards zero")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("Velocity", "the running sum of steps", StateSlicing::kWithParam, "velocity")
      .NoGrad()
      .Kernel<Cpu, LarsMomentumKernel, float, double>();
}

}  // namespace penstock
