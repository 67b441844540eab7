// keyed_update: the updates of a key-value store that compute each element by itself.
#include <cmath>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"
#include "operators/optimizer/gradient.h"
#include "operators/optimizer/keyed_rules.h"
#include "operators/optimizer/keyed_scalars.h"
#include "operators/optimizer/update.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The update of attribute `rule`, by MXNet's formulas: w is Param, g Grad, lr LearningRate, wd WeightDecay,
t Count, x = clip(Rescale * g), y = clip(Rescale * g + wd * w). State1, State2 and State3 are in brackets.

sgd       [m] m = momentum * m - lr * wd * w - lr * x;  w += m
nag       [m] s = lr * (x + wd * w);  w += -momentum * m + (1 + momentum) * (momentum * m - s);
              m = momentum * m - s
adam      [m, v] m, v: averages of y, y^2 by beta1, beta2;
              w -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)
adagrad   [h] h += x^2;  w -= lr * (x / sqrt(h + epsilon) + wd * w)
rmsprop   [n] n: average of y^2 by gamma1;  w -= lr * y / sqrt(n + epsilon)
          [n, a, d] centered: a: average of y by gamma1;
              d = gamma2 * d - lr * y / sqrt(n - a^2 + epsilon);  w += d
          both: then w is cut to +-clip_weights
adadelta  [a, b] a: average of x^2 by rho;  s = sqrt(b + epsilon) / sqrt(a + epsilon) * x;
              b: average of s^2 by rho;  w -= s + wd * w
ftrl      [z, n] z += x - (sqrt(n + x^2) - sqrt(n)) * w / lr;  n += x^2;
              w = (sign(z) * lamda1 - z) / ((beta + sqrt(n)) / lr + wd) if |z| > lamda1, else 0
signum    [m] m = momentum * m - (1 - momentum) * (wd * w + x);  w = (1 - lr * wd_lh) * w + lr * sign(m)
          momentum 0: w = (1 - lr * wd) * w - lr * sign(g)
adamax    [m, u] m: average of y by beta1;  u = max(beta2 * u, |y|);  w -= lr / (1 - beta1^t) * m / u
nadam     [m, v], Product p: m, v: averages of y, y^2;  b(t) = beta1 * (1 - 0.96^(t * schedule_decay) / 2);
              p *= b(t);  w -= lr * ((1 - b(t)) * y / (1 - p) + b(t+1) * m / (1 - p * b(t+1)))
              / (sqrt(v / (1 - beta2^t)) + epsilon)
ftml      [d, v, z] v: average of y^2;  e = (1 - beta1^t) / lr * (sqrt(v / (1 - beta2^t)) + epsilon);
              z: average of y by beta1, minus (e - beta1 * d) * w;  d = e;  w = -z / d
dcasgd    [p] w -= lr * (x + wd * w + lamda * x^2 * (w - p));  p = w before; at t = 1, p is w
test      w += Rescale * g

An average a of x by b is b * a + (1 - b) * x. Without momentum (0), sgd, nag and signum have no state. Rows
that a gradient of rows does not list are updated as with a gradient of 0; with `lazy`, they and their states
stay.
The numbers of attributes are those that they are written as: 0.9 is 0.9 in double precision.)";

