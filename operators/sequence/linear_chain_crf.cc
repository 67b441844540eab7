// linear_chain_crf: the negative log-likelihood of tag sequences in a conditional random field.
#include "operators/sequence/linear_chain_crf.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/token_sequences.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each sequence of tags y (Label) and emissions x (Emission), with weights w (Transition):

score(y)      = w[start, y_0] + sum x[i, y_i] + sum w[y_(i-1), y_i] + w[stop, y_last]
LogLikelihood = log(sum over all y' of exp(score(y'))) - score(y)

Despite its name, LogLikelihood is the negative log-likelihood, which is a cost. The rows of Transition are
start, stop, then one per tag. A sequence without steps costs 0. Sequences are given by the LoD of Label or,
with Length, Emission is [sequences, steps, tags] and Label is [sequences, steps]; steps beyond the length of
a sequence are ignored. The gradient uses EmissionExps = exp(Emission - the largest emission of the step),
TransitionExps = exp(Transition) and Alpha, the forward vectors, each scaled to a sum of 1. Lafferty,
McCallum, Pereira: "Conditional Random Fields", ICML 2001.)";

Status InferLinearChainCrf(InferContext& c) {
  const Shape &emission = c.ShapeOf("Emission"), &transition = c.ShapeOf("Transition"),
              &label = c.ShapeOf("Label");
  const bool padded = c.HasInput("Length");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Emission", padded ? 3 : 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Transition", 2));
  const Dim tags = transition[1];
  if (tags != kUnknownDim && !Compatible(transition[0], tags + 2))
    return c.Error("Transition (", transition, ") must have two rows more than columns");
  if (!Compatible(emission[emission.rank() - 1], tags))
    return c.Error("width of Emission (", emission[emission.rank() - 1], ") must be the ", tags,
                   " tags of Transition");
  const int extents = padded ? 2 : 1;
  bool fits = label.rank() == extents || (label.rank() == extents + 1 && Compatible(label[extents], 1));
  for (int i = 0; fits && i < extents; ++i) fits = Compatible(label[i], emission[i]);
  if (!fits)
    return c.Error("Label (", label, ") must have one tag for each of the steps ", emission.First(extents),
                   " of Emission");
  for (const char* slot : {"Alpha", "EmissionExps"}) PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, emission));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("TransitionExps", transition));
  return c.SetShape("LogLikelihood", {padded ? emission[0] : kUnknownDim, 1});
}

// The tags of sequences, each in [0, tags).
class TagSequences {
 public:
  Status Prepare(const KernelSetup& k, Dim tags) {
    tags_ = tags;
    what_ = StrCat(k.op().type(), ": Label");
    if (tags == 0) return k.Error("Transition has no tag");
    return sequences_.Prepare(k, "Label", "Length");
  }
  Status Find(KernelRun& k) {
    PENSTOCK_RETURN_IF_ERROR(sequences_.Find(k));
    label_ = std::as_const(k[sequences_.operand()]).Data<std::int64_t>();
    for (Dim s = 0; s < count(); ++s) {
      for (Dim i = 0; i < length(s); ++i) {
        const std::int64_t tag = of(s)[i];
        if (tag < 0 || tag >= tags_)
          return InvalidArgument("E-op-label", what_, ": tag ", tag, " must be in [0, ", tags_, ")");
      }
    }
    return OkStatus();
  }
  Dim count() const { return sequences_.count(); }
  Dim begin(Dim s) const { return sequences_.begin(s); }
  Dim length(Dim s) const { return sequences_.length(s); }
  const std::int64_t* of(Dim s) const { return label_ + begin(s); }

 private:
  TokenSequences sequences_;
  std::string what_;
  const std::int64_t* label_ = nullptr;
  Dim tags_ = 0;
};

