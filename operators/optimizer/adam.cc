// adam: a step scaled by running averages of the gradient and of its square.
#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/missed_steps.h"
#include "operators/optimizer/moments.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Moment1Out = beta1 * Moment1 + (1 - beta1) * Grad
Moment2Out = beta2 * Moment2 + (1 - beta2) * Grad^2
rate       = LearningRate * sqrt(1 - Beta2Pow) / (1 - Beta1Pow)
ParamOut   = Param - rate * Moment1Out / (sqrt(Moment2Out) + epsilon)
Beta1PowOut = beta1 * Beta1Pow,  Beta2PowOut = beta2 * Beta2Pow

Rows that a gradient of rows does not list are updated as with a gradient of 0; with lazy_mode, they and their
moments do not change. Beta1Pow is beta1 to the power of the step, counted from 1. Beta1Tensor and Beta2Tensor
override the attributes. As in Fluid, an update by rows uses the next step's powers if they are updated in
place (Beta1PowOut is Beta1Pow), so that trainings give Fluid's numbers. Kingma, Ba: "Adam: a method for
stochastic optimization", ICLR 2015.)";

template <typename Device, typename T>
class AdamKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, rate_);
    moments_.Prepare(k);
    k.Bind(beta1_pow_, beta2_pow_, beta1_given_, beta2_given_, param_out_, beta1_pow_out_, beta2_pow_out_);
    ReadAttrs(k);
    return grad_.Prepare(k, lazy_ ? WithoutGradient::kStays : WithoutGradient::kMoves,
                         {{param_, param_out_},
                          {moments_.moment1, moments_.moment1_out},
                          {moments_.moment2, moments_.moment2_out}});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T beta1 = beta1_given_ ? *k[beta1_given_].template Data<T>() : beta1_;
    const T beta2 = beta2_given_ ? *k[beta2_given_].template Data<T>() : beta2_;
    const T next1 = beta1 * *k[beta1_pow_].template Data<T>();
    const T next2 = beta2 * *k[beta2_pow_].template Data<T>();
    const T power1 = TakesNext(beta1_pow_, beta1_pow_out_) ? next1 : *k[beta1_pow_].template Data<T>();
    const T power2 = TakesNext(beta2_pow_, beta2_pow_out_) ? next2 : *k[beta2_pow_].template Data<T>();
    const T rate = RateAt(*k[rate_].template Data<T>(), power1, power2);
    const T epsilon = epsilon_;
    const T* const param = k[param_].template Data<T>();
    T* const param_out = k[param_out_].template Data<T>();
    const MomentArrays<T> moments = moments_.At(k, beta1, beta2);
    if constexpr (std::is_same_v<T, float>) {
      grad_.Update(vec::AdamStep{moments.ForVectors(), rate, epsilon, param, param_out});
    } else {
      grad_.ForEach([=](std::int64_t i, T g) {
        const auto [m1, m2] = moments.Move(i, g);
        param_out[i] = param[i] - rate * (m1 / (std::sqrt(m2) + epsilon));
      });
    }
    *k[beta1_pow_out_].template Data<T>() = next1;
    *k[beta2_pow_out_].template Data<T>() = next2;
    return OkStatus();
  }

  // Without lazy_mode, for moments of which the steps after a gradient soon become negligible.
  bool PrepareRows(const KernelSetup& k) override {
    ReadAttrs(k);
    if (lazy_) return true;
    if (beta1_ < 0 || beta2_ <= 0 || beta2_ > 1 || epsilon_ <= 0) return false;
    if (!missed_.Prepare(beta1_, std::sqrt(static_cast<double>(beta2_)), /*u_most=*/1)) return false;
    powers1_ = std::make_unique<const Powers>(beta1_);
    powers2_ = std::make_unique<const Powers>(beta2_);
    return true;
  }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    const T rate = RateOf(step);
    for (const RowOfStep& row : rows) MoveRow(step, row, rate, row.Gradient<T>());
  }
  std::unique_ptr<StepHistory> MakeHistory() const override {
    return lazy_ ? nullptr : missed_.MakeHistory();
  }
  double NumberOf(const RowStep& step) const override { return static_cast<double>(RateOf(step)); }
  // The divisor is sqrt(Moment2) + epsilon.
  void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t done,
               const RowOfStep& row) const override {
    const auto largest_u = [&] {
      const T* const moment2 = row.Column<T>(step, 2);
      const double least = static_cast<double>(*std::min_element(moment2, moment2 + step.width));
      return static_cast<double>(epsilon_) / (std::sqrt(least) + static_cast<double>(epsilon_));
    };
    missed_.CatchUp(
        history, done, largest_u, [&](double rate) { MoveRow(step, row, static_cast<T>(rate), nullptr); },
        [&](std::uint64_t missed, MissedMoments::Sums sums) { SkipSteps(step, row, missed, sums); });
  }
  void Advance(const RowStep& step) const override {
    step.Whole<T>(kBeta1Pow) = beta1_ * step.Whole<T>(kBeta1Pow);
    step.Whole<T>(kBeta2Pow) = beta2_ * step.Whole<T>(kBeta2Pow);
  }

 private:
  static constexpr std::size_t kBeta1Pow = 0, kBeta2Pow = 1;  // among the whole states

  void ReadAttrs(const KernelSetup& k) {
    beta1_ = static_cast<T>(k.Attr<float>("beta1"));
    beta2_ = static_cast<T>(k.Attr<float>("beta2"));
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    lazy_ = k.Attr<bool>("lazy_mode");
  }
  T RateOf(const RowStep& step) const {
    return RateAt(step.Rate<T>(), beta1_ * step.Whole<T>(kBeta1Pow), beta2_ * step.Whole<T>(kBeta2Pow));
  }
  // `grad` is null if the row has none.
  void MoveRow(const RowStep& step, const RowOfStep& row, T rate, const T* grad) const {
    T* const param = row.Column<T>(step, 0);
    const MomentArrays<T> moments = InPlace(beta1_, beta2_, row.Column<T>(step, 1), row.Column<T>(step, 2));
    if constexpr (std::is_same_v<T, float>) {
      vec::Update(vec::AdamStep{moments.ForVectors(), rate, epsilon_, param, param}, 0,
                  static_cast<std::size_t>(step.width), grad);
    } else {
      for (Dim i = 0; i < step.width; ++i) {
        const auto [m1, m2] = moments.Move(i, grad == nullptr ? T{0} : grad[i]);
        param[i] = param[i] - rate * (m1 / (std::sqrt(m2) + epsilon_));
      }
    }
  }
  void SkipSteps(const RowStep& step, const RowOfStep& row, std::uint64_t missed,
                 MissedMoments::Sums sums) const {
    T* const param = row.Column<T>(step, 0);
    T* const moment1 = row.Column<T>(step, 1);
    T* const moment2 = row.Column<T>(step, 2);
    const T kept1 = static_cast<T>((*powers1_)(missed)), kept2 = static_cast<T>((*powers2_)(missed));
    const T s0 = static_cast<T>(sums[0]), s1 = static_cast<T>(sums[1]), s2 = static_cast<T>(sums[2]),
            s3 = static_cast<T>(sums[3]);
    if constexpr (std::is_same_v<T, float>) {
      vec::Update(vec::AdamMissedSteps{kept1, kept2, epsilon_, {s0, s1, s2, s3}, param, moment1, moment2},
                  static_cast<std::size_t>(step.width));
    } else {
      for (Dim i = 0; i < step.width; ++i) {
        const T divisor = std::sqrt(moment2[i]) + epsilon_, u = epsilon_ / divisor;
        param[i] -= moment1[i] / divisor * (s0 - u * (s1 - u * (s2 - u * s3)));
        moment1[i] *= kept1;
        moment2[i] *= kept2;
      }
    }
  }
  static T RateAt(T rate, T power1, T power2) { return rate * (std::sqrt(T{1} - power2) / (T{1} - power1)); }
  bool TakesNext(const Operand& power, const Operand& power_out) const {
    return grad_.by_rows() && power.index == power_out.index;
  }

  In<"Param"> param_;
  In<"LearningRate"> rate_;
  In<"Beta1Pow"> beta1_pow_;
  In<"Beta2Pow"> beta2_pow_;
  In<"Beta1Tensor"> beta1_given_;
  In<"Beta2Tensor"> beta2_given_;
  Out<"ParamOut"> param_out_;
  Out<"Beta1PowOut"> beta1_pow_out_;
  Out<"Beta2PowOut"> beta2_pow_out_;
  MomentOperands moments_;
  Gradient<T> grad_;
  T beta1_ = 0, beta2_ = 0, epsilon_ = 0;
  bool lazy_ = false;
  MissedMoments missed_;  // of a rule
  std::unique_ptr<const Powers> powers1_, powers2_;
};

