// generate_proposals, distribute_fpn_proposals, collect_fpn_proposals: regions that may contain objects.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/detection/made_rows.h"
#include "operators/detection/nms.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
generate_proposals: for each image, takes the anchors with the pre_nms_topN best Scores, moves them by
BboxDeltas (times Variances, with exponents of at most log(1000 / 16)), and clips them to the image. Regions
narrower or lower than min_size in the original image, or whose centre is outside it, are dropped. Regions
that overlap a better one by more than nms_thresh are removed; nms_thresh shrinks by `eta` as in
multiclass_nms. The post_nms_topN best remain. ImInfo is (height, width, scale) of each image. RpnRoisLod
holds the index at which the regions of each image end.

distribute_fpn_proposals: a region of area a belongs to level floor(log2(sqrt(a) / refer_scale) +
refer_level), limited to [min_level, max_level]. MultiFpnRois are the regions of each level; RestoreIndex[i]
is the position of region i in their concatenation.

collect_fpn_proposals: takes the post_nms_topN regions with the best scores of all levels, ordered by image,
best first.

Ren, He, Girshick, Sun: "Faster R-CNN", NIPS 2015. Lin et al.: "Feature pyramid networks for object
detection", CVPR 2017.)";

Status InferGenerateProposals(InferContext& c) {
  const Shape &scores = c.ShapeOf("Scores"), &deltas = c.ShapeOf("BboxDeltas"), &info = c.ShapeOf("ImInfo");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Scores", 4));
  const Dim four = scores[1] == kUnknownDim ? kUnknownDim : 4 * scores[1];
  if (!Compatible(deltas, Shape{scores[0], four, scores[2], scores[3]}))
    return c.Error("shape of BboxDeltas (", deltas, ") must be [", scores[0], ", ", four, ", ", scores[2],
                   ", ", scores[3], "]");
  if (!Compatible(info, Shape{scores[0], 3}))
    return c.Error("shape of ImInfo (", info, ") must be [", scores[0], ", 3]");
  for (const char* slot : {"Anchors", "Variances"}) {
    if (!Compatible(c.ShapeOf(slot), Shape{scores[2], scores[3], scores[1], 4}))
      return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be [", scores[2], ", ", scores[3],
                     ", ", scores[1], ", 4]");
  }
  c.SetLodLevel("RpnRois", 1);
  c.SetLodLevel("RpnRoiProbs", 1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("RpnRois", {kUnknownDim, 4}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("RpnRoisLod", {scores[0]}));
  return c.SetShape("RpnRoiProbs", {kUnknownDim, 1});
}

template <typename Device, typename T>
class GenerateProposalsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(scores_, deltas_, info_, anchors_, variances_, ends_);
    before_ = k.Attr<std::int32_t>("pre_nms_topN");
    behind_ = k.Attr<std::int32_t>("post_nms_topN");
    threshold_ = static_cast<T>(k.Attr<float>("nms_thresh"));
    eta_ = static_cast<T>(k.Attr<float>("eta"));
    least_ = std::max(static_cast<T>(k.Attr<float>("min_size")), T{1});
    PENSTOCK_RETURN_IF_ERROR(rois_.Prepare(k, "RpnRois", k[scores_].dtype, {0, 4}));
    return probabilities_.Prepare(k, "RpnRoiProbs", k[scores_].dtype, {0, 1});
  }
  Status Run(KernelRun& k) override {
    all_.clear();
    of_all_.clear();
    lod_.Start(1);
    probability_lod_.Start(1);
    for (Dim image = 0; image < k[scores_].shape()[0]; ++image) {
      const std::size_t before = of_all_.size();
      Propose(k, image);
      for (const auto& [score, at] : found_) {
        all_.insert(all_.end(), boxes_.begin() + at * 4, boxes_.begin() + at * 4 + 4);
        of_all_.push_back(score);
      }
      lod_.Add(0, static_cast<Dim>(of_all_.size() - before));
      probability_lod_.Add(0, static_cast<Dim>(of_all_.size() - before));
      if (ends_) k[ends_].template Data<std::int64_t>()[image] = static_cast<std::int64_t>(of_all_.size());
    }
    const Dim rows = static_cast<Dim>(of_all_.size());
    Tensor& rois = rois_.Make(k, rows);
    std::ranges::copy(all_, rois.Data<T>());
    lod_.Set(rois);
    Tensor& probabilities = probabilities_.Make(k, rows);
    std::ranges::copy(of_all_, probabilities.Data<T>());
    probability_lod_.Set(probabilities);
    return OkStatus();
  }

 private:
  // The regions of an image; `found_` refers to them by their index in `boxes_`.
  void Propose(KernelRun& k, Dim image) {
    const Dim anchors = k[scores_].shape()[1], cells = k[scores_].shape()[2] * k[scores_].shape()[3];
    const T* const scores = std::as_const(k[scores_]).template Data<T>() + image * anchors * cells;
    const T* const deltas = std::as_const(k[deltas_]).template Data<T>() + image * 4 * anchors * cells;
    const T* const info = std::as_const(k[info_]).template Data<T>() + image * 3;
    const auto score = [&](Dim i) {
      return scores[i % anchors * cells + i / anchors];
    };  // the anchors of a cell are contiguous
    BestFirst<T>(anchors * cells, std::numeric_limits<T>::lowest(), before_ > 0 ? before_ : Dim{-1}, score,
                 found_);
    boxes_.resize(found_.size() * 4);
    std::size_t kept = 0;
    for (auto& one : found_) {
      const Dim i = one.second, anchor = i % anchors, cell = i / anchors;
      T* const box = boxes_.data() + kept * 4;
      T delta[4];
      for (Dim n = 0; n < 4; ++n) delta[n] = deltas[(anchor * 4 + n) * cells + cell];
      Move(std::as_const(k[anchors_]).template Data<T>() + i * 4,
           std::as_const(k[variances_]).template Data<T>() + i * 4, delta, box);
      for (int n = 0; n < 4; ++n) box[n] = std::max(std::min(box[n], info[n % 2 == 0 ? 1 : 0] - 1), T{0});
      if (!IsLargeEnough(box, info)) continue;
      found_[kept] = {one.first, static_cast<Dim>(kept)};
      ++kept;
    }
    found_.resize(kept);
    if (threshold_ > 0) Suppress({boxes_.data(), 4, 4, false}, threshold_, eta_, found_);
    if (threshold_ > 0 && behind_ > 0 && static_cast<Dim>(found_.size()) > behind_)
      found_.resize(static_cast<std::size_t>(behind_));
  }
  static void Move(const T* anchor, const T* variance, const T* delta, T* box) {
    const T most = static_cast<T>(std::log(1000.0 / 16.0)), half{0.5};
    const T width = anchor[2] - anchor[0] + 1, height = anchor[3] - anchor[1] + 1;
    const T x = variance[0] * delta[0] * width + anchor[0] + half * width;
    const T y = variance[1] * delta[1] * height + anchor[1] + half * height;
    const T new_width = std::exp(std::min(variance[2] * delta[2], most)) * width;
    const T new_height = std::exp(std::min(variance[3] * delta[3], most)) * height;
    box[0] = x - new_width / 2;
    box[1] = y - new_height / 2;
    box[2] = x + new_width / 2 - 1;
    box[3] = y + new_height / 2 - 1;
  }
  bool IsLargeEnough(const T* box, const T* info) const {
    const T width = box[2] - box[0], height = box[3] - box[1];
    return width / info[2] + 1 >= least_ && height / info[2] + 1 >= least_ &&
           box[0] + (width + 1) / 2 <= info[1] && box[1] + (height + 1) / 2 <= info[0];
  }

  In<"Scores"> scores_;
  In<"BboxDeltas"> deltas_;
  In<"ImInfo"> info_;
  In<"Anchors"> anchors_;
  In<"Variances"> variances_;
  Out<"RpnRoisLod"> ends_;
  Dim before_ = 0, behind_ = 0;
  T threshold_{}, eta_{1}, least_{};
  RowsOutput rois_, probabilities_;
  MadeLod lod_, probability_lod_;
  std::vector<std::pair<T, Dim>> found_;
  std::vector<T> boxes_, all_, of_all_;
};