template <typename Device, typename T>
class LinearChainCrfKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(emission_, transition_, alpha_, emission_exps_, transition_exps_);
    tags_ = k[transition_].shape[1];
    for (const char* slot : {"Alpha", "EmissionExps", "TransitionExps"})
      PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, slot));
    PENSTOCK_RETURN_IF_ERROR(cost_.Prepare(k, "LogLikelihood", DTypeOfT<T>::kValue, {0, 1}));
    return labels_.Prepare(k, tags_);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(labels_.Find(k));
    const T* const emission = std::as_const(k[emission_]).template Data<T>();
    const T* const weights = std::as_const(k[transition_]).template Data<T>();
    T* const exps = k[transition_exps_].template Data<T>();
    std::transform(weights, weights + k[transition_].shape().Count(), exps, [](T w) { return std::exp(w); });
    std::ranges::fill(k[alpha_].template Span<T>(), T{0});
    // Includes the padding, as in Fluid.
    Exponentials(emission, k[emission_].shape().Count() / std::max(tags_, Dim{1}),
                 k[emission_exps_].template Data<T>());
    T* const cost = cost_.Make(k, labels_.count()).template Data<T>();
    for (Dim s = 0; s < labels_.count(); ++s) {
      cost[s] = 0;
      if (labels_.length(s) == 0) continue;
      const Dim from = labels_.begin(s) * tags_;
      const T* const emission_exps = k[emission_exps_].template Data<T>() + from;
      const T all = Peaks(emission + from, labels_.length(s)) +
                    LinearChain<T>(exps, tags_)
                        .Forward(emission_exps, labels_.length(s), k[alpha_].template Data<T>() + from);
      if (all == -std::numeric_limits<T>::infinity())
        return InvalidArgument("E-op-value", "linear_chain_crf: no tags are possible for sequence ", s,
                               ": the exponentials of Transition are 0 on every path");
      cost[s] = all - Score(emission + from, weights, labels_.of(s), labels_.length(s));
    }
    return OkStatus();
  }

 private:
  // Returns the largest emission of a step.
  T Peak(const T* emission) const {
    T peak = emission[0];
    for (Dim t = 1; t < tags_; ++t) peak = MaxOrNan(peak, emission[t]);
    return peak;
  }
  T Peaks(const T* emission, Dim steps) const {
    T sum = 0;
    for (Dim i = 0; i < steps; ++i) sum += Peak(emission + i * tags_);
    return sum;
  }
  void Exponentials(const T* emission, Dim steps, T* exps) const {
    for (Dim i = 0; i < steps; ++i, emission += tags_, exps += tags_) {
      const T peak = Peak(emission);
      for (Dim t = 0; t < tags_; ++t) exps[t] = std::exp(emission[t] - peak);
    }
  }
  T Score(const T* emission, const T* weights, const std::int64_t* tags, Dim length) const {
    T score = weights[tags[0]] + weights[tags_ + tags[length - 1]];
    for (Dim i = 0; i < length; ++i) score += emission[i * tags_ + tags[i]];
    for (Dim i = 1; i < length; ++i) score += weights[(2 + tags[i - 1]) * tags_ + tags[i]];
    return score;
  }

  In<"Emission"> emission_;
  In<"Transition"> transition_;
  Out<"Alpha"> alpha_;
  Out<"EmissionExps"> emission_exps_;
  Out<"TransitionExps"> transition_exps_;
  TagSequences labels_;
  RowsOutput cost_;
  Dim tags_ = 0;
};

