// momentum: a step along a running sum of gradients, optionally with Nesterov's look-ahead.
#include <memory>

#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/missed_steps.h"
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
class MomentumKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, velocity_, rows_, rate_, param_out_, velocity_out_);
    ReadAttrs(k);
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
    if (nesterov_) {
      grad_.ForEach(Rule<true>{mu_, rate, param, velocity, param_out, velocity_out});
    } else {
      grad_.ForEach(Rule<false>{mu_, rate, param, velocity, param_out, velocity_out});
    }
    return OkStatus();
  }

  // For a running sum that soon forgets a gradient.
  bool PrepareRows(const KernelSetup& k) override {
    ReadAttrs(k);
    if (mu_ < 0 || mu_ > StepHistory::kKeptMost) return false;
    powers_ = std::make_unique<const Powers>(mu_);
    return true;
  }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    for (const RowOfStep& row : rows) MoveRow(step, row, step.Rate<T>(), row.Gradient<T>());
  }
  bool StepsWithoutRows() const override { return false; }
  std::unique_ptr<StepHistory> MakeHistory() const override {
    return std::make_unique<StepHistory>(StepHistory::Weights{.kept = mu_, .growth = 1, .sums = 1});
  }
  double NumberOf(const RowStep& step) const override { return static_cast<double>(step.Rate<T>()); }

  // Step j moves an element by rate_j * mu^j * velocity.
  void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t done,
               const RowOfStep& row) const override {
    const std::uint64_t missed = history.count() - done;
    if (missed <= kStepsReplayed) {
      for (std::uint64_t i = 1; i <= missed; ++i)
        MoveRow(step, row, static_cast<T>(history.number(done + i)), nullptr);
      return;
    }
    T* const param = row.Column<T>(step, 0);
    T* const velocity = row.Column<T>(step, 1);
    const T sum = static_cast<T>(history.SumsAfter(done)[0] * (nesterov_ ? static_cast<double>(mu_) : 1));
    const T kept = static_cast<T>((*powers_)(missed));
    for (Dim i = 0; i < step.width; ++i) {
      param[i] -= sum * velocity[i];
      velocity[i] *= kept;
    }
  }

 private:
  template <bool kNesterov>
  struct Rule {
    T mu, rate;
    const T *param, *velocity;
    T *param_out, *velocity_out;
    void operator()(std::int64_t i, T g) const {
      const T v = velocity[i] * mu + g;
      velocity_out[i] = v;
      param_out[i] = param[i] - (kNesterov ? (g + v * mu) * rate : rate * v);
    }
  };
  void ReadAttrs(const KernelSetup& k) {
    mu_ = static_cast<T>(k.Attr<float>("mu"));
    nesterov_ = k.Attr<bool>("use_nesterov");
  }
  // `grad` is null if the row has none.
  void MoveRow(const RowStep& step, const RowOfStep& row, T rate, const T* grad) const {
    T* const param = row.Column<T>(step, 0);
    T* const velocity = row.Column<T>(step, 1);
    if (nesterov_) {
      ForRow(step, grad, Rule<true>{mu_, rate, param, velocity, param, velocity});
    } else {
      ForRow(step, grad, Rule<false>{mu_, rate, param, velocity, param, velocity});
    }
  }
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
  std::unique_ptr<const Powers> powers_;  // of a rule
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