template <typename Device, typename T>
class KeyedUpdateKernel : public Kernel, public RowRule {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, param_out_, state1_, state2_, state3_, product_, state1_out_, state2_out_, state3_out_,
           product_out_);
    scalars_.Prepare(k);
    ReadAttrs(k);
    const Row* row = Find(k.Attr<std::string>("rule"));
    PENSTOCK_CHECK(row != nullptr, "the schema lists the rules");
    run_ = row->run;
    lazy_ = k.Attr<bool>("lazy");
    const int states = row->states(*this);
    const Operand in[] = {state1_, state2_, state3_}, out[] = {state1_out_, state2_out_, state3_out_};
    for (int i = 0; i < states; ++i) {
      if (!in[i] || !out[i])
        return k.Error("rule ", row->name, " needs State", i + 1, " and State", i + 1, "Out");
    }
    if (row->run == &KeyedUpdateKernel::Nadam && (!product_ || !product_out_))
      return k.Error("rule nadam needs Product and ProductOut");
    return grad_.Prepare(k, lazy_ ? WithoutGradient::kStays : WithoutGradient::kMoves,
                         {{param_, param_out_}});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
    KeyedValues<T> v = scalars_.ValuesOf<T>(k, clip_);
    v.param = k[param_].template Data<T>();
    v.param_out = k[param_out_].template Data<T>();
    const Operand in[] = {state1_, state2_, state3_}, out[] = {state1_out_, state2_out_, state3_out_};
    for (int i = 0; i < 3; ++i) {
      if (!in[i] || !out[i]) continue;
      v.state[i] = k[in[i]].template Data<T>();
      v.state_out[i] = k[out[i]].template Data<T>();
      if (lazy_ && grad_.by_rows() && v.state[i] != v.state_out[i]) k[out[i]].CopyFrom(k[in[i]]);
    }
    (this->*run_)(k, v);
    return OkStatus();
  }

  // Rules that leave rows without a gradient as they are. RowStep::whole has the numbers of a step, each f64:
  // LearningRate, WeightDecay, Count, Rescale.
  bool PrepareRows(const KernelSetup& k) override {
    ReadAttrs(k);
    const Row* row = Find(k.Attr<std::string>("rule"));
    update_ = row != nullptr && k.Attr<bool>("lazy") ? row->update : nullptr;
    return update_ != nullptr;
  }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    Values v{};
    v.rate = AsT(step.Whole<double>(0));
    v.decay = AsT(step.Whole<double>(1));
    v.rescale = AsT(step.Whole<double>(3));
    v.clip = AsT(clip_);
    (this->*update_)(step, rows, v);
  }

 private:
  using Values = KeyedValues<T>;
  using Rows = std::span<const RowOfStep>;
  struct Row {
    const char* name;
    void (KeyedUpdateKernel::*run)(KernelRun&, const Values&);
    int (*states)(const KeyedUpdateKernel&);
    void (KeyedUpdateKernel::*update)(const RowStep&, Rows, const Values&) const = nullptr;
  };
  static const Row* Find(const std::string& rule) {
    using K = KeyedUpdateKernel;
    static constexpr auto kNone = [](const K&) { return 0; };
    static constexpr auto kOne = [](const K&) { return 1; };
    static constexpr auto kTwo = [](const K&) { return 2; };
    static constexpr auto kThree = [](const K&) { return 3; };
    static constexpr auto kOfMomentum = [](const K& k) { return k.momentum_ == 0 ? 0 : 1; };
    static constexpr auto kIfCentered = [](const K& k) { return k.centered_ ? 3 : 1; };
    static constexpr Row kRows[] = {
        {"adadelta", &K::Adadelta, kTwo},
        {"adagrad", &K::Adagrad, kOne, &K::AdagradRows},
        {"adam", &K::Adam, kTwo, &K::AdamRows},
        {"adamax", &K::Adamax, kTwo},
        {"dcasgd", &K::Dcasgd, kOne},
        {"ftml", &K::Ftml, kThree},
        {"ftrl", &K::Ftrl, kTwo, &K::FtrlRows},
        {"nadam", &K::Nadam, kTwo},
        {"nag", &K::Nag, kOfMomentum},
        {"rmsprop", &K::Rmsprop, kIfCentered},
        {"sgd", &K::Sgd, kOfMomentum, &K::SgdRows},
        {"signum", &K::Signum, kOfMomentum},
        {"test", &K::Test, kNone, &K::TestRows},
    };
    for (const Row& row : kRows) {
      if (rule == row.name) return &row;
    }
    return nullptr;
  }

  void ReadAttrs(const KernelSetup& k) {
    const auto number = [&k](const char* name) { return DecimalOf(k.Attr<float>(name)); };
    clip_ = number("clip_gradient");
    momentum_ = number("momentum");
    beta1_ = number("beta1");
    beta2_ = number("beta2");
    epsilon_ = static_cast<T>(number("epsilon"));
    gamma1_ = static_cast<T>(number("gamma1"));
    gamma2_ = static_cast<T>(number("gamma2"));
    clip_weights_ = static_cast<T>(number("clip_weights"));
    rho_ = static_cast<T>(number("rho"));
    lamda_ = static_cast<T>(number("lamda"));
    beta_ = static_cast<T>(number("beta"));
    wd_lh_ = static_cast<T>(number("wd_lh"));
    schedule_decay_ = number("schedule_decay");
    centered_ = k.Attr<bool>("centered");
  }

  double RateIn(KernelRun& k) const { return scalars_.At(k, scalars_.rate); }
  double CountIn(KernelRun& k) const { return scalars_.At(k, scalars_.count); }
  static T AsT(double value) { return static_cast<T>(value); }

  void Sgd(KernelRun&, const Values& v) {
    momentum_ == 0 ? grad_.ForEach(KeyedSgd<T>{v}) : grad_.ForEach(KeyedMomentum<T>{v, AsT(momentum_)});
  }
  void Nag(KernelRun&, const Values& v) {
    momentum_ == 0 ? grad_.ForEach(KeyedNag<T>{v}) : grad_.ForEach(KeyedNagMomentum<T>{v, AsT(momentum_)});
  }
  void Adam(KernelRun& k, const Values& v) {
    const double t = CountIn(k);
    const double step = RateIn(k) * std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t));
    if constexpr (std::is_same_v<T, float>) {
      // The common case, by vectors: the gradient is taken as it is.
      if (v.rescale == 1 && v.decay == 0 && v.clip <= 0) {
        const vec::Moments moments = {AsT(beta1_), AsT(beta2_),    v.state[0],
                                      v.state[1],  v.state_out[0], v.state_out[1]};
        return grad_.Update(vec::AdamStep{moments, AsT(step), epsilon_, v.param, v.param_out});
      }
    }
    grad_.ForEach(KeyedAdam<T>{v, AsT(beta1_), AsT(beta2_), epsilon_, AsT(step)});
  }
  void Adagrad(KernelRun&, const Values& v) { grad_.ForEach(KeyedAdagrad<T>{v, epsilon_}); }
  void Rmsprop(KernelRun&, const Values& v) {
    centered_ ? grad_.ForEach(KeyedRmspropCentered<T>{v, gamma1_, gamma2_, epsilon_, clip_weights_})
              : grad_.ForEach(KeyedRmsprop<T>{v, gamma1_, epsilon_, clip_weights_});
  }
  void Adadelta(KernelRun&, const Values& v) { grad_.ForEach(KeyedAdadelta<T>{v, rho_, epsilon_}); }
  void Ftrl(KernelRun&, const Values& v) { grad_.ForEach(KeyedFtrl<T>{v, lamda_, beta_}); }
  void Signum(KernelRun&, const Values& v) {
    momentum_ == 0 ? grad_.ForEach(KeyedSignSgd<T>{v})
                   : grad_.ForEach(KeyedSignum<T>{v, AsT(momentum_), wd_lh_});
  }
  void Adamax(KernelRun& k, const Values& v) {
    const double step = RateIn(k) / (1 - std::pow(beta1_, CountIn(k)));
    grad_.ForEach(KeyedAdamax<T>{v, AsT(beta1_), AsT(beta2_), AsT(step)});
  }
  void Nadam(KernelRun& k, const Values& v) {
    const double t = CountIn(k);
    const auto factor = [this](double step) {
      return beta1_ * (1 - 0.5 * std::pow(0.96, step * schedule_decay_));
    };
    const double now = factor(t), next = factor(t + 1);
    const double product = *k[product_].template Data<double>() * now;
    *k[product_out_].template Data<double>() = product;
    grad_.ForEach(KeyedNadam<T>{v, AsT(beta1_), AsT(beta2_), epsilon_, AsT((1 - now) / (1 - product)),
                                AsT(next / (1 - product * next)), AsT(1 / (1 - std::pow(beta2_, t)))});
  }
  void Ftml(KernelRun& k, const Values& v) {
    const double t = CountIn(k);
    grad_.ForEach(KeyedFtml<T>{v, AsT(beta1_), AsT(beta2_), epsilon_, AsT(1 - std::pow(beta1_, t)),
                               AsT(1 - std::pow(beta2_, t))});
  }
  void Dcasgd(KernelRun& k, const Values& v) { grad_.ForEach(KeyedDcasgd<T>{v, lamda_, AsT(CountIn(k))}); }
  void Test(KernelRun&, const Values& v) { grad_.ForEach(KeyedTest<T>{v}); }

  // Applies the rule that `make` returns for a row's values to each element of each row.
  template <typename Make>
  static void EachRow(const RowStep& step, Rows rows, Values v, const Make& make) {
    for (const RowOfStep& row : rows) {
      v.param = v.param_out = row.Column<T>(step, 0);
      for (std::size_t state = 0; state + 1 < step.columns.size() && state < 3; ++state)
        v.state[state] = v.state_out[state] = row.Column<T>(step, state + 1);
      const auto rule = make(v);
      const T* const grad = row.Gradient<T>();
      for (Dim i = 0; i < step.width; ++i) rule(i, grad[i]);
    }
  }
  void SgdRows(const RowStep& step, Rows rows, const Values& v) const {
    if (momentum_ == 0) return EachRow(step, rows, v, [](const Values& of) { return KeyedSgd<T>{of}; });
    const T mu = AsT(momentum_);
    EachRow(step, rows, v, [=](const Values& of) { return KeyedMomentum<T>{of, mu}; });
  }
  void AdamRows(const RowStep& step, Rows rows, const Values& v) const {
    const double t = step.Whole<double>(2), rate = step.Whole<double>(0);
    const T corrected = AsT(rate * std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t)));
    EachRow(step, rows, v, [=, this](const Values& of) {
      return KeyedAdam<T>{of, AsT(beta1_), AsT(beta2_), epsilon_, corrected};
    });
  }
  void AdagradRows(const RowStep& step, Rows rows, const Values& v) const {
    EachRow(step, rows, v, [this](const Values& of) { return KeyedAdagrad<T>{of, epsilon_}; });
  }
  void FtrlRows(const RowStep& step, Rows rows, const Values& v) const {
    EachRow(step, rows, v, [this](const Values& of) { return KeyedFtrl<T>{of, lamda_, beta_}; });
  }
  void TestRows(const RowStep& step, Rows rows, const Values& v) const {
    EachRow(step, rows, v, [](const Values& of) { return KeyedTest<T>{of}; });
  }

  In<"Param"> param_;
  Out<"ParamOut"> param_out_;
  In<"State1"> state1_;
  In<"State2"> state2_;
  In<"State3"> state3_;
  In<"Product"> product_;
  Out<"State1Out"> state1_out_;
  Out<"State2Out"> state2_out_;
  Out<"State3Out"> state3_out_;
  Out<"ProductOut"> product_out_;
  KeyedScalars scalars_;
  Gradient<T> grad_;
  void (KeyedUpdateKernel::*run_)(KernelRun&, const Values&) = nullptr;
  void (KeyedUpdateKernel::*update_)(const RowStep&, Rows, const Values&) const = nullptr;
  double clip_ = 0, momentum_ = 0, beta1_ = 0, beta2_ = 0, schedule_decay_ = 0;
  T epsilon_ = 0, gamma1_ = 0, gamma2_ = 0, clip_weights_ = 0, rho_ = 0, lamda_ = 0, beta_ = 0, wd_lh_ = 0;
  bool centered_ = false, lazy_ = false;
};

}  // namespace

