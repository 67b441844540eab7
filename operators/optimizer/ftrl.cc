// ftrl: follow the regularized leader; small parameters become exactly zero.
#include <cmath>
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
SquaredAccumOut = SquaredAccumulator + Grad^2
n(a)            = a^(-lr_power)
LinearAccumOut  = LinearAccumulator + Grad
                  - (n(SquaredAccumOut) - n(SquaredAccumulator)) / LearningRate * Param
ParamOut        = 0 if |LinearAccumOut| <= l1, else
                  (l1 * sign(LinearAccumOut) - LinearAccumOut) / (n(SquaredAccumOut) / LearningRate + 2 * l2)

McMahan et al.: "Ad click prediction: a view from the trenches", KDD 2013.)";

template <typename Device, typename T>
class FtrlKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, squared_, linear_, rate_, param_out_, squared_out_, linear_out_);
    ReadAttrs(k);
    return grad_.Prepare(k, WithoutGradient::kMoves);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    const T* const param = k[param_].template Data<T>();
    const T* const squared = k[squared_].template Data<T>();
    const T* const linear = k[linear_].template Data<T>();
    const T rate = *k[rate_].template Data<T>();
    T* const param_out = k[param_out_].template Data<T>();
    T* const squared_out = k[squared_out_].template Data<T>();
    T* const linear_out = k[linear_out_].template Data<T>();
    grad_.ForEach(Rule{l1_, l2_, power_, rate, param, squared, linear, param_out, squared_out, linear_out});
    return OkStatus();
  }

  bool PrepareRows(const KernelSetup& k) override {
    ReadAttrs(k);
    return true;
  }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    for (const RowOfStep& row : rows) MoveRow(step, row, step.Rate<T>(), row.Gradient<T>());
  }
  std::unique_ptr<StepHistory> MakeHistory() const override {
    return std::make_unique<StepHistory>(StepHistory::Weights());
  }
  double NumberOf(const RowStep& step) const override { return static_cast<double>(step.Rate<T>()); }
  // The sums stay, and the parameter follows from them and the last step's rate.
  void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t,
               const RowOfStep& row) const override {
    MoveRow(step, row, static_cast<T>(history.number(history.count())), nullptr);
  }

 private:
  struct Rule {
    T l1, l2, power, rate;
    const T *param, *squared, *linear;
    T *param_out, *squared_out, *linear_out;
    void operator()(std::int64_t i, T g) const {
      const T before = Grown(squared[i], power);
      const T squares = squared[i] + g * g;
      const T now = Grown(squares, power);
      const T line = linear[i] + g - (now - before) / rate * param[i];
      squared_out[i] = squares;
      linear_out[i] = line;
      const T pull = std::copysign(l1, line) - line;
      param_out[i] = Choose(std::abs(line) > l1, pull / (now / rate + T{2} * l2), T{0}, line);
    }
  };
  void ReadAttrs(const KernelSetup& k) {
    l1_ = static_cast<T>(k.Attr<float>("l1"));
    l2_ = static_cast<T>(k.Attr<float>("l2"));
    power_ = static_cast<T>(k.Attr<float>("lr_power"));
  }
  // `grad` is null if the row has none.
  void MoveRow(const RowStep& step, const RowOfStep& row, T rate, const T* grad) const {
    T* const param = row.Column<T>(step, 0);
    T* const squared = row.Column<T>(step, 1);
    T* const linear = row.Column<T>(step, 2);
    ForRow(step, grad, Rule{l1_, l2_, power_, rate, param, squared, linear, param, squared, linear});
  }
  static T Grown(T squares, T power) {
    return power == T{-0.5} ? std::sqrt(squares) : std::pow(squares, -power);
  }

  In<"Param"> param_;
  In<"SquaredAccumulator"> squared_;
  In<"LinearAccumulator"> linear_;
  In<"LearningRate"> rate_;
  Out<"ParamOut"> param_out_;
  Out<"SquaredAccumOut"> squared_out_;
  Out<"LinearAccumOut"> linear_out_;
  Gradient<T> grad_;
  T l1_ = 0, l2_ = 0, power_ = 0;
};

}  // namespace

void RegisterFtrl(OpRegistry& ops) {
  ops.Add("ftrl")
      .Doc("Follow the regularized leader.", kDoc)
      .Input("Param", "the parameter", Floats())
      .Input("SquaredAccumulator", "the sum of squared gradients; shaped like Param", SameTypeAs("Param"))
      .Input("LinearAccumulator", "the sum of corrected gradients; shaped like Param", SameTypeAs("Param"))
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("SquaredAccumOut", "names SquaredAccumulator's variable", SameTypeAs("Param"))
      .Output("LinearAccumOut", "names LinearAccumulator's variable", SameTypeAs("Param"))
      .Attr("l1", 0.0f, "the pull towards exactly zero")
      .Attr("l2", 0.0f, "the pull towards small values")
      .Attr("lr_power", -0.5f, "how the step shrinks with the sum of squares")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State({.slot = "SquaredAccumulator",
              .doc = "the sum of squared gradients",
              .accumulator = "squared",
              .output = "SquaredAccumOut"})
      .State({.slot = "LinearAccumulator",
              .doc = "the sum of corrected gradients",
              .accumulator = "linear",
              .output = "LinearAccumOut"})
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, FtrlKernel, float, double>();
}

}  // namespace penstock
