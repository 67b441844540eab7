// adadelta: a step whose size follows from earlier steps, without a learning rate.
#include <cmath>
#include <memory>

#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/missed_steps.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
AvgSquaredGradOut   = rho * AvgSquaredGrad + (1 - rho) * Grad^2
step(u)             = -sqrt((u + epsilon) / (AvgSquaredGradOut + epsilon)) * Grad
AvgSquaredUpdateOut = rho * AvgSquaredUpdate + (1 - rho) * step(AvgSquaredUpdate)^2
ParamOut            = Param + step(AvgSquaredUpdate)

As in Fluid, the last line reads AvgSquaredUpdate after the previous line has written its result. If both are
one variable, as in programs that an optimizer makes, the step is therefore step(AvgSquaredUpdateOut). The
paper's step uses the old average.
Zeiler: "ADADELTA: an adaptive learning rate method", 2012.)";

template <typename Device, typename T>
class AdadeltaKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, grads_, steps_, param_out_, grads_out_, steps_out_);
    ReadAttrs(k);
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    const T* const grads = k[grads_].template Data<T>();
    const T* const steps = k[steps_].template Data<T>();
    T* const param_out = k[param_out_].template Data<T>();
    T* const grads_out = k[grads_out_].template Data<T>();
    T* const steps_out = k[steps_out_].template Data<T>();
    grad_.ForEach(Rule{rho_, epsilon_, param, grads, steps, param_out, grads_out, steps_out});
    return OkStatus();
  }

  bool PrepareRows(const KernelSetup& k) override {
    ReadAttrs(k);
    if (epsilon_ <= 0) return false;
    powers_ = std::make_unique<const Powers>(rho_);
    return true;
  }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    for (const RowOfStep& row : rows) MoveRow(step, row, row.Gradient<T>());
  }
  std::unique_ptr<StepHistory> MakeHistory() const override {
    return std::make_unique<StepHistory>(StepHistory::Weights());
  }
  // The averages decay; the parameter stays.
  void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t done,
               const RowOfStep& row) const override {
    const std::uint64_t missed = history.count() - done;
    if (missed <= kStepsReplayed) {
      for (std::uint64_t i = 0; i < missed; ++i) MoveRow(step, row, nullptr);
      return;
    }
    const T kept = static_cast<T>((*powers_)(missed));
    for (const std::size_t column : {1, 2}) {
      T* const average = row.Column<T>(step, column);
      for (Dim i = 0; i < step.width; ++i) average[i] *= kept;
    }
  }

 private:
  struct Rule {
    T rho, epsilon;
    const T *param, *grads, *steps;
    T *param_out, *grads_out, *steps_out;
    void operator()(std::int64_t i, T g) const {
      const T squares = rho * grads[i] + (T{1} - rho) * g * g;
      const auto step = [&] { return -std::sqrt((steps[i] + epsilon) / (squares + epsilon)) * g; };
      const T old = step();
      grads_out[i] = squares;
      steps_out[i] = rho * steps[i] + (T{1} - rho) * old * old;
      param_out[i] = param[i] + step();  // of the new average, where that is in place
    }
  };
  void ReadAttrs(const KernelSetup& k) {
    rho_ = static_cast<T>(k.Attr<float>("rho"));
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
  }
  // `grad` is null if the row has none.
  void MoveRow(const RowStep& step, const RowOfStep& row, const T* grad) const {
    T* const param = row.Column<T>(step, 0);
    T* const grads = row.Column<T>(step, 1);
    T* const steps = row.Column<T>(step, 2);
    ForRow(step, grad, Rule{rho_, epsilon_, param, grads, steps, param, grads, steps});
  }

  In<"Param"> param_;
  In<"AvgSquaredGrad"> grads_;
  In<"AvgSquaredUpdate"> steps_;
  Out<"ParamOut"> param_out_;
  Out<"AvgSquaredGradOut"> grads_out_;
  Out<"AvgSquaredUpdateOut"> steps_out_;
  Gradient<T> grad_;
  T rho_ = 0, epsilon_ = 0;
  std::unique_ptr<const Powers> powers_;  // of a rule
};

}  // namespace

void RegisterAdadelta(OpRegistry& ops) {
  ops.Add("adadelta")
      .Doc("A step whose size follows from earlier steps.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("AvgSquaredGrad", "running average of squared gradients; shaped like Param", SameTypeAs("Param"))
      .Input("AvgSquaredUpdate", "running average of squared steps; shaped like Param", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("AvgSquaredGradOut", "names AvgSquaredGrad's variable", SameTypeAs("Param"))
      .Output("AvgSquaredUpdateOut", "names AvgSquaredUpdate's variable", SameTypeAs("Param"))
      .Attr("rho", 0.95f, "how much of the averages is kept")
      .Attr("epsilon", 1e-6f, "keeps the divisor from zero, and the first step from nothing")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("AvgSquaredGrad", "average of squared gradients", StateSlicing::kWithParam, "_avg_squared_grad")
      .State("AvgSquaredUpdate", "average of squared steps", StateSlicing::kWithParam, "_avg_squared_update")
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, AdadeltaKernel, float, double>();
}

}  // namespace penstock