Status InferDistribute(InferContext& c) {
  const Shape& rois = c.ShapeOf("FpnRois");
  if (rois.rank() != 2 || !Compatible(rois[1], 4))
    return c.Error("shape of FpnRois (", rois, ") must be [regions, 4]");
  const int levels = c.Attr<std::int32_t>("max_level") - c.Attr<std::int32_t>("min_level") + 1;
  if (c.OutputCount("MultiFpnRois") != levels)
    return c.Error("MultiFpnRois has ", c.OutputCount("MultiFpnRois"), " variables; there are ", levels,
                   " levels");
  for (int i = 0; i < levels; ++i) {
    c.SetLodLevel("MultiFpnRois", 1, i);
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("MultiFpnRois", i, {kUnknownDim, 4}));
  }
  return c.SetShape("RestoreIndex", {rois[0], 1});
}

template <typename Device, typename T>
class DistributeProposalsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    rois_.Prepare(k, "FpnRois");
    outs_.resize(k.Outputs("MultiFpnRois").size());
    for (std::size_t i = 0; i < outs_.size(); ++i)
      outs_[i].Start(k.Outputs("MultiFpnRois")[i], k.Input("FpnRois").dtype, {0, 4});
    k.Bind(restore_);
    first_ = k.Attr<std::int32_t>("min_level");
    last_ = k.Attr<std::int32_t>("max_level");
    refer_level_ = k.Attr<std::int32_t>("refer_level");
    refer_scale_ = k.Attr<std::int32_t>("refer_scale");
    lods_ = std::vector<MadeLod>(outs_.size());
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets images, rois_.Innermost(k));
    const T* const rois = std::as_const(k[rois_.operand()]).template Data<T>();
    levels_.clear();
    for (Dim i = 0; i < images.total(); ++i) levels_.push_back(LevelOf(rois + i * 4));
    std::int32_t* const restore = restore_ ? k[restore_].template Data<std::int32_t>() : nullptr;
    std::int32_t place = 0;
    for (std::size_t level = 0; level < outs_.size(); ++level) {
      const Dim rows = static_cast<Dim>(std::ranges::count(levels_, level));
      Tensor& out = outs_[level].Make(k, rows);
      T* to = out.template Data<T>();
      lods_[level].Start(1);
      for (Dim image = 0; image < images.count(); ++image) {
        Dim count = 0;
        for (Dim i = images.begin(image); i < images.end(image); ++i) {
          if (levels_[static_cast<std::size_t>(i)] != level) continue;
          to = std::copy_n(rois + i * 4, 4, to);
          if (restore != nullptr) restore[i] = place;
          ++place;
          ++count;
        }
        lods_[level].Add(0, count);
      }
      lods_[level].Set(out);
    }
    return OkStatus();
  }

 private:
  std::size_t LevelOf(const T* roi) const {
    const T size = std::sqrt(BoxArea(roi, false));
    const double level = std::floor(static_cast<double>(
        std::log2(size / static_cast<T>(refer_scale_) + T(1e-6)) + static_cast<T>(refer_level_)));
    const double high = static_cast<double>(last_), low = static_cast<double>(first_);
    return static_cast<std::size_t>((level > high   ? high
                                     : level >= low ? level
                                                    : low) -
                                    low);  // NaN: the lowest
  }

  SequenceInput rois_;
  std::vector<MadeRows> outs_;
  Out<"RestoreIndex"> restore_;
  int first_ = 0, last_ = 0, refer_level_ = 0, refer_scale_ = 1;
  std::vector<MadeLod> lods_;
  std::vector<std::size_t> levels_;
};

