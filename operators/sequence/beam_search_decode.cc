// beam_search_decode: the sentences that a beam search has found, traced back from their last tokens.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/nan.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Ids and Scores are arrays of the selected tokens and scores of each step of beam_search. The two levels of
their LoD say which branches belong to a source, and which tokens continue a branch. The sentences of a source
are its branches at the last step at which it has any, at most beam_size; each is traced back to the first
step. If a sentence ends with several end_id tokens, one is kept. The sentences of a source are sorted by
descending score; those whose score is NaN come last.

SentenceIds and SentenceScores have two LoD levels: sources of sentences, and sentences of tokens.)";

Status InferBeamSearchDecode(InferContext& c) {
  for (const char* slot : {"SentenceIds", "SentenceScores"}) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {kUnknownDim}));
    c.SetLodLevel(slot, 2);
  }
  return OkStatus();
}

// The arguments of one step: tokens, scores and two LoD levels.
template <typename T>
struct BeamStep {
  const std::int64_t* ids;
  const T* scores;
  Offsets sources, branches;
};

// The sentences of a source, each in reverse.
template <typename T>
struct Sentence {
  Dim at = 0;  // index of the token at the step that is read next
  std::vector<std::int64_t> ids;
  std::vector<T> scores;
};

template <typename Device, typename T>
class BeamSearchDecodeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(ids_, scores_);
    beam_size_ = static_cast<std::size_t>(k.Attr<std::int32_t>("beam_size"));
    end_id_ = k.Attr<std::int32_t>("end_id");
    PENSTOCK_RETURN_IF_ERROR(sentence_ids_.Prepare(k, "SentenceIds", DType::kInt64, {0}));
    return sentence_scores_.Prepare(k, "SentenceScores", DTypeOfT<T>::kValue, {0});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(FindSteps(k));
    lod_.Start(2);
    all_ids_.clear();
    all_scores_.clear();
    for (Dim source = 0; source < steps_.front().sources.count(); ++source) {
      PENSTOCK_RETURN_IF_ERROR(Follow(source));
      order_.resize(count_);
      for (std::size_t i = 0; i < count_; ++i) order_[i] = i;
      std::ranges::sort(order_, [this](std::size_t a, std::size_t b) {
        const T first = sentences_[a].scores.front(), second = sentences_[b].scores.front();
        if (first > second || IsNan(first) != IsNan(second)) return first > second || IsNan(second);
        return a < b && !(first < second);
      });
      lod_.Add(0, static_cast<Dim>(count_));
      for (const std::size_t i : order_) {
        const Sentence<T>& sentence = sentences_[i];
        lod_.Add(1, static_cast<Dim>(sentence.ids.size()));
        all_ids_.insert(all_ids_.end(), sentence.ids.rbegin(), sentence.ids.rend());
        all_scores_.insert(all_scores_.end(), sentence.scores.rbegin(), sentence.scores.rend());
      }
    }
    Tensor& ids = sentence_ids_.Make(k, static_cast<Dim>(all_ids_.size()));
    Tensor& scores = sentence_scores_.Make(k, static_cast<Dim>(all_scores_.size()));
    std::ranges::copy(all_ids_, ids.template Data<std::int64_t>());
    std::ranges::copy(all_scores_, scores.template Data<T>());
    lod_.Set(ids);
    scores.ShareLod(ids);
    return OkStatus();
  }

 private:
  Status FindSteps(KernelRun& k) {
    const auto* const ids = k.Var(ids_).template If<TensorArray>();
    const auto* const scores = k.Var(scores_).template If<TensorArray>();
    if (ids == nullptr || scores == nullptr || ids->empty() || ids->size() != scores->size())
      return InvalidArgument("E-op-value", "beam_search_decode: Ids has ", ids == nullptr ? 0 : ids->size(),
                             " steps and Scores ", scores == nullptr ? 0 : scores->size(),
                             "; both must have the same number, at least 1");
    steps_.clear();
    for (std::size_t i = 0; i < ids->size(); ++i) {
      const Tensor &token = (*ids)[i], &score = (*scores)[i];
      if (!token.initialized() || !score.initialized() || token.dtype() != DType::kInt64 ||
          score.dtype() != DTypeOfT<T>::kValue)
        return InvalidArgument("E-op-value", "beam_search_decode: step ", i,
                               " must have i64 in Ids and floats of one type in Scores");
      PENSTOCK_RETURN_IF_ERROR(
          CheckLod(StrCat("beam_search_decode: Ids of step ", i), token.lod(), token.count(), 2, 2));
      PENSTOCK_RETURN_IF_ERROR(
          CheckRows(StrCat("beam_search_decode: Scores of step ", i), score, token.count(), 1));
      const BeamStep<T> step{token.Data<std::int64_t>(), score.template Data<T>(), Offsets(token.lod()[0]),
                             Offsets(token.lod()[1])};
      // A branch is a token of the previous step.
      const bool fits = i == 0 || (step.sources.count() == steps_.front().sources.count() &&
                                   step.branches.count() == steps_.back().branches.total());
      if (!fits)
        return LodError("beam_search_decode: step ", i, " has ", step.sources.count(), " sources and ",
                        step.branches.count(), " branches; the step before it has ",
                        steps_.front().sources.count(), " sources and ", steps_.back().branches.total(),
                        " tokens");
      steps_.push_back(step);
    }
    return OkStatus();
  }

  // sentences_[0, count_) are those of a source.
  Status Follow(Dim source) {
    count_ = 0;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      const Dim begin = step->sources.begin(source), end = step->sources.end(source);
      const bool ends_here = count_ == 0;
      if (ends_here) PENSTOCK_RETURN_IF_ERROR(StartAt(*step, source));
      if (count_ > 0 && begin == end)
        return LodError("beam_search_decode: source ", source, " has no branch at step ",
                        steps_.rend() - step - 1, ", but continues after it");
      for (std::size_t i = 0; i < count_; ++i) {
        Sentence<T>& sentence = sentences_[i];
        const std::int64_t id = step->ids[sentence.at];
        if (ends_here || id != end_id_) {
          sentence.ids.push_back(id);
          sentence.scores.push_back(step->scores[sentence.at]);
        }
        Dim branch = begin;
        while (branch + 1 < end && step->branches.end(branch) <= sentence.at) ++branch;
        sentence.at = branch;
      }
    }
    return OkStatus();
  }

  // Starts one sentence for each token of the source at this step.
  Status StartAt(const BeamStep<T>& step, Dim source) {
    const Dim first = step.branches.begin(step.sources.begin(source)),
              last = step.branches.begin(step.sources.end(source));
    count_ = static_cast<std::size_t>(last - first);
    if (count_ > beam_size_)
      return InvalidArgument("E-op-value", "beam_search_decode: source ", source, " ends with ", count_,
                             " branches; beam_size is ", beam_size_);
    if (sentences_.size() < count_) sentences_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      sentences_[i].at = first + static_cast<Dim>(i);
      sentences_[i].ids.clear();
      sentences_[i].scores.clear();
    }
    return OkStatus();
  }

  In<"Ids"> ids_;
  In<"Scores"> scores_;
  RowsOutput sentence_ids_, sentence_scores_;
  std::size_t beam_size_ = 1, count_ = 0;
  std::int64_t end_id_ = 0;
  std::vector<BeamStep<T>> steps_;
  std::vector<Sentence<T>> sentences_;
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> all_ids_;
  std::vector<T> all_scores_;
  MadeLod lod_;
};

}  // namespace

void RegisterBeamSearchDecode(OpRegistry& ops) {
  ops.Add("beam_search_decode")
      .Doc("Traces back the sentences that a beam search has found.", kDoc)
      .Input("Ids", "the selected tokens of each step", Only(DType::kInt64), OfKind(VarKind::kTensorArray))
      .Input("Scores", "the scores of these tokens", Floats(), OfKind(VarKind::kTensorArray))
      .Output("SentenceIds", "the tokens of the sentences", Only(DType::kInt64))
      .Output("SentenceScores", "the score of each sentence up to each of its tokens", SameTypeAs("Scores"))
      .RequiredAttr("beam_size", AttrKind::kInt, "the largest number of sentences per source", AtLeast(1))
      .RequiredAttr("end_id", AttrKind::kInt, "the token that ends a sentence")
      .KernelTypeFrom("Scores")
      .InferShape(InferBeamSearchDecode)
      .Kernel<Cpu, BeamSearchDecodeKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