void RegisterKeyedUpdate(OpRegistry& ops) {
  DeclareKeyed(ops.Add("keyed_update").Doc("The update of a key by one of MXNet's rules.", kDoc))
      .Input("State1", "shaped like Param", SameTypeAs("Param"), Optional())
      .Input("State2", "shaped like Param", SameTypeAs("Param"), Optional())
      .Input("State3", "shaped like Param", SameTypeAs("Param"), Optional())
      .Input("Product", "one element, 1 before the first update", Only(DType::kFp64), Optional())
      .Output("State1Out", "names State1's variable", SameTypeAs("Param"), Optional())
      .Output("State2Out", "names State2's variable", SameTypeAs("Param"), Optional())
      .Output("State3Out", "names State3's variable", SameTypeAs("Param"), Optional())
      .Output("ProductOut", "names Product's variable", Only(DType::kFp64), Optional())
      .Attr("rule", "sgd", "the name of the optimizer",
            OneOf({"adadelta", "adagrad", "adam", "adamax", "dcasgd", "ftml", "ftrl", "nadam", "nag",
                   "rmsprop", "sgd", "signum", "test"}))
      .Attr("momentum", 0.0f, "how much of State1 is kept")
      .Attr("beta1", 0.9f, "how much of an average of gradients is kept")
      .Attr("beta2", 0.999f, "how much of an average of squares is kept")
      .Attr("epsilon", 1e-8f, "keeps a divisor from zero")
      .Attr("gamma1", 0.9f, "of rmsprop: how much of the averages is kept")
      .Attr("gamma2", 0.9f, "of rmsprop: how much of the last step is kept")
      .Attr("centered", false, "of rmsprop: whether the square of the average is taken off")
      .Attr("clip_weights", 0.0f, "of rmsprop: bounds the magnitude of weights; 0: off")
      .Attr("rho", 0.9f, "of adadelta: how much of the averages is kept")
      .Attr("lamda", 0.04f, "lamda of dcasgd, lamda1 of ftrl")
      .Attr("beta", 1.0f, "of ftrl: slows the first steps")
      .Attr("wd_lh", 0.0f, "of signum: weight decay outside of the sign")
      .Attr("schedule_decay", 0.004f, "of nadam: how fast its momentum grows")
      .Attr("lazy", false, "whether rows that a gradient does not list stay as they are")
      .InferShape(InferUpdate)
      .Optimizes("Param", "Grad")
      .State("State1", "by rule", StateSlicing::kWithParam, "state1")
      .State("State2", "by rule", StateSlicing::kWithParam, "state2")
      .State("State3", "by rule", StateSlicing::kWithParam, "state3")
      .State("Product", "of nadam: the product of its momenta", StateSlicing::kWhole, "product", 1.0)
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, KeyedUpdateKernel, float, double>();
}

}  // namespace penstock