Status InferCollect(InferContext& c) {
  const int levels = c.InputCount("MultiLevelRois");
  if (c.InputCount("MultiLevelScores") != levels)
    return c.Error("MultiLevelScores has ", c.InputCount("MultiLevelScores"), " variables, MultiLevelRois ",
                   levels);
  for (int i = 0; i < levels; ++i) {
    const Shape &rois = c.ShapeOf("MultiLevelRois", i), &scores = c.ShapeOf("MultiLevelScores", i);
    if (rois.rank() != 2 || !Compatible(rois[1], 4) || !Compatible(scores, Shape{rois[0], 1}))
      return c.Error("level ", i, " has regions ", rois, " and scores ", scores,
                     "; they must be [n, 4] and [n, 1]");
  }
  c.SetLodLevel("FpnRois", 1);
  return c.SetShape("FpnRois", {kUnknownDim, 4});
}

template <typename Device, typename T>
class CollectProposalsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    scores_.assign(k.Inputs("MultiLevelScores").begin(), k.Inputs("MultiLevelScores").end());
    rois_.resize(scores_.size());
    for (std::size_t i = 0; i < rois_.size(); ++i) rois_[i].Prepare(k, "MultiLevelRois", static_cast<int>(i));
    most_ = static_cast<std::size_t>(k.Attr<std::int32_t>("post_nms_topN"));
    return out_.Prepare(k, "FpnRois", k.Input("MultiLevelScores").dtype, {0, 4});
  }
  Status Run(KernelRun& k) override {
    all_.clear();
    Dim images = -1;
    for (std::size_t level = 0; level < rois_.size(); ++level) {
      PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, rois_[level].Innermost(k));
      if (images >= 0 && sequences.count() != images)
        return LodError(rois_[level].what(), " of level ", level, " is in ", sequences.count(),
                        " sequences, the levels before in ", images);
      images = sequences.count();
      const T* const scores = std::as_const(k[scores_[level]]).template Data<T>();
      for (Dim image = 0; image < images; ++image) {
        for (Dim i = sequences.begin(image); i < sequences.end(image); ++i)
          all_.push_back({scores[i], image, level, i, all_.size()});
      }
    }
    std::sort(all_.begin(), all_.end(), [](const Region& a, const Region& b) {
      const bool first = std::isnan(a.score), second = std::isnan(b.score);  // NaN last
      if (first != second) return second;
      return !first && a.score != b.score ? a.score > b.score : a.place < b.place;
    });
    if (all_.size() > most_) all_.resize(most_);
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].place = i;
    std::sort(all_.begin(), all_.end(), [](const Region& a, const Region& b) {
      return std::pair(a.image, a.place) < std::pair(b.image, b.place);
    });
    Tensor& out = out_.Make(k, static_cast<Dim>(all_.size()));
    T* to = out.Data<T>();
    lod_.Start(1);
    std::size_t next = 0;
    for (Dim image = 0; image < images; ++image) {
      const std::size_t before = next;
      for (; next < all_.size() && all_[next].image == image; ++next) {
        const T* const rois = std::as_const(k[rois_[all_[next].level].operand()]).template Data<T>();
        to = std::copy_n(rois + all_[next].row * 4, 4, to);
      }
      lod_.Add(0, static_cast<Dim>(next - before));
    }
    lod_.Set(out);
    return OkStatus();
  }

 private:
  struct Region {
    T score{};
    Dim image = 0;
    std::size_t level = 0;
    Dim row = 0;
    std::size_t place = 0;
  };
  std::vector<Operand> scores_;
  std::vector<SequenceInput> rois_;
  std::size_t most_ = 0;
  RowsOutput out_;
  MadeLod lod_;
  std::vector<Region> all_;
};

}  // namespace

