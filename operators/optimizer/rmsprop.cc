// rmsprop: a step scaled by the root of a running average of squared gradients, with momentum.
#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/missed_steps.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
MeanSquareOut = decay * MeanSquare + (1 - decay) * Grad^2
MomentOut     = momentum * Moment + LearningRate * Grad / sqrt(MeanSquareOut + epsilon)
ParamOut      = Param - MomentOut

If centered: MeanGradOut = decay * MeanGrad + (1 - decay) * Grad, and the divisor is
sqrt(MeanSquareOut - MeanGradOut^2 + epsilon). Else MeanGrad stays as it is.
Tieleman, Hinton: Coursera, "Neural networks for machine learning", lecture 6.5, 2012.)";

Status InferRmsprop(InferContext& c) {
  return InferUpdateWithout(c, c.Attr<bool>("centered") ? "" : "MeanGrad");
}

template <typename Device, typename T>
class RmspropKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, square_, mean_, moment_, rate_, param_out_, square_out_, mean_out_, moment_out_);
    ReadAttrs(k);
    if (centered_ && (!mean_ || !mean_out_)) return k.Error("MeanGrad is needed if centered is set");
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    const T* const square = k[square_].template Data<T>();
    const T* const moment = k[moment_].template Data<T>();
    const T rate = *k[rate_].template Data<T>();
    T* const param_out = k[param_out_].template Data<T>();
    T* const square_out = k[square_out_].template Data<T>();
    T* const moment_out = k[moment_out_].template Data<T>();
    const T* const mean = mean_ ? k[mean_].template Data<T>() : nullptr;
    T* const mean_out = mean_out_ ? k[mean_out_].template Data<T>() : nullptr;
    if (!centered_ && mean != nullptr && mean_out != nullptr && mean != mean_out) {
      std::copy_n(mean, k[mean_].count(), mean_out);
    }
    const Step made = {decay_,    epsilon_,   momentum_,  rate,
                       param,     square,     moment,     centered_ ? mean : nullptr,
                       param_out, square_out, moment_out, mean_out};
    if constexpr (std::is_same_v<T, float>) {
      grad_.Update(made);
    } else {
      grad_.ForEach(made);
    }
    return OkStatus();
  }

  bool PrepareRows(const KernelSetup& k) override {
    ReadAttrs(k);
    if (epsilon_ <= 0 || momentum_ < 0 || momentum_ >= 1) return false;
    decays_ = std::make_unique<const Powers>(decay_);
    momenta_ = std::make_unique<const Powers>(momentum_);
    return true;
  }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    for (const RowOfStep& row : rows) MoveRow(step, row, step.Rate<T>(), row.Gradient<T>());
  }
  std::unique_ptr<StepHistory> MakeHistory() const override {
    return std::make_unique<StepHistory>(StepHistory::Weights());
  }

  // Step j moves an element by momentum^j * moment, whatever the learning rate.
  void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t done,
               const RowOfStep& row) const override {
    const std::uint64_t missed = history.count() - done;
    if (missed <= kStepsReplayed) {
      for (std::uint64_t i = 0; i < missed; ++i) MoveRow(step, row, T{0}, nullptr);
      return;
    }
    const double momentum = momentum_, left = (*momenta_)(missed);
    const T sum = static_cast<T>(momentum * (1 - left) / (1 - momentum));
    const T kept = static_cast<T>((*decays_)(missed));
    T* const param = row.Column<T>(step, 0);
    T* const moment = row.Column<T>(step, 1);
    T* const square = row.Column<T>(step, 2);
    T* const mean = row.Column<T>(step, 3);
    for (Dim i = 0; i < step.width; ++i) {
      param[i] -= sum * moment[i];
      moment[i] *= static_cast<T>(left);
      square[i] *= kept;
      if (centered_) mean[i] *= kept;
    }
  }

 private:
  struct PlainStep {
    T decay, epsilon, momentum, rate;
    const T *param, *square, *moment, *mean;
    T *param_out, *square_out, *moment_out, *mean_out;
    void operator()(std::int64_t i, T g) const {
      T spread = square_out[i] = decay * square[i] + (T{1} - decay) * g * g;
      if (mean != nullptr) {
        const T average = decay * mean[i] + (T{1} - decay) * g;
        mean_out[i] = average;
        spread -= average * average;
      }
      const T m = momentum * moment[i] + rate * g / std::sqrt(spread + epsilon);
      moment_out[i] = m;
      param_out[i] = param[i] - m;
    }
  };
  using Step = std::conditional_t<std::is_same_v<T, float>, vec::RmspropStep, PlainStep>;

  void ReadAttrs(const KernelSetup& k) {
    decay_ = static_cast<T>(k.Attr<float>("decay"));
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    momentum_ = static_cast<T>(k.Attr<float>("momentum"));
    centered_ = k.Attr<bool>("centered");
  }
  // `grad` is null if the row has none.
  void MoveRow(const RowStep& step, const RowOfStep& row, T rate, const T* grad) const {
    T* const param = row.Column<T>(step, 0);
    T* const moment = row.Column<T>(step, 1);
    T* const square = row.Column<T>(step, 2);
    T* const mean = row.Column<T>(step, 3);
    const Step made = {decay_, epsilon_, momentum_, rate, param, square, moment, centered_ ? mean : nullptr,
                       param,  square,   moment,    mean};
    if constexpr (std::is_same_v<T, float>) {
      vec::Update(made, 0, static_cast<std::size_t>(step.width), grad);
    } else {
      ForRow(step, grad, made);
    }
  }

  In<"Param"> param_;
  In<"MeanSquare"> square_;
  In<"MeanGrad"> mean_;
  In<"Moment"> moment_;
  In<"LearningRate"> rate_;
  Out<"ParamOut"> param_out_;
  Out<"MeanSquareOut"> square_out_;
  Out<"MeanGradOut"> mean_out_;
  Out<"MomentOut"> moment_out_;
  Gradient<T> grad_;
  T decay_ = 0, epsilon_ = 0, momentum_ = 0;
  bool centered_ = false;
  std::unique_ptr<const Powers> decays_, momenta_;  // of a rule
};

}  // namespace

void RegisterRmsprop(OpRegistry& ops) {
  ops.Add("rmsprop")
      .Doc("A step scaled by the root of a running average of squared gradients.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("MeanSquare", "running average of squared gradients; shaped like Param", SameTypeAs("Param"))
      .Input("MeanGrad", "running average of gradients; shaped like Param", SameTypeAs("Param"), Optional())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("Moment", "the running sum of steps; shaped like Param", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("MomentOut", "names Moment's variable", SameTypeAs("Param"))
      .Output("MeanSquareOut", "names MeanSquare's variable", SameTypeAs("Param"))
      .Output("MeanGradOut", "names MeanGrad's variable", SameTypeAs("Param"), Optional())
      .Attr("epsilon", 1e-10f, "keeps the divisor from zero")
      .Attr("decay", 0.9f, "how much of the averages is kept")
      .Attr("momentum", 0.0f, "how much of the running sum of steps is kept")
      .Attr("centered", false, "whether the average gradient's square is taken off")
      .InferShape(InferRmsprop)
      .Optimizes("Param", "Grad")
      .State("Moment", "the running sum of steps", StateSlicing::kWithParam, "momentum")
      .State("MeanSquare", "average of squared gradients", StateSlicing::kWithParam, "mean_square")
      .State("MeanGrad", "average of gradients", StateSlicing::kWithParam, "mean_grad")
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, RmspropKernel, float, double>();
}

}  // namespace penstock
