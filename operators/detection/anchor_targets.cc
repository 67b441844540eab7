// rpn_target_assign and retinanet_target_assign: classify anchors as object or background, and compute their
// training targets.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/detection/made_rows.h"
#include "operators/detection/sampling.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The ground-truth boxes of each image (without crowds) are first multiplied by the image's scale. An anchor is
foreground if its overlap with a ground-truth box is at least positive_overlap, or is the largest that any
anchor has with that box. It is background if all its overlaps are below negative_overlap. TargetBBox is the
offset from the anchor to the ground-truth box that it overlaps most. Anchors are numbered over all images.

rpn_target_assign considers the anchors that lie at most rpn_straddle_thresh outside the image (all anchors,
if that is negative). It keeps rpn_batch_size_per_im of them, of which at most the fraction rpn_fg_fraction is
foreground: a random sample with use_random, otherwise the first ones. Labels are 1 and 0. An anchor that is
sampled as background although it is also foreground becomes background; in LocationIndex the first
foreground anchor takes its place, with BBoxInsideWeight 0.

retinanet_target_assign keeps all anchors. Labels are those of the ground-truth boxes. ForegroundNumber is the
number of foreground anchors of each image, plus one.

Ren, He, Girshick, Sun: "Faster R-CNN", NIPS 2015. Lin, Goyal, Girshick, He, Dollar: "Focal loss for dense
object detection", ICCV 2017.)";

Status InferAnchorTargets(InferContext& c) {
  const Shape &anchor = c.ShapeOf("Anchor"), &boxes = c.ShapeOf("GtBoxes"), &info = c.ShapeOf("ImInfo");
  if (anchor.rank() != 2 || !Compatible(anchor[1], 4))
    return c.Error("shape of Anchor (", anchor, ") must be [anchors, 4]");
  if (boxes.rank() != 2 || !Compatible(boxes[1], 4))
    return c.Error("shape of GtBoxes (", boxes, ") must be [boxes, 4]");
  if (info.rank() != 2 || !Compatible(info[1], 3))
    return c.Error("shape of ImInfo (", info, ") must be [images, 3]");
  for (const char* slot : {"IsCrowd", "GtLabels"}) {
    if (!c.HasInput(slot)) continue;
    const Shape& shape = c.ShapeOf(slot);
    const bool fits = shape.rank() >= 1 && shape.rank() <= 2 && Compatible(shape[0], boxes[0]) &&
                      (shape.rank() == 1 || Compatible(shape[1], 1));
    if (!fits) return c.Error("shape of ", slot, " (", shape, ") must be [", boxes[0], ", 1]");
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("LocationIndex", {kUnknownDim}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ScoreIndex", {kUnknownDim}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("TargetLabel", {kUnknownDim, 1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("TargetBBox", {kUnknownDim, 4}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ForegroundNumber", {info[0], 1}));
  return c.SetShape("BBoxInsideWeight", {kUnknownDim, 4});
}

