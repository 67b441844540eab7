// dpsgd: a step along a clipped gradient with noise, so that no single example can be told from the result.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "framework/op/op_registry.h"
#include "framework/runtime/random.h"
#include "operators/common/nan.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/norm.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
ParamOut = Param - LearningRate * (Grad / max(1, |Grad| / clip) + noise / batch_size)

|x| is the L2 norm of the whole tensor; noise is one number of the normal distribution with standard deviation
sigma, drawn in each step. A seed other than 0 starts a reproducible sequence. Abadi et al.: "Deep learning
with differential privacy", CCS 2016.)";

template <typename Device, typename T>
class DpsgdKernel : public Kernel {
 public:
  DpsgdKernel() : own_(1) {}
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, rate_, param_out_);
    clip_ = static_cast<T>(k.Attr<float>("clip"));
    batch_ = static_cast<T>(k.Attr<float>("batch_size"));
    sigma_ = static_cast<T>(k.Attr<float>("sigma"));
    source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
    if (const auto seed = k.Attr<std::int32_t>("seed"); seed != 0) {
      own_.Reseed(static_cast<std::uint64_t>(static_cast<std::int64_t>(seed)));
      source_ = &own_;
    }
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.LoadInOnePiece(k));
    const T* const param = k[param_].template Data<T>();
    const T rate = *k[rate_].template Data<T>();
    T* const out = k[param_out_].template Data<T>();
    const T scale = MaxOrNan(T{1}, Norm(grad_.values()) / clip_);
    const T noise = sigma_ == T{0} ? T{0} : sigma_ * Normal() / batch_;
    grad_.ForEach([=](std::int64_t i, T g) { out[i] = param[i] - rate * (g / scale + noise); });
    return OkStatus();
  }

 private:
  // In (0, 1].
  double Uniform() { return (static_cast<double>(source_->Next() >> 11) + 1.0) * 0x1p-53; }
  // Box and Muller's.
  T Normal() {
    const double radius = std::sqrt(-2.0 * std::log(Uniform()));
    return static_cast<T>(radius * std::cos(2.0 * std::numbers::pi * Uniform()));
  }

  In<"Param"> param_;
  In<"LearningRate"> rate_;
  Out<"ParamOut"> param_out_;
  Gradient<T> grad_;
  T clip_ = 1, batch_ = 1, sigma_ = 0;
  RandomSource own_;
  RandomSource* source_ = nullptr;
};

}  // namespace

void RegisterDpsgd(OpRegistry& ops) {
  ops.Add("dpsgd")
      .Doc("A step along a clipped gradient with noise.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Attr("clip", 10.0f, "the largest norm of a gradient", AtLeast(1e-30))
      .Attr("batch_size", 16.0f, "how many examples a gradient is made of", AtLeast(1e-30))
      .Attr("sigma", 1.0f, "the noise's standard deviation", AtLeast(0))
      .Attr("seed", 0, "0: from the process")
      .Affects({Effect::kRandom})
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .NoGrad()
      .Kernel<Cpu, DpsgdKernel, float, double>();
}

}  // namespace penstock