// The probabilities of each tag and each pair of tags, minus 1 where the true path has the tag or pair.
template <typename Device, typename T>
class LinearChainCrfGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(alpha_, emission_exps_, transition_exps_, dcost_);
    dcost_name_ = StrCat(k.op().type(), ": LogLikelihood@GRAD");
    k.Bind(demission_, dtransition_);
    const Shape &emission = k.Input("Emission").shape, &transition = k.Input("Transition").shape;
    tags_ = transition.rank() == 2 ? transition[1] : 0;
    if (emission.rank() < 2 || emission[emission.rank() - 1] != tags_ ||
        transition != Shape{tags_ + 2, tags_})
      return k.Error("Emission (", emission, ") and Transition (", transition, ") must have the same tags");
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Alpha", emission));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "EmissionExps", emission));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "TransitionExps", transition));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Label", emission.Count() / std::max<Dim>(tags_, 1)));
    return labels_.Prepare(k, tags_);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(labels_.Find(k));
    PENSTOCK_RETURN_IF_ERROR(CheckRows(dcost_name_, k[dcost_], labels_.count(), 1));
    const auto dcost = std::as_const(k[dcost_]).template Span<T>();
    const LinearChain<T> chain(std::as_const(k[transition_exps_]).template Data<T>(), tags_);
    if (demission_) std::ranges::fill(k[demission_].template Span<T>(), T{0});
    if (dtransition_) std::ranges::fill(k[dtransition_].template Span<T>(), T{0});
    for (Dim s = 0; s < labels_.count(); ++s) {
      const Dim from = labels_.begin(s) * tags_, length = labels_.length(s);
      const T* const alpha = std::as_const(k[alpha_]).template Data<T>() + from;
      const T* const emission = std::as_const(k[emission_exps_]).template Data<T>() + from;
      beta_.resize(static_cast<std::size_t>(length * tags_));
      chain.Backward(emission, length, beta_.data());
      Shares(alpha, labels_.of(s), length, dcost[static_cast<std::size_t>(s)]);
      if (demission_) std::ranges::copy(shares_, k[demission_].template Data<T>() + from);
      if (!dtransition_ || length == 0) continue;
      T* const dweights = k[dtransition_].template Data<T>();
      for (Dim t = 0; t < tags_; ++t) {
        dweights[t] += shares_[static_cast<std::size_t>(t)];
        dweights[tags_ + t] += shares_[static_cast<std::size_t>((length - 1) * tags_ + t)];
      }
      T* const pairs = dweights + 2 * tags_;
      chain.AddPairs(emission, length, alpha, beta_.data(), dcost[static_cast<std::size_t>(s)], pairs);
      for (Dim i = 1; i < length; ++i)
        pairs[labels_.of(s)[i - 1] * tags_ + labels_.of(s)[i]] -= dcost[static_cast<std::size_t>(s)];
    }
    return OkStatus();
  }

 private:
  // shares_ holds the gradient of a sequence's emissions.
  void Shares(const T* alpha, const std::int64_t* tags, Dim length, T dcost) {
    shares_.resize(beta_.size());
    for (Dim i = 0; i < length; ++i) {
      const T* const before = alpha + i * tags_;
      const T* const after = beta_.data() + i * tags_;
      T* const share = shares_.data() + i * tags_;
      T sum = 0;
      for (Dim t = 0; t < tags_; ++t) sum += share[t] = before[t] * after[t];
      for (Dim t = 0; t < tags_; ++t) share[t] *= dcost / sum;
      share[tags[i]] -= dcost;
    }
  }

  In<"Alpha"> alpha_;
  In<"EmissionExps"> emission_exps_;
  In<"TransitionExps"> transition_exps_;
  In<"LogLikelihood@GRAD"> dcost_;
  Out<"Emission@GRAD"> demission_;
  Out<"Transition@GRAD"> dtransition_;
  std::string dcost_name_;
  TagSequences labels_;
  Dim tags_ = 0;
  std::vector<T> beta_, shares_;
};

}  // namespace

void RegisterLinearChainCrf(OpRegistry& ops) {
  ops.Add("linear_chain_crf")
      .Doc("The negative log-likelihood of tag sequences in a linear-chain conditional random field.", kDoc)
      .Input("Emission", "the score of each tag, in sequences", Floats())
      .Input("Transition", "[tags + 2, tags]", SameTypeAs("Emission"))
      .Input("Label", "the true tags", Only(DType::kInt64))
      .Input("Length", "the lengths of padded sequences", Only(DType::kInt64), Optional())
      .Output("Alpha", "the forward vectors", SameTypeAs("Emission"), Intermediate() | Apart())
      .Output("EmissionExps", "exponentials of Emission", SameTypeAs("Emission"), Intermediate() | Apart())
      .Output("TransitionExps", "exponentials of Transition", SameTypeAs("Emission"),
              Intermediate() | Apart())
      .Output("LogLikelihood", "the cost of each sequence, [sequences, 1]", SameTypeAs("Emission"), Apart())
      .InferShape(InferLinearChainCrf)
      .Kernel<Cpu, LinearChainCrfKernel, float, double>()
      .Grad({.reads = {"Emission", "Transition", "Label", "Length"},
             .reads_outputs = {"Alpha", "EmissionExps", "TransitionExps"},
             .yields = {"Emission", "Transition"},
             .apart = {"Emission", "Transition"}})
      .GradKernel<Cpu, LinearChainCrfGradKernel, float, double>();
}

}  // namespace penstock
