// momentum: a step along a running sum of gradients, optionally with Nesterov's look-ahead.
#include "framework/op/op_registry.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
VelocityOut = mu * Velocity + Grad
ParamOut = Param - LearningRate * VelocityOut                  or, if use_nesterov,
ParamOut = Param - LearningRate * (Grad + mu * VelocityOut)

A gradient of rows that lists none leaves everything as it is.
Sutskever, Martens, Dahl, Hinton: "On the importance of initialization and momentum in deep learning", ICML
2013.)";

template <typename Device, typename T>
class MomentumKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, velocity_, rows_, rate_, param_out_, velocity_out_);
    mu_ = static_cast<T>(k.Attr<float>("mu"));
    nesterov_ = k.Attr<bool>("use_nesterov");
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    if (grad_.by_rows() && k.Var(rows_).template As<SelectedRows>().rows.empty()) {
      Keep(k, param_, param_out_);
      Keep(k, velocity_, velocity_out_);
      return OkStatus();
    }
    const T* const param = k[param_].template Data<T>();
    const T* const velocity = k[velocity_].template Data<T>();
    const T rate = *k[rate_].template Data<T>();
    T* const param_out = k[param_out_].template Data<T>();
    T* const velocity_out = k[velocity_out_].template Data<T>();
    const T mu = mu_;
    if (nesterov_) {
      grad_.ForEach([=](std::int64_t i, T g) {
        const T v = velocity[i] * mu + g;
        velocity_out[i] = v;
        param_out[i] = param[i] - (g + v * mu) * rate;
      });
    } else {
      grad_.ForEach([=](std::int64_t i, T g) {
        const T v = velocity[i] * mu + g;
        velocity_out[i] = v;
        param_out[i] = param[i] - rate * v;
      });
    }
    return OkStatus();
  }

 private:
  static void Keep(KernelRun& k, const Operand& from, const Operand& to) {
    if (k[from].raw() != k[to].raw()) k[to].CopyFrom(k[from]);
  }

  In<"Param"> param_;
  In<"Velocity"> velocity_;
  In<"Grad"> rows_;
  In<"LearningRate"> rate_;
  Out<"ParamOut"> param_out_;
  Out<"VelocityOut"> velocity_out_;
  Gradient<T> grad_;
  T mu_ = 0;
  bool nesterov_ = false;
};

}  // namespace

void RegisterMomentum(OpRegistry& ops) {
  ops.Add("momentum")
      .Doc("A step along a running sum of gradients.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("Velocity", "the running sum; shaped like Param", SameTypeAs("Param"))
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("VelocityOut", "the new running sum; names Velocity's variable", SameTypeAs("Param"))
      .RequiredAttr("mu", AttrKind::kFloat, "how much of the running sum is kept")
      .Attr("use_nesterov", false, "whether the step looks ahead")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("Velocity", "the running sum of gradients", StateSlicing::kWithParam, "velocity")
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, MomentumKernel, float, double>();
}

}  // namespace penstock
