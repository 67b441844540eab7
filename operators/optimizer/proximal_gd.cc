// proximal_gd, proximal_adagrad: a step against the gradient, then a pull towards 0.
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

constexpr char kAdagradDoc[] = R"(
MomentOut = Moment + Grad^2
step      = Param - LearningRate * Grad / sqrt(MomentOut)
ParamOut  = sign(step) * max(|step| - LearningRate * l1, 0) / (1 + LearningRate * l2)

An element whose gradients have all been 0 takes no step.

Duchi, Hazan, Singer: "Adaptive subgradient methods", JMLR 12, 2011.)";

// kScales: the step is divided by the root of what squares of gradients have added up to.
template <bool kScales>
struct Proximal {
  template <typename Device, typename T>
  class Update : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(param_, rate_, param_out_);
      if constexpr (kScales) {
        k.Bind(moment_, moment_out_);
      }
      l1_ = static_cast<T>(k.Attr<float>("l1"));
      l2_ = static_cast<T>(k.Attr<float>("l2"));
      return grad_.Prepare(k, WithoutGradient::kMoves);
    }
    Status Run(KernelRun& k) override {
      PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
      const T* const param = k[param_].template Data<T>();
      const T rate = *k[rate_].template Data<T>();
      T* const out = k[param_out_].template Data<T>();
      const T* const moment = kScales ? k[moment_].template Data<T>() : nullptr;
      T* const moment_out = kScales ? k[moment_out_].template Data<T>() : nullptr;
      const T l1 = l1_, l2 = l2_;
      grad_.ForEach([=](std::int64_t i, T g) {
        T scaled = g;
        if constexpr (kScales) {
          const T squares = moment[i] + g * g;
          moment_out[i] = squares;
          if (squares != T{0}) scaled = g / std::sqrt(squares);
        }
        const T step = param[i] - rate * scaled;
        const T size = MaxOrNan(std::abs(step) - rate * l1, T{0});
        out[i] = std::copysign(size, step) / (T{1} + rate * l2);
      });
      return OkStatus();
    }

   private:
    In<"Param"> param_;
    In<"LearningRate"> rate_;
    Out<"ParamOut"> param_out_;
    In<"Moment"> moment_;
    Out<"MomentOut"> moment_out_;
    Gradient<T> grad_;
    T l1_ = 0, l2_ = 0;
  };
};

OpDef& Declare(OpDef& def) {
  return def.Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Attr("l1", 0.0f, "how strongly small values are made 0", AtLeast(0))
      .Attr("l2", 0.0f, "how strongly values are made smaller", AtLeast(0))
      .InferShape(InferUpdate);
}

}  // namespace

void RegisterProximalGd(OpRegistry& ops) {
  Declare(ops.Add("proximal_gd").Doc("A step against the gradient, then a pull towards 0.", kDoc))
      .Optimizes("Param", "Grad")
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, Proximal<false>::Update, float, double>();
  Declare(ops.Add("proximal_adagrad").Doc("A step scaled as by adagrad, then a pull towards 0.", kAdagradDoc))
      .Input("Moment", "what squares of gradients have added up to; shaped like Param", SameTypeAs("Param"))
      .Output("MomentOut", "names Moment's variable", SameTypeAs("Param"))
      .Optimizes("Param", "Grad")
      .State("Moment", "squares of gradients", StateSlicing::kWithParam, "moment")
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, Proximal<true>::Update, float, double>();
}

}  // namespace penstock
