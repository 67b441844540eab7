// rank_loss, margin_rank_loss: losses for pairs of scores whose order is given by a label.
#include <algorithm>
#include <cmath>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kRankDoc[] = R"(
Out = log(1 + exp(Left - Right)) - Label * (Left - Right), for labels from 0 (Right ranks first) to 1 (Left
ranks first). Label has no gradient.
Burges et al.: "Learning to rank using gradient descent", ICML 2005.)";

constexpr char kMarginDoc[] = R"(
Out = max(0, margin - Label * (X1 - X2)), for labels of 1 (X1 ranks first) and -1 (X2 ranks first). Activated
is 1 where Out is positive, otherwise 0. Label has no gradient.)";

// Whether the shape holds one number per row: [n] and [n, 1] are equivalent, as in Fluid.
bool AreAlike(const Shape& a, const Shape& b) {
  const auto is_column = [](const Shape& x) { return x.rank() == 1 || (x.rank() == 2 && x[1] == 1); };
  return Compatible(a, b) || (is_column(a) && is_column(b) && Compatible(a[0], b[0]));
}

// The three inputs must have the same shape, which each output has too.
std::function<Status(InferContext&)> AllAlike(std::vector<std::string> inputs,
                                              std::vector<std::string> outputs) {
  return [inputs = std::move(inputs), outputs = std::move(outputs)](InferContext& c) {
    const std::string& first = inputs.front();
    for (const std::string& slot : inputs) {
      if (AreAlike(c.ShapeOf(slot), c.ShapeOf(first))) continue;
      return c.Error(slot, " (", c.ShapeOf(slot), ") must have the shape of ", first, " (", c.ShapeOf(first),
                     ")");
    }
    for (const std::string& slot : outputs) PENSTOCK_RETURN_IF_ERROR(c.ShareAll(first, slot));
    return OkStatus();
  };
}

// Math names the slots and provides
//   T Out(label, difference)     `difference` is the first score minus the second
//   T Slope(label, seen)         the derivative by the difference; `seen` is the difference, or Activated
template <typename Math>
struct Ranking {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(label_);
      first_ = k.Input(Math::kFirst);
      second_ = k.Input(Math::kSecond);
      k.Bind(out_);
      math_.Read(k);
      if constexpr (Math::kKeepsActivated) {
        k.Bind(activated_);
        return RequireOutput(k, "Activated");
      }
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      const T* const label = k[label_].template Data<T>();
      const T* const first = k[first_].template Data<T>();
      const T* const second = k[second_].template Data<T>();
      T* const out = k[out_].template Data<T>();
      const std::int64_t count = k[label_].count();
      for (std::int64_t i = 0; i < count; ++i) out[i] = math_.Out(label[i], first[i] - second[i]);
      if constexpr (Math::kKeepsActivated) {
        T* const activated = k[activated_].template Data<T>();
        for (std::int64_t i = 0; i < count; ++i) activated[i] = Choose(out[i] > T{0}, T{1}, T{0}, out[i]);
      }
      return OkStatus();
    }

   private:
    In<"Label"> label_;
    Out<"Out"> out_;
    Out<"Activated"> activated_;
    Operand first_, second_;
    Math math_;
  };

  template <typename Device, typename T>
  class Backward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(label_);
      if constexpr (Math::kKeepsActivated) {
        seen_ = k.Input("Activated");
        PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Activated", k[label_].shape));
      } else {
        seen_ = k.Input(Math::kFirst);
        second_ = k.Input(Math::kSecond);
        PENSTOCK_RETURN_IF_ERROR(RequireCount(k, Math::kFirst, k[label_].shape.Count()));
        PENSTOCK_RETURN_IF_ERROR(RequireCount(k, Math::kSecond, k[label_].shape.Count()));
      }
      k.Bind(dout_);
      dfirst_ = k.Output(std::string(Math::kFirst) + kGradSuffix);
      dsecond_ = k.Output(std::string(Math::kSecond) + kGradSuffix);
      math_.Read(k);
      return RequireShape(k, "Out@GRAD", k[label_].shape);
    }
    Status Run(KernelRun& k) override {
      const T* const label = k[label_].template Data<T>();
      const T* const seen = k[seen_].template Data<T>();
      const T* const second = second_ ? k[second_].template Data<T>() : nullptr;
      const T* const dout = k[dout_].template Data<T>();
      T* const dfirst = dfirst_ ? k[dfirst_].template Data<T>() : nullptr;
      T* const dsecond = dsecond_ ? k[dsecond_].template Data<T>() : nullptr;
      const std::int64_t count = k[label_].count();
      for (std::int64_t i = 0; i < count; ++i) {
        const T slope = dout[i] * math_.Slope(label[i], second == nullptr ? seen[i] : seen[i] - second[i]);
        if (dfirst != nullptr) dfirst[i] = slope;
        if (dsecond != nullptr) dsecond[i] = -slope;
      }
      return OkStatus();
    }

   private:
    In<"Label"> label_;
    In<"Out@GRAD"> dout_;
    Operand seen_, second_, dfirst_, dsecond_;
    Math math_;
  };
};

