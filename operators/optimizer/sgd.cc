// sgd: a step against the gradient.
#include "framework/op/op_registry.h"
#include "operators/cuda_kernels.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
ParamOut = Param - LearningRate * Grad)";

template <typename Device, typename T>
class SgdKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    param_ = k.Input("Param");
    grad_ = k.Input("Grad");
    rate_ = k.Input("LearningRate");
    param_out_ = k.Output("ParamOut");
    return RequireDenseGrad(k);
  }
  Status Run(KernelRun& k) override {
    const T* const param = k[param_].template Data<T>();
    const T* const grad = k[grad_].template Data<T>();
    const T rate = *k[rate_].template Data<T>();
    T* const out = k[param_out_].template Data<T>();
    const std::int64_t count = k[param_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = param[i] - rate * grad[i];
    return OkStatus();
  }

 private:
  Operand param_, grad_, rate_, param_out_;
};

}  // namespace

void RegisterSgd(OpRegistry& ops) {
  OpDef& def =
      ops.Add("sgd")
          .Doc("A step against the gradient.", kDoc)
          .Input("Param", "the parameter", Floats())
          .Input("LearningRate", "one element", SameTypeAs("Param"))
          .Input("Grad", "the gradient; shaped like Param", SameTypeAs("Param"))
          .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
          .InferShape(InferUpdate)
          .Optimizes("Param", "Grad")
          .Elementwise()
          .NoGrad()
          .Kernel<Cpu, SgdKernel, float, double>();
  RegisterSgdCuda(def);
}

}  // namespace penstock
