// keyed_update_whole: the updates of a key-value store that need the whole key, or whole rows.
#include <cmath>
#include <numbers>

#include "framework/op/op_registry.h"
#include "operators/common/philox.h"
#include "operators/common/reduce.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/keyed_rules.h"
#include "operators/optimizer/keyed_scalars.h"
#include "operators/optimizer/norm.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The update of attribute `rule`, by MXNet's formulas: w is Param, g Grad, lr LearningRate, wd WeightDecay,
t Count, x = clip(Rescale * g), |.| the L2 norm of all elements. Slots are in brackets.

lamb          [State1, State2] m, v: averages of x by beta1, of x^2 by beta2, divided by 1 - beta1^t and
              1 - beta2^t if bias_correction;  u = m / (sqrt(v) + epsilon) + wd * w;  r = |w|, cut to
              lower_bound and upper_bound;  w -= lr * r / |u| * u, where r / |u| is 1 if r or |u| is 0
lars          [State1 m if momentum is not 0] a = eta * |w| / (|Rescale * g| + wd * |w| + epsilon), 1 if a
              norm is 0, or without `adapt`;  m = momentum * m - lr * a * (x + wd * w);  w += m
              momentum_correction: m is kept without lr, so it follows a rate that changes
sgld          w += -lr / 2 * (x + wd * w) + sqrt(lr) * z, z standard normal: a function of noise_key, t and
              the place of the element
groupadagrad  [History] h of each row += mean of x^2 over the row;  w -= lr * x / sqrt(h + epsilon)

groupadagrad changes only the rows that a gradient of rows lists; the others treat the rows that it does not
list as having a gradient of 0.)";

