// adamax: adam with the largest gradient seen in place of the average of squares.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"
#include "operators/common/nan.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/missed_steps.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
MomentOut  = beta1 * Moment + (1 - beta1) * Grad
InfNormOut = max(beta2 * InfNorm + epsilon, |Grad|)
ParamOut   = Param - LearningRate / (1 - Beta1Pow) * MomentOut / InfNormOut

Beta1Pow is beta1 to the power of the step, counted from 1. The op only reads it; a scale by beta1 follows the
updates. Kingma, Ba: "Adam: a method for stochastic optimization", ICLR 2015.)";

template <typename Device, typename T>
class AdamaxKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, rate_, moment_, norm_, beta1_pow_, param_out_, moment_out_, norm_out_);
    ReadAttrs(k);
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    const T* const moment = k[moment_].template Data<T>();
    const T* const norm = k[norm_].template Data<T>();
    const T rate = *k[rate_].template Data<T>() / (T{1} - *k[beta1_pow_].template Data<T>());
    T* const param_out = k[param_out_].template Data<T>();
    T* const moment_out = k[moment_out_].template Data<T>();
    T* const norm_out = k[norm_out_].template Data<T>();
    grad_.ForEach(Rule{beta1_, beta2_, epsilon_, rate, param, moment, norm, param_out, moment_out, norm_out});
    return OkStatus();
  }

  // For moments of which the steps after a gradient soon become negligible.
  bool PrepareRows(const KernelSetup& k) override {
    ReadAttrs(k);
    if (beta1_ < 0 || beta2_ <= 0 || beta2_ >= 1 || epsilon_ <= 0) return false;
    if (!missed_.Prepare(beta1_, beta2_, /*u_most=*/std::numeric_limits<double>::infinity())) return false;
    powers1_ = std::make_unique<const Powers>(beta1_);
    powers2_ = std::make_unique<const Powers>(beta2_);
    return true;
  }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    const T rate = RateOf(step);
    for (const RowOfStep& row : rows) ForRow(step, row.Gradient<T>(), RuleOf(step, row, rate));
  }
  void Advance(const RowStep& step) const override { step.Whole<T>(0) = beta1_ * step.Whole<T>(0); }
  std::unique_ptr<StepHistory> MakeHistory() const override { return missed_.MakeHistory(); }
  double NumberOf(const RowStep& step) const override { return static_cast<double>(RateOf(step)); }
  // The divisor is InfNorm, of which Floor() is constant.
  void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t done,
               const RowOfStep& row) const override {
    const auto largest_u = [&] {
      const T* const norm = row.Column<T>(step, 2);
      return Floor() / static_cast<double>(*std::min_element(norm, norm + step.width));
    };
    missed_.CatchUp(
        history, done, largest_u,
        [&](double rate) { ForRow<T>(step, nullptr, RuleOf(step, row, static_cast<T>(rate))); },
        [&](std::uint64_t missed, MissedMoments::Sums sums) { SkipSteps(step, row, missed, sums); });
  }

 private:
  struct Rule {
    T beta1, beta2, epsilon, rate;
    const T *param, *moment, *norm;
    T *param_out, *moment_out, *norm_out;
    void operator()(std::int64_t i, T g) const {
      const T m = beta1 * moment[i] + (T{1} - beta1) * g;
      const T n = MaxOrNan(std::abs(g), beta2 * norm[i] + epsilon);
      moment_out[i] = m;
      norm_out[i] = n;
      param_out[i] = param[i] - rate * (m / n);
    }
  };
  Rule RuleOf(const RowStep& step, const RowOfStep& row, T rate) const {
    T* const param = row.Column<T>(step, 0);
    T* const moment = row.Column<T>(step, 1);
    T* const norm = row.Column<T>(step, 2);
    return {beta1_, beta2_, epsilon_, rate, param, moment, norm, param, moment, norm};
  }
  void ReadAttrs(const KernelSetup& k) {
    beta1_ = static_cast<T>(k.Attr<float>("beta1"));
    beta2_ = static_cast<T>(k.Attr<float>("beta2"));
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
  }
  static T RateOf(const RowStep& step) { return step.Rate<T>() / (T{1} - step.Whole<T>(0)); }
  // What InfNorm nears without gradients.
  double Floor() const { return static_cast<double>(epsilon_) / (1 - static_cast<double>(beta2_)); }
  void SkipSteps(const RowStep& step, const RowOfStep& row, std::uint64_t missed,
                 MissedMoments::Sums sums) const {
    T* const param = row.Column<T>(step, 0);
    T* const moment = row.Column<T>(step, 1);
    T* const norm = row.Column<T>(step, 2);
    const double kept2 = (*powers2_)(missed);
    const T kept = static_cast<T>((*powers1_)(missed)), norm_kept = static_cast<T>(kept2),
            floor = static_cast<T>(Floor()), added = static_cast<T>(Floor() * (1 - kept2));
    for (Dim i = 0; i < step.width; ++i) {
      T sum = static_cast<T>(sums[3]);
      for (const int term : {2, 1, 0}) sum = static_cast<T>(sums[term]) - floor / norm[i] * sum;
      param[i] -= moment[i] / norm[i] * sum;
      moment[i] *= kept;
      norm[i] = norm_kept * norm[i] + added;
    }
  }

  In<"Param"> param_;
  In<"LearningRate"> rate_;
  In<"Moment"> moment_;
  In<"InfNorm"> norm_;
  In<"Beta1Pow"> beta1_pow_;
  Out<"ParamOut"> param_out_;
  Out<"MomentOut"> moment_out_;
  Out<"InfNormOut"> norm_out_;
  Gradient<T> grad_;
  T beta1_ = 0, beta2_ = 0, epsilon_ = 0;
  MissedMoments missed_;  // of a rule
  std::unique_ptr<const Powers> powers1_, powers2_;
};

}  // namespace

void RegisterAdamax(OpRegistry& ops) {
  ops.Add("adamax")
      .Doc("Adam, scaled by the largest gradient seen.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Input("Moment", "running average of the gradient; shaped like Param", SameTypeAs("Param"))
      .Input("InfNorm", "the largest gradient seen, decaying; shaped like Param", SameTypeAs("Param"))
      .Input("Beta1Pow", "beta1 to the power of the step; one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("MomentOut", "names Moment's variable", SameTypeAs("Param"))
      .Output("InfNormOut", "names InfNorm's variable", SameTypeAs("Param"))
      .Attr("beta1", 0.9f, "how much of Moment is kept")
      .Attr("beta2", 0.999f, "how much of InfNorm is kept")
      .Attr("epsilon", 1e-8f, "keeps the divisor from zero")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("Moment", "running average of the gradient", StateSlicing::kWithParam, "moment")
      .State("InfNorm", "the largest gradient seen", StateSlicing::kWithParam, "inf_norm")
      .State({.slot = "Beta1Pow",
              .doc = "beta1 to the power of the step",
              .slicing = StateSlicing::kWhole,
              .accumulator = "beta1_pow_acc",
              .initial_attr = "beta1",
              .output = "-",
              .advance_attr = "beta1",
              .advance_scope = "adamx"})  // Fluid's own spelling
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, AdamaxKernel, float, double>();
}

}  // namespace penstock
