// proximal_gd: a step against the gradient, then a pull towards 0.
#include <algorithm>
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/optimizer/gradient.h"
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
    rate_ = k.Input("LearningRate");
    param_out_ = k.Output("ParamOut");
    l1_ = static_cast<T>(k.Attr<float>("l1"));
    l2_ = static_cast<T>(k.Attr<float>("l2"));
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    const T rate = *k[rate_].template Data<T>();
    T* const out = k[param_out_].template Data<T>();
    const T l1 = l1_, l2 = l2_;
    grad_.ForEach([=](std::int64_t i, T g) {
      const T step = param[i] - rate * g;
      const T size = MaxOrNan(std::abs(step) - rate * l1, T{0});
      out[i] = std::copysign(size, step) / (T{1} + rate * l2);
    });
    return OkStatus();
  }

 private:
  Operand param_, rate_, param_out_;
  Gradient<T> grad_;
  T l1_ = 0, l2_ = 0;
};

}  // namespace

void RegisterProximalGd(OpRegistry& ops) {
  ops.Add("proximal_gd")
      .Doc("A step against the gradient, then a pull towards 0.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
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
