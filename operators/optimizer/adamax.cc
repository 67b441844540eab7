// adamax: adam with the largest gradient seen in place of the average of squares.
#include <algorithm>
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
MomentOut  = beta1 * Moment + (1 - beta1) * Grad
InfNormOut = max(beta2 * InfNorm + epsilon, |Grad|)
ParamOut   = Param - LearningRate / (1 - Beta1Pow) * MomentOut / InfNormOut

Beta1Pow is beta1 to the power of the step, counted from 1. The op only reads it; a scale by beta1 follows the
updates. Kingma, Ba: "Adam: a method for stochastic optimization", ICLR 2015.)";

template <typename Device, typename T>
class AdamaxKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, rate_, moment_, norm_, beta1_pow_, param_out_, moment_out_, norm_out_);
    beta1_ = static_cast<T>(k.Attr<float>("beta1"));
    beta2_ = static_cast<T>(k.Attr<float>("beta2"));
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    const T* const moment = k[moment_].template Data<T>();
    const T* const norm = k[norm_].template Data<T>();
    const T rate = *k[rate_].template Data<T>() / (T{1} - *k[beta1_pow_].template Data<T>());
    T* const param_out = k[param_out_].template Data<T>();
    T* const moment_out = k[moment_out_].template Data<T>();
    T* const norm_out = k[norm_out_].template Data<T>();
    const T beta1 = beta1_, beta2 = beta2_, epsilon = epsilon_;
    grad_.ForEach([=](std::int64_t i, T g) {
      const T m = beta1 * moment[i] + (T{1} - beta1) * g;
      const T n = MaxOrNan(std::abs(g), beta2 * norm[i] + epsilon);
      moment_out[i] = m;
      norm_out[i] = n;
      param_out[i] = param[i] - rate * (m / n);
    });
    return OkStatus();
  }

 private:
  In<"Param"> param_;
  In<"LearningRate"> rate_;
  In<"Moment"> moment_;
  In<"InfNorm"> norm_;
  In<"Beta1Pow"> beta1_pow_;
  Out<"ParamOut"> param_out_;
  Out<"MomentOut"> moment_out_;
  Out<"InfNormOut"> norm_out_;
  Gradient<T> grad_;
  T beta1_ = 0, beta2_ = 0, epsilon_ = 0;
};

}  // namespace

void RegisterAdamax(OpRegistry& ops) {
  ops.Add("adamax")
      .Doc("Adam, scaled by the largest gradient seen.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Input("Moment", "running average of the gradient; shaped like Param", SameTypeAs("Param"))
      .Input("InfNorm", "the largest gradient seen, decaying; shaped like Param", SameTypeAs("Param"))
      .Input("Beta1Pow", "beta1 to the power of the step; one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("MomentOut", "names Moment's variable", SameTypeAs("Param"))
      .Output("InfNormOut", "names InfNorm's variable", SameTypeAs("Param"))
      .Attr("beta1", 0.9f, "how much of Moment is kept")
      .Attr("beta2", 0.999f, "how much of InfNorm is kept")
      .Attr("epsilon", 1e-8f, "keeps the divisor from zero")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("Moment", "running average of the gradient", StateSlicing::kWithParam, "moment")
      .State("InfNorm", "the largest gradient seen", StateSlicing::kWithParam, "inf_norm")
      .State({.slot = "Beta1Pow",
              .doc = "beta1 to the power of the step",
              .slicing = StateSlicing::kWhole,
              .accumulator = "beta1_pow_acc",
              .initial_attr = "beta1",
              .output = "-",
              .advance_attr = "beta1",
              .advance_scope = "adamx"})  // Fluid's own spelling
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, AdamaxKernel, float, double>();
}

}  // namespace penstock