template <typename Device, typename T>
class KeyedWholeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, param_out_, state1_, state2_, state1_out_, state2_out_, history_, history_out_);
    scalars_.Prepare(k);
    ReadAttrs(k);
    const auto rule = k.Attr<std::string>("rule");
    const bool has1 = state1_ && state1_out_, has2 = state2_ && state2_out_;
    if (rule == "lamb") {
      run_ = &KeyedWholeKernel::Lamb;
      if (!has1 || !has2) return k.Error("rule lamb needs State1, State2 and their outputs");
      step_ = k.Workspace(static_cast<std::size_t>(k[param_].shape.Count()) * sizeof(T));
    } else if (rule == "lars") {
      run_ = &KeyedWholeKernel::Lars;
      if (momentum_ != 0 && !has1) return k.Error("rule lars with momentum needs State1 and State1Out");
    } else if (rule == "sgld") {
      run_ = &KeyedWholeKernel::Sgld;
    } else {
      run_ = &KeyedWholeKernel::GroupAdagrad;
      const Dim rows = k[param_].shape.rank() == 0 ? 1 : k[param_].shape[0];
      if (!history_ || !history_out_ || k[history_].shape.Count() != rows)
        return k.Error("rule groupadagrad needs History and HistoryOut with an element for each of ", rows,
                       " rows");
    }
    by_rows_ = rule == "groupadagrad";
    return grad_.Prepare(k, by_rows_ ? WithoutGradient::kStays : WithoutGradient::kMoves,
                         {{param_, param_out_}});
  }

  Status Run(KernelRun& k) override {
    // Norms need a gradient of rows in one piece, with each row once.
    PENSTOCK_RETURN_IF_ERROR(grad_.LoadInOnePiece(k));
    KeyedValues<T> v = scalars_.ValuesOf<T>(k, clip_);
    v.param = k[param_].template Data<T>();
    v.param_out = k[param_out_].template Data<T>();
    Bind(k, v, 0, state1_, state1_out_);
    Bind(k, v, 1, state2_, state2_out_);
    (this->*run_)(k, v);
    return OkStatus();
  }

 private:
  using Values = KeyedValues<T>;

  void ReadAttrs(const KernelSetup& k) {
    const auto number = [&k](const char* name) { return DecimalOf(k.Attr<float>(name)); };
    clip_ = number("clip_gradient");
    momentum_ = number("momentum");
    beta1_ = number("beta1");
    beta2_ = number("beta2");
    epsilon_ = number("epsilon");
    eta_ = number("eta");
    lower_ = number("lower_bound");
    upper_ = number("upper_bound");
    bias_correction_ = k.Attr<bool>("bias_correction");
    momentum_correction_ = k.Attr<bool>("momentum_correction");
    adapt_ = k.Attr<bool>("adapt");
    noise_key_ = static_cast<std::uint64_t>(k.Attr<std::int64_t>("noise_key"));
  }
  static void Bind(KernelRun& k, Values& v, int i, Operand in, Operand out) {
    if (!in || !out) return;
    v.state[i] = k[in].Data<T>();
    v.state_out[i] = k[out].Data<T>();
  }
  static T AsT(double value) { return static_cast<T>(value); }
  static double NormOf(const T* values, Dim count) { return std::sqrt(TotalOfSquares(values, count)); }

  void Lamb(KernelRun& k, const Values& v) {
    const Dim count = k[param_].count();
    T* const step = reinterpret_cast<T*>(k.Workspace(step_));
    const double t = scalars_.At(k, scalars_.count);
    const T beta1 = AsT(beta1_), beta2 = AsT(beta2_), epsilon = AsT(epsilon_);
    const T correct1 = AsT(bias_correction_ ? 1 - std::pow(beta1_, t) : 1);
    const T correct2 = AsT(bias_correction_ ? 1 - std::pow(beta2_, t) : 1);
    grad_.ForEach([=](std::int64_t i, T g) {
      const T x = v.Scaled(g);
      const T m = beta1 * v.state[0][i] + (T{1} - beta1) * x;
      const T s = beta2 * v.state[1][i] + (T{1} - beta2) * x * x;
      v.state_out[0][i] = m;
      v.state_out[1][i] = s;
      step[i] = m / correct1 / (std::sqrt(s / correct2) + epsilon) + v.decay * v.param[i];
    });
    double r = NormOf(v.param, count);
    if (lower_ > 0) r = MaxOrNan(r, lower_);
    if (upper_ > 0) r = MinOrNan(r, upper_);
    const double u = NormOf(step, count);
    const T rate = AsT(scalars_.At(k, scalars_.rate) * (r == 0 || u == 0 ? 1 : r / u));
    ForElements(count, StreamNs<T>(3), [=](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) v.param_out[i] = v.param[i] - rate * step[i];
    });
  }

  void Lars(KernelRun& k, const Values& v) {
    const double rescale = scalars_.At(k, scalars_.rescale), decay = scalars_.At(k, scalars_.decay);
    double adapted = 1;
    if (adapt_) {
      const std::span<const T> grad = grad_.values();
      const double w = NormOf(v.param, k[param_].count());
      const double g = std::abs(rescale) * NormOf(grad.data(), static_cast<Dim>(grad.size()));
      if (w != 0 && g != 0) adapted = eta_ * w / (g + decay * w + epsilon_);
    }
    const double rate = scalars_.At(k, scalars_.rate);
    if (momentum_ == 0) {
      Values made = v;
      made.rate = AsT(rate * adapted);
      grad_.ForEach(KeyedSgd<T>{made});
      return;
    }
    const T mu = AsT(momentum_), outside = momentum_correction_ ? v.rate : T{1};
    const T inside = AsT(momentum_correction_ ? adapted : rate * adapted);
    grad_.ForEach([=](std::int64_t i, T g) {
      const T w = v.param[i];
      const T m = mu * v.state[0][i] - inside * v.decay * w - inside * v.Scaled(g);
      v.state_out[0][i] = m;
      v.param_out[i] = w + outside * m;
    });
  }

  void Sgld(KernelRun& k, const Values& v) {
    const double t = scalars_.At(k, scalars_.count), rate = scalars_.At(k, scalars_.rate);
    // A count that is NaN makes the result NaN.
    const T spread = AsT(std::sqrt(rate) + (t - t));
    const auto step = static_cast<std::uint32_t>(t >= 0 && t < 4294967296.0 ? t : 0);
    const T half = AsT(rate / 2);
    const std::uint64_t key = noise_key_;
    grad_.ForEach([=](std::int64_t i, T g) {
      const T w = v.param[i];
      const T noise = AsT(Normal(PhiloxBlock(key, static_cast<std::uint64_t>(i), step)));
      v.param_out[i] = w - half * (v.Scaled(g) + v.decay * w) + spread * noise;
    });
  }
  // Box and Muller's method, of two uniform numbers in (0, 1].
  static double Normal(const PhiloxWords& words) {
    const auto uniform = [&](std::size_t i) { return (static_cast<double>(words[i]) + 1) * 0x1p-32; };
    return std::sqrt(-2 * std::log(uniform(0))) * std::cos(2 * std::numbers::pi * uniform(1));
  }

  void GroupAdagrad(KernelRun& k, const Values& v) {
    const T* const history = k[history_].template Data<T>();
    T* const history_out = k[history_out_].template Data<T>();
    if (history != history_out) k[history_out_].CopyFrom(k[history_]);
    const Dim width = k[param_].shape().RowWidth();
    const T epsilon = AsT(epsilon_);
    grad_.ForEachRow(width, [=](Dim row, const T* g) {
      const T sum = SumOf<T>(width, [&](Dim j) { return v.Scaled(g[j]) * v.Scaled(g[j]); });
      const T h = history[row] + sum / static_cast<T>(width);
      history_out[row] = h;
      const T divisor = std::sqrt(h + epsilon);
      for (Dim j = 0; j < width; ++j) {
        const Dim i = row * width + j;
        v.param_out[i] = v.param[i] - v.rate * v.Scaled(g[j]) / divisor;
      }
    });
  }

  In<"Param"> param_;
  Out<"ParamOut"> param_out_;
  In<"State1"> state1_;
  In<"State2"> state2_;
  In<"History"> history_;
  Out<"State1Out"> state1_out_;
  Out<"State2Out"> state2_out_;
  Out<"HistoryOut"> history_out_;
  KeyedScalars scalars_;
  Gradient<T> grad_;
  WorkspaceId step_;
  void (KeyedWholeKernel::*run_)(KernelRun&, const Values&) = nullptr;
  double clip_ = 0, momentum_ = 0, beta1_ = 0, beta2_ = 0, epsilon_ = 0, eta_ = 0, lower_ = 0, upper_ = 0;
  std::uint64_t noise_key_ = 0;
  bool bias_correction_ = true, momentum_correction_ = true, adapt_ = true, by_rows_ = false;
};

