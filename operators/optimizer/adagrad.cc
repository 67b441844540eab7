// adagrad and decayed_adagrad: a step divided by the root of the accumulated squares of gradients.
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

constexpr char kAdagradDoc[] = R"(
MomentOut = Moment + Grad^2
ParamOut  = Param - LearningRate * Grad / (sqrt(MomentOut) + epsilon)

Duchi, Hazan, Singer: "Adaptive subgradient methods", JMLR 2011.)";

constexpr char kDecayedDoc[] = R"(
MomentOut = decay * Moment + (1 - decay) * Grad^2
ParamOut  = Param - LearningRate * Grad / (sqrt(MomentOut) + epsilon))";

// Adds a square whole, or as a running average.
template <bool kDecays>
struct Adagrad {
  template <typename Device, typename T>
  class Kernels : public Kernel, public RowRule {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(param_, moment_, rate_, param_out_, moment_out_);
      ReadAttrs(k);
      return grad_.Prepare(k, kDecays ? WithoutGradient::kMoves : WithoutGradient::kStays,
                           {{param_, param_out_}, {moment_, moment_out_}});
    }
    Status Run(KernelRun& k) override {
      PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
      const T* const param = k[param_].template Data<T>();
      const T* const moment = k[moment_].template Data<T>();
      const T rate = *k[rate_].template Data<T>();
      T* const param_out = k[param_out_].template Data<T>();
      T* const moment_out = k[moment_out_].template Data<T>();
      if constexpr (std::is_same_v<T, float>) {
        grad_.Update(vec::AdagradStep{kept_, added_, rate, epsilon_, param, moment, param_out, moment_out});
      } else {
        const Rule rule = {kept_, added_, rate, epsilon_, param, moment, param_out, moment_out};
        grad_.ForEach(rule);
      }
      return OkStatus();
    }

    bool PrepareRows(const KernelSetup& k) override {
      ReadAttrs(k);
      if constexpr (kDecays) {
        if (epsilon_ <= 0) return false;
        powers_ = std::make_unique<const Powers>(kept_);
      }
      return true;
    }
    void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
      for (const RowOfStep& row : rows) MoveRow(step, row, step.Rate<T>(), row.Gradient<T>());
    }
    std::unique_ptr<StepHistory> MakeHistory() const override {
      return kDecays ? std::make_unique<StepHistory>(StepHistory::Weights()) : nullptr;
    }
    // The average decays; the parameter stays.
    void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t done,
                 const RowOfStep& row) const override {
      const std::uint64_t missed = history.count() - done;
      if (missed <= kStepsReplayed) {
        for (std::uint64_t i = 0; i < missed; ++i) MoveRow(step, row, T{0}, nullptr);
        return;
      }
      const T kept = static_cast<T>((*powers_)(missed));
      T* const moment = row.Column<T>(step, 1);
      for (Dim i = 0; i < step.width; ++i) moment[i] *= kept;
    }

   private:
    struct Rule {
      T kept, added, rate, epsilon;
      const T *param, *moment;
      T *param_out, *moment_out;
      void operator()(std::int64_t i, T g) const {
        const T m = kept * moment[i] + added * g * g;
        moment_out[i] = m;
        param_out[i] = param[i] - rate * g / (std::sqrt(m) + epsilon);
      }
    };
    // `grad` is null if the row has none.
    void MoveRow(const RowStep& step, const RowOfStep& row, T rate, const T* grad) const {
      T* const param = row.Column<T>(step, 0);
      T* const moment = row.Column<T>(step, 1);
      if constexpr (std::is_same_v<T, float>) {
        vec::Update(vec::AdagradStep{kept_, added_, rate, epsilon_, param, moment, param, moment}, 0,
                    static_cast<std::size_t>(step.width), grad);
      } else {
        ForRow(step, grad, Rule{kept_, added_, rate, epsilon_, param, moment, param, moment});
      }
    }
    void ReadAttrs(const KernelSetup& k) {
      epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
      if constexpr (kDecays) {
        kept_ = static_cast<T>(k.Attr<float>("decay"));
        added_ = T{1} - kept_;
      }
    }

    In<"Param"> param_;
    In<"Moment"> moment_;
    In<"LearningRate"> rate_;
    Out<"ParamOut"> param_out_;
    Out<"MomentOut"> moment_out_;
    Gradient<T> grad_;
    T kept_ = 1, added_ = 1, epsilon_ = 0;
    std::unique_ptr<const Powers> powers_;  // of a rule
  };
};

OpDef& Declare(OpRegistry& ops, const char* type) {
  return ops.Add(type)
      .Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("Moment", "what squares of gradients have added up to; shaped like Param", SameTypeAs("Param"))
      .Input("LearningRate", "one element", SameTypeAs("Param"))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Output("MomentOut", "names Moment's variable", SameTypeAs("Param"))
      .Attr("epsilon", 1e-6f, "keeps the divisor from zero")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("Moment", "squares of gradients", StateSlicing::kWithParam, "moment")
      .Elementwise()
      .NoGrad();
}

}  // namespace

void RegisterAdagrad(OpRegistry& ops) {
  Declare(ops, "adagrad")
      .Doc("A step scaled by the root of the sum of squared gradients.", kAdagradDoc)
      .Kernel<Cpu, Adagrad<false>::Kernels, float, double>();
  Declare(ops, "decayed_adagrad")
      .Doc("A step scaled by the root of a running average of squared gradients.", kDecayedDoc)
      .Attr("decay", 0.95f, "how much of Moment is kept")
      .Kernel<Cpu, Adagrad<true>::Kernels, float, double>();
}

}  // namespace penstock