void RegisterProposals(OpRegistry& ops) {
  ops.Add("generate_proposals")
      .Doc("Proposes regions of images that may contain objects.", kDoc)
      .Input("Scores", "[images, anchors, height, width]", Floats())
      .Input("BboxDeltas", "[images, 4 * anchors, height, width]", SameTypeAs("Scores"))
      .Input("ImInfo", "[images, 3]: height, width, scale", SameTypeAs("Scores"))
      .Input("Anchors", "[height, width, anchors, 4]", SameTypeAs("Scores"))
      .Input("Variances", "shaped like Anchors", SameTypeAs("Scores"))
      .Output("RpnRois", "[regions, 4], one sequence per image", SameTypeAs("Scores"))
      .Output("RpnRoiProbs", "[regions, 1], in the same sequences", SameTypeAs("Scores"))
      .Output("RpnRoisLod", "[images], the index at which the regions of each image end", Only(DType::kInt64),
              Optional())
      .RequiredAttr("pre_nms_topN", AttrKind::kInt, "the number of anchors to consider; 0 or less: all")
      .RequiredAttr("post_nms_topN", AttrKind::kInt,
                    "the number of regions per image to keep; 0 or less: all")
      .RequiredAttr("nms_thresh", AttrKind::kFloat,
                    "the largest overlap of two kept regions; 0 or less: no suppression")
      .RequiredAttr("min_size", AttrKind::kFloat, "the smallest width and height of a region")
      .RequiredAttr("eta", AttrKind::kFloat, "the factor of nms_thresh after each kept region")
      .Nan("an anchor whose score is NaN is ignored, and a region that becomes NaN is dropped.")
      .InferShape(InferGenerateProposals)
      .Kernel<Cpu, GenerateProposalsKernel, float, double>()
      .NoGrad();
  ops.Add("distribute_fpn_proposals")
      .Doc("Distributes regions to the levels of a feature pyramid.", kDoc)
      .Input("FpnRois", "[regions, 4], one sequence per image", Floats())
      .Output("MultiFpnRois", "the regions of each level", SameTypeAs("FpnRois"), Repeated())
      .Output("RestoreIndex", "[regions, 1], the position of each region in the concatenated levels",
              Only(DType::kInt32))
      .RequiredAttr("min_level", AttrKind::kInt, "the finest level", Between(0, 64))
      .RequiredAttr("max_level", AttrKind::kInt, "the coarsest level", Between(0, 64))
      .RequiredAttr("refer_level", AttrKind::kInt, "the level of a region of size refer_scale",
                    Between(0, 64))
      .RequiredAttr("refer_scale", AttrKind::kInt,
                    "the square root of the area of a region of level refer_level", AtLeast(1))
      .Nan("a region with a NaN belongs to the finest level.")
      .InferShape(InferDistribute)
      .Kernel<Cpu, DistributeProposalsKernel, float, double>()
      .NoGrad();
  ops.Add("collect_fpn_proposals")
      .Doc("Selects the best regions of all levels of a feature pyramid.", kDoc)
      .Input("MultiLevelRois", "[regions, 4] of each level, one sequence per image", Floats(), Repeated())
      .Input("MultiLevelScores", "[regions, 1] of each level", SameTypeAs("MultiLevelRois"), Repeated())
      .Output("FpnRois", "[regions, 4], one sequence per image", SameTypeAs("MultiLevelRois"))
      .RequiredAttr("post_nms_topN", AttrKind::kInt, "the number of regions to keep", AtLeast(0))
      .Nan("a region whose score is NaN comes last.")
      .InferShape(InferCollect)
      .Kernel<Cpu, CollectProposalsKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