Status InferKeyedWhole(InferContext& c) { return InferUpdateWithout(c, "History"); }

}  // namespace

void RegisterKeyedUpdateWhole(OpRegistry& ops) {
  DeclareKeyed(ops.Add("keyed_update_whole").Doc("The update of a whole key by one of MXNet's rules.", kDoc))
      .Input("State1", "shaped like Param", SameTypeAs("Param"), Optional())
      .Input("State2", "shaped like Param", SameTypeAs("Param"), Optional())
      .Input("History", "an element for each row of Param", SameTypeAs("Param"), Optional())
      .Output("State1Out", "names State1's variable", SameTypeAs("Param"), Optional())
      .Output("State2Out", "names State2's variable", SameTypeAs("Param"), Optional())
      .Output("HistoryOut", "names History's variable", SameTypeAs("Param"), Optional())
      .Attr("rule", "lars", "the name of the optimizer", OneOf({"groupadagrad", "lamb", "lars", "sgld"}))
      .Attr("momentum", 0.0f, "of lars: how much of State1 is kept")
      .Attr("beta1", 0.9f, "of lamb: how much of the average of gradients is kept")
      .Attr("beta2", 0.999f, "of lamb: how much of the average of squares is kept")
      .Attr("epsilon", 0.0f, "keeps a divisor from zero")
      .Attr("eta", 0.001f, "of lars: the factor of the rate")
      .Attr("lower_bound", 0.0f, "of lamb: the least norm of the weights; 0: off")
      .Attr("upper_bound", 0.0f, "of lamb: the largest norm of the weights; 0: off")
      .Attr("bias_correction", true, "of lamb: whether averages are corrected for their start")
      .Attr("momentum_correction", true, "of lars: whether momentum follows the rate")
      .Attr("adapt", true, "of lars: whether norms scale the rate")
      .Attr("noise_key", std::int64_t{0}, "of sgld: chooses the noise")
      .InferShape(InferKeyedWhole)
      .Optimizes("Param", "Grad")
      .State("State1", "by rule", StateSlicing::kWithParam, "state1")
      .State("State2", "by rule", StateSlicing::kWithParam, "state2")
      .State("History", "of groupadagrad: sums of squares of rows", StateSlicing::kWithParam, "history")
      .NoGrad()
      .Kernel<Cpu, KeyedWholeKernel, float, double>();
}

}  // namespace penstock
