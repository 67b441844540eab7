// lamb: adam with a step scaled by the ratio of the parameter's norm to the step's norm.
#include <cmath>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/moments.h"
#include "operators/optimizer/norm.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Moment1Out = beta1 * Moment1 + (1 - beta1) * Grad
Moment2Out = beta2 * Moment2 + (1 - beta2) * Grad^2
step       = Moment1Out / (sqrt(Moment2Out) + epsilon) + weight_decay * Param
ParamOut   = Param - LearningRate * |Param| / |step| * step

|x| is the L2 norm of the whole tensor; if one of the norms is 0, the factor |Param| / |step| is 1. The op has
Fluid's states Beta1Pow and Beta2Pow but does not read them. You et al.: "Large batch optimization for deep
learning", ICLR 2020.)";

template <typename Device, typename T>
class LambKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, rate_);
    moments_.Prepare(k);
    k.Bind(param_out_);
    decay_ = static_cast<T>(k.Attr<float>("weight_decay"));
    beta1_ = static_cast<T>(k.Attr<float>("beta1"));
    beta2_ = static_cast<T>(k.Attr<float>("beta2"));
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    step_ = k.Workspace(static_cast<std::size_t>(k[param_].shape.Count()) * sizeof(T));
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    T* const param_out = k[param_out_].template Data<T>();
    T* const step = reinterpret_cast<T*>(k.Workspace(step_));
    const std::int64_t count = k[param_].count();
    const T epsilon = epsilon_, decay = decay_;
    const MomentArrays<T> moments = moments_.At(k, beta1_, beta2_);
    if constexpr (std::is_same_v<T, float>) {
      grad_.Update(vec::LambStep{moments.ForVectors(), epsilon, decay, param, step});
    } else {
      grad_.ForEach([=](std::int64_t i, T g) {
        const auto [m1, m2] = moments.Move(i, g);
        step[i] = m1 / (std::sqrt(m2) + epsilon) + decay * param[i];
      });
    }
    const T param_norm = Norm<T>({param, static_cast<std::size_t>(count)});
    const T step_norm = Norm<T>({step, static_cast<std::size_t>(count)});
    T rate = *k[rate_].template Data<T>();
    if (param_norm != 0 && step_norm != 0) rate *= param_norm / step_norm;
    ForElements(count, StreamNs<T>(3), [=](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) param_out[i] = param[i] - rate * step[i];
    });
    return OkStatus();
  }

 private:
  In<"Param"> param_;
  In<"LearningRate"> rate_;
  Out<"ParamOut"> param_out_;
  MomentOperands moments_;
  Gradient<T> grad_;
  WorkspaceId step_;
  T decay_ = 0, beta1_ = 0, beta2_ = 0, epsilon_ = 0;
};

StateDef Power(const char* slot, const char* accumulator, const char* attr) {
  return {.slot = slot,
          .doc = "a power of a beta; not read",
          .slicing = StateSlicing::kWhole,
          .accumulator = accumulator,
          .initial_attr = attr,
          .output = "-",
          .device = "cpu"};
}

}  // namespace

void RegisterLamb(OpRegistry& ops) {
  ops.Add("lamb")
      .Doc("Adam, scaled layer by layer.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Input("Moment1", "running average of the gradient; shaped like Param", SameTypeAs("Param"))
      .Input("Moment2", "running average of its square; shaped like Param", SameTypeAs("Param"))
      .Input("Beta1Pow", "one element; not read", SameTypeAs("Param"))
      .Input("Beta2Pow", "one element; not read", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("Moment1Out", "names Moment1's variable", SameTypeAs("Param"))
      .Output("Moment2Out", "names Moment2's variable", SameTypeAs("Param"))
      .RequiredAttr("weight_decay", AttrKind::kFloat, "the pull towards zero")
      .Attr("beta1", 0.9f, "how much of Moment1 is kept")
      .Attr("beta2", 0.999f, "how much of Moment2 is kept")
      .Attr("epsilon", 1e-6f, "keeps the divisor from zero")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("Moment1", "running average of the gradient", StateSlicing::kWithParam, "moment1")
      .State("Moment2", "running average of its square", StateSlicing::kWithParam, "moment2")
      .State(Power("Beta1Pow", "beta1_pow_acc", "beta1"))
      .State(Power("Beta2Pow", "beta2_pow_acc", "beta2"))
      .NoGrad()
      .Kernel<Cpu, LambKernel, float, double>();
}

}  // namespace penstock