template <typename Device, typename T>
class AnchorTargetsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(anchor_);
    anchors_ = k[anchor_].shape[0];
    boxes_.Prepare(k, "GtBoxes");
    k.Bind(labels_, crowd_, info_);
    location_.Start(k.Output("LocationIndex"), DType::kInt32, {0});
    score_.Start(k.Output("ScoreIndex"), DType::kInt32, {0});
    target_label_.Start(k.Output("TargetLabel"), DType::kInt32, {0, 1});
    target_.Start(k.Output("TargetBBox"), k[anchor_].dtype, {0, 4});
    weight_.Start(k.Output("BBoxInsideWeight"), k[anchor_].dtype, {0, 4});
    k.Bind(count_);
    const bool rpn = k.op().type() == "rpn_target_assign";
    positive_ = static_cast<T>(k.Attr<float>(rpn ? "rpn_positive_overlap" : "positive_overlap"));
    negative_ = static_cast<T>(k.Attr<float>(rpn ? "rpn_negative_overlap" : "negative_overlap"));
    if (rpn) {
      batch_ = k.Attr<std::int32_t>("rpn_batch_size_per_im");
      straddle_ = static_cast<T>(k.Attr<float>("rpn_straddle_thresh"));
      fraction_ = k.Attr<float>("rpn_fg_fraction");
    }
    draws_.Prepare(k, rpn && k.Attr<bool>("use_random"));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets images, boxes_.Innermost(k));
    if (images.count() != k[info_].shape()[0])
      return LodError(boxes_.what(), " is in ", images.count(), " sequences; ImInfo has ",
                      k[info_].shape()[0], " images");
    draws_.Begin();
    for (auto* list : {&locations_, &scores_, &found_labels_}) list->clear();
    for (auto* list : {&deltas_, &weights_}) list->clear();
    for (MadeLod& lod : lod_) lod.Start(1);
    for (Dim image = 0; image < images.count(); ++image) {
      const std::size_t located = locations_.size(), scored = scores_.size();
      AddImage(k, image, images.begin(image), images.end(image));
      lod_[0].Add(0, static_cast<Dim>(locations_.size() - located));
      lod_[1].Add(0, static_cast<Dim>(scores_.size() - scored));
      lod_[2].Add(0, 1);
      if (count_)
        k[count_].template Data<std::int32_t>()[image] =
            static_cast<std::int32_t>(locations_.size() - located + 1);
    }
    if (count_) lod_[2].Set(k[count_]);
    const Dim located = static_cast<Dim>(locations_.size()), scored = static_cast<Dim>(scores_.size());
    Write(k, location_, locations_, located, 0);
    Write(k, target_, deltas_, located, 0);
    Write(k, weight_, weights_, located, 0);
    Write(k, score_, scores_, scored, 1);
    Write(k, target_label_, found_labels_, scored, 1);
    return OkStatus();
  }

 private:
  // Reads the ground-truth boxes of an image, scaled to the network's input, and their labels.
  void ReadTruth(KernelRun& k, Dim begin, Dim end, T scale) {
    const T* const boxes = std::as_const(k[boxes_.operand()]).template Data<T>();
    const std::int32_t* const crowd = std::as_const(k[crowd_]).template Data<std::int32_t>();
    truth_.clear();
    truth_labels_.clear();
    for (Dim i = begin; i < end; ++i) {
      if (crowd[i] != 0) continue;
      for (Dim n = 0; n < 4; ++n) truth_.push_back(boxes[i * 4 + n] * scale);
      truth_labels_.push_back(labels_ ? std::as_const(k[labels_]).template Data<std::int32_t>()[i] : 1);
    }
  }
  void KeepInside(const T* anchors, const T* info) {
    inside_.clear();
    for (Dim i = 0; i < anchors_; ++i) {
      const T* const a = anchors + i * 4;
      const bool in = a[0] >= -straddle_ && a[1] >= -straddle_ && a[2] < info[1] + straddle_ &&
                      a[3] < info[0] + straddle_;
      if (straddle_ < 0 || in) inside_.push_back(i);
    }
  }
  // Finds the ground-truth box that each anchor inside the image overlaps most, and sorts the anchors into
  // foreground and background.
  void Sort(const T* anchors) {
    const std::size_t boxes = truth_labels_.size();
    most_.assign(inside_.size(), T{0});
    best_.assign(inside_.size(), 0);
    of_box_.assign(boxes, T{0});
    overlaps_.resize(inside_.size() * boxes);
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      for (std::size_t j = 0; j < boxes; ++j) {
        const T overlap = PixelOverlap(anchors + inside_[i] * 4, truth_.data() + j * 4);
        overlaps_[i * boxes + j] = overlap;
        of_box_[j] = std::max(of_box_[j], overlap);
        if (overlap > most_[i]) {
          most_[i] = overlap;
          best_[i] = j;
        }
      }
    }
    objects_.clear();
    background_.clear();
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      bool is_best = false;
      for (std::size_t j = 0; j < boxes; ++j)
        is_best = is_best || std::abs(overlaps_[i * boxes + j] - of_box_[j]) < T(1e-5);
      if (boxes > 0 && (is_best || most_[i] >= positive_)) objects_.push_back(i);
      if (most_[i] < negative_) background_.push_back(i);
    }
  }
  void AddImage(KernelRun& k, Dim image, Dim begin, Dim end) {
    const T* const anchors = std::as_const(k[anchor_]).template Data<T>();
    const T* const info = std::as_const(k[info_]).template Data<T>() + image * 3;
    ReadTruth(k, begin, end, info[2]);
    KeepInside(anchors, info);
    Sort(anchors);
    if (fraction_ > 0 && batch_ > 0) {
      draws_.Shorten(objects_, static_cast<std::size_t>(static_cast<float>(batch_) * fraction_));
      draws_.Shorten(background_,
                     static_cast<std::size_t>(std::max<Dim>(batch_ - static_cast<Dim>(objects_.size()), 0)));
    }
    label_.assign(inside_.size(), -1);
    for (const std::size_t i : objects_) label_[i] = 1;
    for (const std::size_t i : background_) {
      if (label_[i] == 1) AddLocation(anchors, objects_.front(), image, T{0});
      label_[i] = 0;
    }
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      if (label_[i] == 1) AddLocation(anchors, i, image, T{1});
    }
    for (const int label : {1, 0}) {
      for (std::size_t i = 0; i < inside_.size(); ++i) {
        if (label_[i] != label) continue;
        scores_.push_back(Number(i, image));
        found_labels_.push_back(label == 0 ? 0 : truth_labels_[best_[i]]);
      }
    }
  }
  std::int32_t Number(std::size_t i, Dim image) const {
    return static_cast<std::int32_t>(inside_[i] + image * anchors_);
  }
  void AddLocation(const T* anchors, std::size_t i, Dim image, T weight) {
    locations_.push_back(Number(i, image));
    T deltas[4];
    BoxDeltas(anchors + inside_[i] * 4, truth_.data() + best_[i] * 4, deltas);
    deltas_.insert(deltas_.end(), deltas, deltas + 4);
    weights_.insert(weights_.end(), 4, weight);
  }
  template <typename Element>
  void Write(KernelRun& k, MadeRows& out, const std::vector<Element>& values, Dim rows, std::size_t lod) {
    if (!out) return;
    Tensor& made = out.Make(k, rows);
    std::ranges::copy(values, made.Data<Element>());
    lod_[lod].Set(made);
  }

  In<"Anchor"> anchor_;
  Dim anchors_ = 0;  // of an image
  In<"GtLabels"> labels_;
  In<"IsCrowd"> crowd_;
  In<"ImInfo"> info_;
  Out<"ForegroundNumber"> count_;
  MadeRows location_, score_, target_label_, target_, weight_;
  SequenceInput boxes_;
  T positive_{}, negative_{}, straddle_{-1};
  Dim batch_ = 0;
  float fraction_ = 0;
  SampleDraws draws_;
  MadeLod lod_[3];  // of locations, scores and images
  std::vector<std::int32_t> locations_, scores_, found_labels_, truth_labels_;
  std::vector<T> deltas_, weights_, truth_, most_, of_box_, overlaps_;
  std::vector<Dim> inside_;
  std::vector<std::size_t> best_, objects_, background_;
  std::vector<int> label_;
};