Status InferAdam(InferContext& c) {
  for (const char* slot : {"Beta1Tensor", "Beta2Tensor"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot).Count(), 1)) {
      return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element");
    }
  }
  return InferUpdate(c);
}

}  // namespace

void RegisterAdam(OpRegistry& ops) {
  ops.Add("adam")
      .Doc("A step scaled by running averages of the gradient and its square.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Input("Moment1", "running average of the gradient; shaped like Param", SameTypeAs("Param"))
      .Input("Moment2", "running average of its square; shaped like Param", SameTypeAs("Param"))
      .Input("Beta1Pow", "beta1 to the power of the step; one element", SameTypeAs("Param"))
      .Input("Beta2Pow", "beta2 to the power of the step; one element", SameTypeAs("Param"))
      .Input("Beta1Tensor", "one element that is used instead of beta1", SameTypeAs("Param"), Optional())
      .Input("Beta2Tensor", "one element that is used instead of beta2", SameTypeAs("Param"), Optional())
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("Moment1Out", "names Moment1's variable", SameTypeAs("Param"))
      .Output("Moment2Out", "names Moment2's variable", SameTypeAs("Param"))
      .Output("Beta1PowOut", "names Beta1Pow's variable", SameTypeAs("Param"))
      .Output("Beta2PowOut", "names Beta2Pow's variable", SameTypeAs("Param"))
      .Attr("beta1", 0.9f, "how much of Moment1 is kept")
      .Attr("beta2", 0.999f, "how much of Moment2 is kept")
      .Attr("epsilon", 1e-8f, "keeps the divisor from zero")
      .Attr("lazy_mode", false, "of gradients with selected rows: whether other rows are left alone")
      .Attr("min_row_size_to_use_multithread", std::int64_t{1000}, "a setting of Fluid's; no effect here")
      .InferShape(InferAdam)
      .Optimizes("Param", "Grad")
      .State("Moment1", "running average of the gradient", StateSlicing::kWithParam, "moment1")
      .State("Moment2", "running average of its square", StateSlicing::kWithParam, "moment2")
      .State({.slot = "Beta1Pow",
              .doc = "beta1 to the power of the step",
              .slicing = StateSlicing::kWhole,
              .accumulator = "beta1_pow_acc",
              .initial_attr = "beta1",
              .device = "cpu"})
      .State({.slot = "Beta2Pow",
              .doc = "beta2 to the power of the step",
              .slicing = StateSlicing::kWhole,
              .accumulator = "beta2_pow_acc",
              .initial_attr = "beta2",
              .device = "cpu"})
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, AdamKernel, float, double>();
}

}  // namespace penstock
