// dgc_momentum: momentum until deep gradient compression begins, then plain descent, because the compression
// has its own momentum.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Grad_out = Grad / nranks

and with G = Grad_out, while current_step < rampup_begin_step:
VelocityOut = mu * Velocity + G
ParamOut    = Param - LearningRate * VelocityOut                   or, if use_nesterov,
ParamOut    = Param - LearningRate * (G + mu * VelocityOut)

and from then on, Velocity being kept as it is:
ParamOut    = Param - LearningRate * G

A rampup_begin_step below 0 leaves everything as it is. Grad is the sum over nranks ranks that the compression
leaves. Steps are compared as whole numbers.
Lin, Han, Mao, Wang, Dally: "Deep gradient compression", ICLR 2018.)";

template <typename Device, typename T>
class DgcMomentumKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, grad_, velocity_, rate_, step_, ranks_, param_out_, velocity_out_, grad_out_);
    mu_ = static_cast<T>(k.Attr<float>("mu"));
    nesterov_ = k.Attr<bool>("use_nesterov");
    begin_ = std::trunc(static_cast<double>(k.Attr<float>("rampup_begin_step")));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const param = k[param_].template Data<T>();
    const T* const grad = k[grad_].template Data<T>();
    const T* const velocity = k[velocity_].template Data<T>();
    const T ranks = begin_ < 0 ? T{1} : *k[ranks_].template Data<T>();
    if (!(ranks >= T{1})) {
      return InvalidArgument("E-kernel-dgc", "dgc_momentum: nranks is ", ranks, "; it must be at least 1");
    }
    const T rate = begin_ < 0 ? T{0} : *k[rate_].template Data<T>(), share = T{1} / ranks;
    const bool momentum =
        begin_ >= 0 && !(std::trunc(static_cast<double>(*k[step_].template Data<T>())) >= begin_);
    T* const param_out = k[param_out_].template Data<T>();
    T* const velocity_out = k[velocity_out_].template Data<T>();
    T* const grad_out = grad_out_ ? k[grad_out_].template Data<T>() : nullptr;
    const std::int64_t count = k[param_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      const T g = share * grad[i];
      const T v = momentum ? velocity[i] * mu_ + g : velocity[i];
      const T direction = !momentum ? g : nesterov_ ? g + v * mu_ : v;
      velocity_out[i] = v;
      param_out[i] = param[i] - rate * direction;
      if (grad_out != nullptr) grad_out[i] = g;
    }
    return OkStatus();
  }

 private:
  In<"Param"> param_;
  In<"Grad"> grad_;
  In<"Velocity"> velocity_;
  In<"LearningRate"> rate_;
  In<"current_step"> step_;
  In<"nranks"> ranks_;
  Out<"ParamOut"> param_out_;
  Out<"VelocityOut"> velocity_out_;
  Out<"Grad_out"> grad_out_;
  T mu_ = 0;
  bool nesterov_ = false;
  double begin_ = -1;
};

Status InferDgcMomentum(InferContext& c) {
  for (const char* slot : {"current_step", "nranks"}) {
    if (!Compatible(c.ShapeOf(slot).Count(), 1)) {
      return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element");
    }
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Grad", "Grad_out"));
  return InferUpdate(c);
}

}  // namespace

void RegisterDgcMomentum(OpRegistry& ops) {
  ops.Add("dgc_momentum")
      .Doc("Momentum until gradients are compressed, then descent.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradients of all ranks added up; shaped like Param", SameTypeAs("Param"))
      .Input("Velocity", "the running sum; shaped like Param", SameTypeAs("Param"))
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Input("current_step", "the number of the step; one element", SameTypeAs("Param"))
      .Input("nranks", "how many ranks there are; one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("VelocityOut", "the new running sum; names Velocity's variable", SameTypeAs("Param"))
      .Output("Grad_out", "the mean gradient; names Grad's variable", SameTypeAs("Param"), Optional())
      .RequiredAttr("mu", AttrKind::kFloat, "how much of the running sum is kept")
      .Attr("use_nesterov", false, "whether the step looks ahead")
      .Attr("rampup_begin_step", -1.0f, "the step from which gradients are compressed; below 0: no update")
      .Nan("a current_step of NaN lies before rampup_begin_step.")
      .InferShape(InferDgcMomentum)
      .Optimizes("Param", "Grad")
      .State("Velocity", "the running sum of gradients", StateSlicing::kWithParam, "velocity")
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, DgcMomentumKernel, float, double>();
}

}  // namespace penstock
