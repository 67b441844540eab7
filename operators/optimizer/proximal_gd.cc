// proximal_gd: a step against the gradient, then a pull towards 0.
#include <algorithm>
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
step     = Param - LearningRate * Grad
ParamOut = sign(step) * max(|step| - LearningRate * l1, 0) / (1 + LearningRate * l2)

Duchi, Singer: "Efficient online and batch learning using forward backward splitting", JMLR 10, 2009.)";

template <typename Device, typename T>
class ProximalGdKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    param_ = k.Input("Param");
    grad_ = k.Input("Grad");
    rate_ = k.Input("LearningRate");
    param_out_ = k.Output("ParamOut");
    l1_ = static_cast<T>(k.Attr<float>("l1"));
    l2_ = static_cast<T>(k.Attr<float>("l2"));
    return RequireDenseGrad(k);
  }
  Status Run(KernelRun& k) override {
    const T* const param = k[param_].template Data<T>();
    const T* const grad = k[grad_].template Data<T>();
    const T rate = *k[rate_].template Data<T>();
    T* const out = k[param_out_].template Data<T>();
    const std::int64_t count = k[param_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      const T step = param[i] - rate * grad[i];
      const T size = std::max(std::abs(step) - rate * l1_, T{0});
      out[i] = std::copysign(size, step) / (T{1} + rate * l2_);
    }
    return OkStatus();
  }

 private:
  Operand param_, grad_, rate_, param_out_;
  T l1_ = 0, l2_ = 0;
};

}  // namespace

void RegisterProximalGd(OpRegistry& ops) {
  ops.Add("proximal_gd")
      .Doc("A step against the gradient, then a pull towards 0.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param", SameTypeAs("Param"))
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Attr("l1", 0.0f, "how strongly small values are made 0", AtLeast(0))
      .Attr("l2", 0.0f, "how strongly values are made smaller", AtLeast(0))
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, ProximalGdKernel, float, double>();
}

}  // namespace penstock
