// beam_search: one step of a beam search, which selects the best continuations of the branches of each
// source.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Selects, for each source, the beam_size continuations of its branches with the highest scores.

A row is a branch. pre_ids and pre_scores are its last token and its score so far; scores holds the scores of
its continuations and ids their tokens (by default, the column numbers). The score of a continuation is taken
as it is or, if not is_accumulated, is pre_scores + log(scores). A branch that has ended (pre_ids is end_id)
continues only as itself. If all selected branches of a source had already ended, the source yields none. If
scores are equal at the last place, the later continuation is selected. A score that is NaN is never selected.

Level `level` of the LoD of scores assigns rows to sources. The outputs have two levels: sources of branches,
and the selected continuations of each branch. parent_idx is the row that each selected token continues.)";

Status InferBeamSearch(InferContext& c) {
  const Shape& scores = c.ShapeOf("scores");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("scores", 2));
  if (c.HasInput("ids") && !Compatible(c.ShapeOf("ids"), scores))
    return c.Error("shape of ids (", c.ShapeOf("ids"), ") must be that of scores (", scores, ")");
  for (const char* slot : {"pre_ids", "pre_scores"}) {
    const Shape& before = c.ShapeOf(slot);
    if (!Compatible(before.Count(), scores[0]))
      return c.Error(slot, " (", before, ") must have one element for each of the ", scores[0],
                     " rows of scores");
  }
  for (const char* slot : {"selected_ids", "selected_scores"}) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {kUnknownDim, 1}));
    c.SetLodLevel(slot, 2);
  }
  return c.SetShape("parent_idx", {kUnknownDim});
}

class BeamSearchKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    scores_.Prepare(k, "scores");
    k.Bind(ids_, pre_ids_, pre_scores_);
    level_ = k.Attr<std::int32_t>("level");
    beam_size_ = static_cast<std::size_t>(k.Attr<std::int32_t>("beam_size"));
    end_id_ = k.Attr<std::int32_t>("end_id");
    accumulated_ = k.Attr<bool>("is_accumulated");
    PENSTOCK_RETURN_IF_ERROR(selected_ids_.Prepare(k, "selected_ids", DType::kInt64, {0, 1}));
    PENSTOCK_RETURN_IF_ERROR(selected_scores_.Prepare(k, "selected_scores", DType::kFp32, {0, 1}));
    return parents_.Prepare(k, "parent_idx", DType::kInt32, {0});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, scores_.Levels(k, 1));
    if (static_cast<std::size_t>(level_) >= lod->size()) {
      return LodError(scores_.what(), " has ", lod->size(), " levels of sequences; level (", level_,
                      ") must name one of them");
    }
    FindSources(*lod);
    chosen_.clear();
    lod_.Start(2);
    Dim branch = 0;
    for (std::size_t s = 0; s + 1 < sources_.size(); ++s) {
      const Dim end = static_cast<Dim>(sources_[s + 1]);
      ChooseOf(k, static_cast<Dim>(sources_[s]), end);
      lod_.Add(0, end - branch);
      auto next = best_.begin();
      for (; branch < end; ++branch) {
        const auto first = next;
        while (next != best_.end() && next->branch == branch) ++next;
        lod_.Add(1, next - first);
      }
      chosen_.insert(chosen_.end(), best_.begin(), best_.end());
    }
    Give(k);
    return OkStatus();
  }

 private:
  struct Candidate {
    Dim branch;
    std::int64_t id;
    float score;
  };

  // The offsets of that level, in rows.
  void FindSources(const LoD& lod) {
    sources_ = lod[static_cast<std::size_t>(level_)];
    for (std::size_t l = static_cast<std::size_t>(level_) + 1; l < lod.size(); ++l) {
      for (std::uint64_t& offset : sources_) offset = lod[l][static_cast<std::size_t>(offset)];
    }
  }

  // Sets best_ to the continuations selected for branches [begin, end), ordered by branch, the best first.
  void ChooseOf(KernelRun& k, Dim begin, Dim end) {
    const std::int64_t* const pre_ids = k[pre_ids_].Data<std::int64_t>();
    const float* const pre_scores = k[pre_scores_].Data<float>();
    const float* const scores = k[scores_.operand()].Data<float>();
    const std::int64_t* const ids = ids_ ? k[ids_].Data<std::int64_t>() : nullptr;
    const Dim width = k[scores_.operand()].shape()[1];
    best_.clear();
    for (Dim branch = begin; branch < end; ++branch) {
      if (pre_ids[branch] == end_id_) {
        Offer({branch, end_id_, pre_scores[branch]});
        continue;
      }
      for (Dim i = branch * width; i < (branch + 1) * width; ++i) {
        const float score = accumulated_ ? scores[i] : pre_scores[branch] + std::log(scores[i]);
        Offer({branch, ids != nullptr ? ids[i] : i - branch * width, score});
      }
    }
    const bool ended = std::ranges::all_of(
        best_, [&](const Candidate& one) { return one.id == end_id_ && pre_ids[one.branch] == end_id_; });
    if (ended) best_.clear();
    ByBranch();
  }

  // Keeps the order of the scores within a branch.
  void ByBranch() {
    order_.resize(best_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      return best_[a].branch != best_[b].branch ? best_[a].branch < best_[b].branch : a < b;
    });
    sorted_.clear();
    for (const std::size_t i : order_) sorted_.push_back(best_[i]);
    std::swap(best_, sorted_);
  }

  static bool Better(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.branch > b.branch;
  }

  // Keeps best_ sorted, with at most beam_size elements.
  void Offer(const Candidate& one) {
    if (std::isnan(one.score)) return;
    if (best_.size() == beam_size_) {
      if (Better(best_.back(), one)) return;
      best_.pop_back();
    }
    auto at = best_.end();
    while (at != best_.begin() && Better(one, *(at - 1))) --at;
    best_.insert(at, one);
  }

  void Give(KernelRun& k) {
    const Dim count = static_cast<Dim>(chosen_.size());
    Tensor& ids = selected_ids_.Make(k, count);
    Tensor& scores = selected_scores_.Make(k, count);
    std::int32_t* const parents = parents_ ? parents_.Make(k, count).Data<std::int32_t>() : nullptr;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      ids.Data<std::int64_t>()[i] = chosen_[i].id;
      scores.Data<float>()[i] = chosen_[i].score;
      if (parents != nullptr) parents[i] = static_cast<std::int32_t>(chosen_[i].branch);
    }
    lod_.Set(ids);
    scores.ShareLod(ids);
  }

  SequenceInput scores_;
  In<"ids"> ids_;
  In<"pre_ids"> pre_ids_;
  In<"pre_scores"> pre_scores_;
  RowsOutput selected_ids_, selected_scores_, parents_;
  MadeLod lod_;
  std::int32_t level_ = 0;
  std::size_t beam_size_ = 1;
  std::int64_t end_id_ = 0;
  bool accumulated_ = true;
  LoDLevel sources_;
  std::vector<Candidate> best_, sorted_, chosen_;
  std::vector<std::size_t> order_;
};

}  // namespace

void RegisterBeamSearch(OpRegistry& ops) {
  ops.Add("beam_search")
      .Doc("One step of a beam search.", kDoc)
      .Input("pre_ids", "the last token of each branch", Only(DType::kInt64))
      .Input("pre_scores", "the score of each branch so far", Only(DType::kFp32))
      .Input("ids", "the tokens that may follow, one row per branch", Only(DType::kInt64), Optional())
      .Input("scores", "the scores of these tokens", Only(DType::kFp32))
      .Output("selected_ids", "the selected tokens", Only(DType::kInt64))
      .Output("selected_scores", "the scores of the selected tokens", Only(DType::kFp32))
      .Output("parent_idx", "the row of the branch that each selected token continues", Only(DType::kInt32),
              Optional())
      .RequiredAttr("level", AttrKind::kInt, "the LoD level that assigns rows to sources", AtLeast(0))
      .RequiredAttr("beam_size", AttrKind::kInt, "the largest number of branches per source", AtLeast(1))
      .RequiredAttr("end_id", AttrKind::kInt, "the token that ends a branch", AtLeast(0))
      .Attr("is_accumulated", true, "whether scores are those of the whole branch")
      .Nan("a branch or token whose score is NaN is not selected.")
      .InferShape(InferBeamSearch)
      .KernelForAnyType<Cpu, BeamSearchKernel>()
      .NoGrad();
}

}  // namespace penstock