struct Rank {
  static constexpr const char* kFirst = "Left";
  static constexpr const char* kSecond = "Right";
  static constexpr bool kKeepsActivated = false;
  void Read(const KernelSetup&) {}
  template <typename T>
  T Out(T label, T difference) const {
    return std::max(difference, T{0}) + std::log1p(std::exp(-std::abs(difference))) - label * difference;
  }
  template <typename T>
  T Slope(T label, T difference) const {
    return T{1} / (T{1} + std::exp(-difference)) - label;
  }
};

struct MarginRank {
  static constexpr const char* kFirst = "X1";
  static constexpr const char* kSecond = "X2";
  static constexpr bool kKeepsActivated = true;
  void Read(const KernelSetup& k) { margin = k.Attr<float>("margin"); }
  template <typename T>
  T Out(T label, T difference) const {
    return MaxOrNan(T{0}, static_cast<T>(margin) - label * difference);
  }
  template <typename T>
  T Slope(T label, T activated) const {
    return -label * activated;
  }
  float margin = 0;
};

}  // namespace

void RegisterRankingLosses(OpRegistry& ops) {
  ops.Add("rank_loss")
      .Doc("The log loss of the order of two scores.", kRankDoc)
      .Input("Label", "from 0 to 1", Floats())
      .Input("Left", "scores, shaped like Label", SameTypeAs("Label"))
      .Input("Right", "scores, shaped like Label", SameTypeAs("Label"))
      .Output("Out", "shaped like Label", SameTypeAs("Label"))
      .InferShape(AllAlike({"Label", "Left", "Right"}, {"Out"}))
      .Kernel<Cpu, Ranking<Rank>::Forward, float, double>()
      .Grad({.reads = {"Label", "Left", "Right"}, .yields = {"Left", "Right"}})
      .GradKernel<Cpu, Ranking<Rank>::Backward, float, double>();
  ops.Add("margin_rank_loss")
      .Doc("The hinge loss of the order of two scores.", kMarginDoc)
      .Input("X1", "scores", Floats())
      .Input("X2", "scores, shaped like X1", SameTypeAs("X1"))
      .Input("Label", "1 or -1, shaped like X1", SameTypeAs("X1"))
      .Output("Activated", "1 where there is a loss, otherwise 0", SameTypeAs("X1"), Intermediate())
      .Output("Out", "shaped like X1", SameTypeAs("X1"))
      .Attr("margin", 0.0f, "the required lead of the score that ranks first")
      .InferShape(AllAlike({"Label", "X1", "X2"}, {"Out", "Activated"}))
      .Kernel<Cpu, Ranking<MarginRank>::Forward, float, double>()
      .Grad({.reads = {"Label"}, .reads_outputs = {"Activated"}, .yields = {"X1", "X2"}})
      .GradKernel<Cpu, Ranking<MarginRank>::Backward, float, double>()
      .GradDef()
      .InferShape([](InferContext& c) {
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Label", "X1@GRAD"));
        return c.ShareAll("Label", "X2@GRAD");
      });
}

}  // namespace penstock