OpDef& AddAnchorTargets(OpRegistry& ops, const char* type) {
  OpDef& op = ops.Add(type);
  op.Doc("Classifies anchors as foreground or background and computes their training targets.", kDoc)
      .Input("Anchor", "[anchors, 4]", Floats())
      .Input("GtBoxes", "ground-truth boxes, [boxes, 4], one sequence per image", SameTypeAs("Anchor"));
  if (type == std::string("retinanet_target_assign")) {
    op.Input("GtLabels", "[boxes, 1], the classes of the ground-truth boxes", Only(DType::kInt32))
        .Output("ForegroundNumber", "[images, 1]", Only(DType::kInt32));
  }
  return op.Input("IsCrowd", "[boxes, 1], nonzero if a box is a crowd", Only(DType::kInt32))
      .Input("ImInfo", "[images, 3]: height, width, scale", SameTypeAs("Anchor"))
      .Output("LocationIndex", "the foreground anchors", Only(DType::kInt32))
      .Output("ScoreIndex", "the foreground anchors, then the background anchors, of each image",
              Only(DType::kInt32))
      .Output("TargetBBox", "[foreground anchors, 4]", SameTypeAs("Anchor"), Apart())
      .Output("TargetLabel", "the labels of the anchors in ScoreIndex", Only(DType::kInt32), Apart())
      .Output("BBoxInsideWeight", "[foreground anchors, 4]", SameTypeAs("Anchor"), Apart())
      .Nan("a box or an anchor with a NaN overlaps nothing.")
      .InferShape(InferAnchorTargets)
      .KernelTypeFrom("Anchor")
      .Kernel<Cpu, AnchorTargetsKernel, float, double>()
      .NoGrad();
}

}  // namespace

void RegisterAnchorTargets(OpRegistry& ops) {
  AddAnchorTargets(ops, "rpn_target_assign")
      .Attr("rpn_batch_size_per_im", 256, "the number of anchors to sample from each image", AtLeast(0))
      .RequiredAttr("rpn_straddle_thresh", AttrKind::kFloat,
                    "how far outside the image an anchor may lie, in pixels")
      .Attr("rpn_positive_overlap", 0.7f, "the smallest overlap of a foreground anchor")
      .Attr("rpn_negative_overlap", 0.3f, "background anchors have smaller overlaps than this")
      .Attr("rpn_fg_fraction", 0.25f, "the largest fraction of foreground anchors", Between(0, 1))
      .Attr("use_random", true, "whether to sample at random")
      .Affects({Effect::kRandom});
  AddAnchorTargets(ops, "retinanet_target_assign")
      .Attr("positive_overlap", 0.5f, "the smallest overlap of a foreground anchor")
      .Attr("negative_overlap", 0.4f, "background anchors have smaller overlaps than this");
}

}  // namespace penstock
