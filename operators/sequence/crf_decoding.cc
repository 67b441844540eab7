// crf_decoding: the most likely sequence of tags in a linear-chain conditional random field.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/token_sequences.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Finds, for each sequence of Emission, the path y that maximises

start[y_0] + sum Emission[i, y_i] + sum transition[y_(i-1), y_i] + stop[y_last]

Of equally good paths, it selects the one with the smaller tags at the end. The rows of Transition are start,
stop, then one per tag. With Label, ViterbiPath says whether the path agrees with it: 1 or 0. Sequences are
given by LoD or, with Length, Emission is [sequences, steps, tags] and ViterbiPath is [sequences, steps], 0
beyond the end of a sequence.)";

Status InferCrfDecoding(InferContext& c) {
  const Shape& emission = c.ShapeOf("Emission");
  const Shape& transition = c.ShapeOf("Transition");
  const bool padded = c.HasInput("Length");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Emission", padded ? 3 : 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Transition", 2));
  const Dim tags = transition[1];
  if (tags != kUnknownDim && !Compatible(transition[0], tags + 2))
    return c.Error("Transition (", transition, ") must have two rows more than columns");
  if (!Compatible(emission[emission.rank() - 1], tags))
    return c.Error("width of Emission (", emission[emission.rank() - 1], ") must be the ", tags,
                   " tags of Transition");
  c.ShareLod("Emission", "ViterbiPath");
  return c.SetShape("ViterbiPath", padded ? emission.First(2) : Shape{emission[0], 1});
}

template <typename Device, typename T>
class CrfDecodingKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(emission_.Prepare(k, "Emission", "Length"));
    k.Bind(transition_, label_, path_);
    tags_ = k[transition_].shape[1];
    if (tags_ == 0) return k.Error("Transition (", k[transition_].shape, ") has no tag");
    if (label_ && k[label_].shape.Count() != k[path_].shape.Count())
      return k.Error("Label (", k[label_].shape, ") must have the ", k[path_].shape.Count(),
                     " elements of ViterbiPath");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(emission_.Find(k));
    const T* const emission = std::as_const(k[emission_.operand()]).template Data<T>();
    const T* const transition = std::as_const(k[transition_]).template Data<T>();
    const auto path = k[path_].template Span<std::int64_t>();
    std::ranges::fill(path, 0);
    for (Dim s = 0; s < emission_.count(); ++s) {
      if (emission_.length(s) == 0) continue;
      Decode(emission + emission_.begin(s) * tags_, transition, emission_.length(s),
             path.data() + emission_.begin(s));
    }
    if (!label_) return OkStatus();
    const std::int64_t* const label = std::as_const(k[label_]).template Data<std::int64_t>();
    for (Dim s = 0; s < emission_.count(); ++s) {
      for (Dim i = emission_.begin(s); i < emission_.begin(s) + emission_.length(s); ++i)
        path[static_cast<std::size_t>(i)] = path[static_cast<std::size_t>(i)] == label[i] ? 1 : 0;
    }
    return OkStatus();
  }

 private:
  // best_[t] is the score of the best path so far that ends in t; from_[i, t] is the tag before t on that
  // path at step i.
  void Decode(const T* emission, const T* weights, Dim length, std::int64_t* path) {
    const T* const stop = weights + tags_;
    const T* const transition = weights + 2 * tags_;
    best_.resize(static_cast<std::size_t>(tags_));
    next_.resize(best_.size());
    from_.resize(static_cast<std::size_t>(length * tags_));
    for (Dim t = 0; t < tags_; ++t) best_[static_cast<std::size_t>(t)] = weights[t] + emission[t];
    for (Dim i = 1; i < length; ++i) {
      for (Dim t = 0; t < tags_; ++t) {
        const Dim before =
            Best([&](Dim b) { return best_[static_cast<std::size_t>(b)] + transition[b * tags_ + t]; });
        from_[static_cast<std::size_t>(i * tags_ + t)] = before;
        next_[static_cast<std::size_t>(t)] = best_[static_cast<std::size_t>(before)] +
                                             transition[before * tags_ + t] + emission[i * tags_ + t];
      }
      std::swap(best_, next_);
    }
    Dim tag = Best([&](Dim t) { return best_[static_cast<std::size_t>(t)] + stop[t]; });
    for (Dim i = length - 1; i >= 0; --i) {
      path[i] = tag;
      if (i > 0) tag = from_[static_cast<std::size_t>(i * tags_ + tag)];
    }
  }

  // Returns the tag with the highest score, the first of equal ones; the first NaN if there is one.
  template <typename Score>
  Dim Best(Score&& score) const {
    Dim best = 0;
    for (Dim t = 1; t < tags_ && !IsNan(score(best)); ++t) {
      if (score(t) > score(best) || IsNan(score(t))) best = t;
    }
    return best;
  }

  TokenSequences emission_;
  In<"Transition"> transition_;
  In<"Label"> label_;
  Out<"ViterbiPath"> path_;
  Dim tags_ = 0;
  std::vector<T> best_, next_;
  std::vector<Dim> from_;
};

}  // namespace

void RegisterCrfDecoding(OpRegistry& ops) {
  ops.Add("crf_decoding")
      .Doc("The most likely sequence of tags in a linear-chain conditional random field.", kDoc)
      .Input("Emission", "the score of each tag, in sequences", Floats())
      .Input("Transition", "[tags + 2, tags]", SameTypeAs("Emission"))
      .Input("Label", "the true tags", Only(DType::kInt64), Optional())
      .Input("Length", "the lengths of padded sequences", Only(DType::kInt64), Optional())
      .Output("ViterbiPath", "the tags, or whether they agree with Label", Only(DType::kInt64), Apart())
      .Nan("NaN is the highest score.")
      .InferShape(InferCrfDecoding)
      .Kernel<Cpu, CrfDecodingKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
