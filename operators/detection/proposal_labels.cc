// generate_proposal_labels: the regions on which the second stage of a detector is trained, and their
// targets.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/detection/sampling.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The candidates of each image are its ground-truth boxes and RpnRois divided by the image's scale. A region is
foreground if its overlap with a ground-truth box is at least fg_thresh, and background if its largest overlap
is in [bg_thresh_lo, bg_thresh_hi). Crowds are never foreground. batch_size_per_im candidates are kept, of
which at most the fraction fg_fraction is foreground: a random sample with use_random, otherwise the first
ones. With is_cascade_rcnn, all are kept, and the candidates are RpnRois alone, which must begin with the
image's ground-truth boxes, not divided by the scale; regions of zero width or height are left out.

Rois lists the foreground regions, then the others, in the coordinates of the network's input. LabelsInt32 is
the class of the ground-truth box that each overlaps most, or 0 for the background. BboxTargets holds, in the
four columns of that class (of class 1 with is_cls_agnostic), the offset to the ground-truth box divided by
bbox_reg_weights; the weights are 1 in these columns and 0 elsewhere.

Ren, He, Girshick, Sun: "Faster R-CNN", NIPS 2015. Cai, Vasconcelos: "Cascade R-CNN", CVPR 2018.)";

Status InferProposalLabels(InferContext& c) {
  const Shape &rois = c.ShapeOf("RpnRois"), &boxes = c.ShapeOf("GtBoxes"), &info = c.ShapeOf("ImInfo");
  if (rois.rank() != 2 || !Compatible(rois[1], 4))
    return c.Error("shape of RpnRois (", rois, ") must be [regions, 4]");
  if (boxes.rank() != 2 || !Compatible(boxes[1], 4))
    return c.Error("shape of GtBoxes (", boxes, ") must be [boxes, 4]");
  if (info.rank() != 2 || !Compatible(info[1], 3))
    return c.Error("shape of ImInfo (", info, ") must be [images, 3]");
  for (const char* slot : {"GtClasses", "IsCrowd"}) {
    const Shape& shape = c.ShapeOf(slot);
    const bool fits = shape.rank() >= 1 && shape.rank() <= 2 && Compatible(shape[0], boxes[0]) &&
                      (shape.rank() == 1 || Compatible(shape[1], 1));
    if (!fits) return c.Error("shape of ", slot, " (", shape, ") must be [", boxes[0], ", 1]");
  }
  const std::size_t weights = c.Attr<std::vector<float>>("bbox_reg_weights").size();
  if (weights != 4) return c.Error("bbox_reg_weights must have 4 values, not ", weights);
  const Dim width = 4 * Dim{c.Attr<std::int32_t>("class_nums")};
  for (const char* slot : {"Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"})
    c.SetLodLevel(slot, 1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Rois", {kUnknownDim, 4}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("LabelsInt32", {kUnknownDim, 1}));
  for (const char* slot : {"BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {kUnknownDim, width}));
  return OkStatus();
}

template <typename Device, typename T>
class ProposalLabelsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    rois_.Prepare(k, "RpnRois");
    boxes_.Prepare(k, "GtBoxes");
    k.Bind(classes_, crowd_, info_);
    batch_ = k.Attr<std::int32_t>("batch_size_per_im");
    fraction_ = k.Attr<float>("fg_fraction");
    object_ = static_cast<T>(k.Attr<float>("fg_thresh"));
    high_ = static_cast<T>(k.Attr<float>("bg_thresh_hi"));
    low_ = static_cast<T>(k.Attr<float>("bg_thresh_lo"));
    for (const float weight : k.Attr<std::vector<float>>("bbox_reg_weights"))
      weights_.push_back(static_cast<T>(weight));
    count_ = k.Attr<std::int32_t>("class_nums");
    cascade_ = k.Attr<bool>("is_cascade_rcnn");
    agnostic_ = k.Attr<bool>("is_cls_agnostic");
    draws_.Prepare(k, k.Attr<bool>("use_random"));
    const DType type = k.Input("RpnRois").dtype;
    PENSTOCK_RETURN_IF_ERROR(out_[0].Prepare(k, "Rois", type, {0, 4}));
    PENSTOCK_RETURN_IF_ERROR(out_[1].Prepare(k, "LabelsInt32", DType::kInt32, {0, 1}));
    PENSTOCK_RETURN_IF_ERROR(out_[2].Prepare(k, "BboxTargets", type, {0, 4 * count_}));
    PENSTOCK_RETURN_IF_ERROR(out_[3].Prepare(k, "BboxInsideWeights", type, {0, 4 * count_}));
    return out_[4].Prepare(k, "BboxOutsideWeights", type, {0, 4 * count_});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets rois, rois_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets boxes, boxes_.Innermost(k));
    if (rois.count() != boxes.count() || rois.count() != k[info_].shape()[0])
      return LodError(rois_.what(), " is in ", rois.count(), " sequences, GtBoxes in ", boxes.count(),
                      "; ImInfo has ", k[info_].shape()[0], " images");
    draws_.Begin();
    samples_.clear();
    for (MadeLod& lod : lods_) lod.Start(1);
    for (Dim image = 0; image < rois.count(); ++image) {
      const std::size_t before = samples_.size();
      PENSTOCK_RETURN_IF_ERROR(AddImage(k, image, rois, boxes));
      for (MadeLod& lod : lods_) lod.Add(0, static_cast<Dim>(samples_.size() - before));
    }
    Write(k);
    return OkStatus();
  }

 private:
  struct Sample {
    T box[4], deltas[4];
    T scale{};
    std::int32_t label = 0;
  };

  Status AddImage(KernelRun& k, Dim image, const Offsets& rois, const Offsets& boxes) {
    const T scale = std::as_const(k[info_]).template Data<T>()[image * 3 + 2];
    const T* const truth = std::as_const(k[boxes_.operand()]).template Data<T>() + boxes.begin(image) * 4;
    const std::int32_t* const crowd =
        std::as_const(k[crowd_]).template Data<std::int32_t>() + boxes.begin(image);
    const std::int32_t* const labels =
        std::as_const(k[classes_]).template Data<std::int32_t>() + boxes.begin(image);
    const T* const regions = std::as_const(k[rois_.operand()]).template Data<T>();
    const Dim truths = boxes.length(image);
    candidates_.clear();
    crowds_.clear();
    if (!cascade_) {
      for (Dim i = 0; i < truths; ++i) AddCandidate(truth + i * 4, T{1}, crowd[i] != 0);
    }
    for (Dim i = rois.begin(image); i < rois.end(image); ++i) {
      const Dim at = i - rois.begin(image);
      const bool is_truth = cascade_ && at < truths;
      AddCandidate(regions + i * 4, is_truth ? T{1} : scale, is_truth && crowd[at] != 0);
    }
    Sort(truth, truths);
    for (const auto& [at, box] : objects_) {
      if (labels[box] < 0 || labels[box] >= count_)
        return InvalidArgument("E-op-label", "generate_proposal_labels: GtClasses holds ", labels[box],
                               "; it must be in [0, ", count_, ")");
      Sample sample;
      std::copy_n(candidates_.data() + at * 4, 4, sample.box);
      BoxDeltas(sample.box, truth + box * 4, sample.deltas);
      for (std::size_t n = 0; n < 4; ++n) sample.deltas[n] /= weights_[n];
      sample.scale = scale;
      sample.label = labels[box];
      samples_.push_back(sample);
    }
    for (const std::size_t at : background_) {
      Sample sample = {};
      std::copy_n(candidates_.data() + at * 4, 4, sample.box);
      sample.scale = scale;
      samples_.push_back(sample);
    }
    return OkStatus();
  }
  void AddCandidate(const T* box, T scale, bool is_crowd) {
    if (cascade_ && !(box[2] / scale - box[0] / scale + 1 > 0 && box[3] / scale - box[1] / scale + 1 > 0))
      return;
    for (Dim n = 0; n < 4; ++n) candidates_.push_back(box[n] / scale);
    crowds_.push_back(is_crowd);
  }
  // The foreground candidates that are kept, each with its ground-truth box, and the background candidates
  // that are kept.
  void Sort(const T* truth, Dim boxes) {
    objects_.clear();
    background_.clear();
    for (std::size_t i = 0; i < candidates_.size() / 4; ++i) {
      T most{-1};
      std::size_t best = 0;
      for (Dim j = 0; j < boxes; ++j) {
        const T overlap = PixelOverlap(candidates_.data() + i * 4, truth + j * 4);
        if (!(overlap > most)) continue;
        most = overlap;
        best = static_cast<std::size_t>(j);
      }
      if (boxes == 0) most = T{0};
      if (crowds_[i]) most = T{-1};
      if (boxes > 0 && most >= object_) {
        objects_.emplace_back(i, best);
      } else if (most >= low_ && most < high_) {
        background_.push_back(i);
      }
    }
    if (cascade_) return;
    draws_.Shorten(objects_, static_cast<std::size_t>(static_cast<float>(batch_) * fraction_));
    draws_.Shorten(background_,
                   static_cast<std::size_t>(std::max<Dim>(batch_ - static_cast<Dim>(objects_.size()), 0)));
  }
  void Write(KernelRun& k) {
    const Dim rows = static_cast<Dim>(samples_.size());
    Tensor* made[5];
    for (std::size_t i = 0; i < 5; ++i) {
      made[i] = &out_[i].Make(k, rows);
      if (i > 1) std::ranges::fill(made[i]->Span<T>(), T{0});
      lods_[i].Set(*made[i]);
    }
    for (Dim row = 0; row < rows; ++row) {
      const Sample& sample = samples_[static_cast<std::size_t>(row)];
      for (Dim n = 0; n < 4; ++n) made[0]->Data<T>()[row * 4 + n] = sample.box[n] * sample.scale;
      made[1]->Data<std::int32_t>()[row] = sample.label;
      const Dim place = agnostic_ && sample.label > 0 ? 1 : sample.label;
      if (place <= 0 || place >= count_) continue;
      const Dim at = (row * count_ + place) * 4;
      std::copy_n(sample.deltas, 4, made[2]->Data<T>() + at);
      std::fill_n(made[3]->Data<T>() + at, 4, T{1});
      std::fill_n(made[4]->Data<T>() + at, 4, T{1});
    }
  }

  SequenceInput rois_, boxes_;
  In<"GtClasses"> classes_;
  In<"IsCrowd"> crowd_;
  In<"ImInfo"> info_;
  RowsOutput out_[5];
  MadeLod lods_[5];
  Dim batch_ = 0, count_ = 0;
  float fraction_ = 0;
  T object_{}, high_{}, low_{};
  std::vector<T> weights_;
  bool cascade_ = false, agnostic_ = false;
  SampleDraws draws_;
  std::vector<T> candidates_;
  std::vector<bool> crowds_;  // for each candidate, whether it is the ground-truth box of a crowd
  std::vector<std::pair<std::size_t, std::size_t>> objects_;
  std::vector<std::size_t> background_;
  std::vector<Sample> samples_;
};

}  // namespace

void RegisterProposalLabels(OpRegistry& ops) {
  ops.Add("generate_proposal_labels")
      .Doc("Samples the regions that train the second stage of a detector, and computes their targets.", kDoc)
      .Input("RpnRois", "[regions, 4], one sequence per image", Floats())
      .Input("GtClasses", "[boxes, 1], the classes of the ground-truth boxes", Only(DType::kInt32))
      .Input("IsCrowd", "[boxes, 1], nonzero if a box is a crowd", Only(DType::kInt32))
      .Input("GtBoxes", "ground-truth boxes, [boxes, 4], one sequence per image", SameTypeAs("RpnRois"))
      .Input("ImInfo", "[images, 3]: height, width, scale", SameTypeAs("RpnRois"))
      .Output("Rois", "[samples, 4], like all outputs with one sequence per image", SameTypeAs("RpnRois"))
      .Output("LabelsInt32", "[samples, 1]", Only(DType::kInt32))
      .Output("BboxTargets", "[samples, 4 * class_nums]", SameTypeAs("RpnRois"))
      .Output("BboxInsideWeights", "[samples, 4 * class_nums]", SameTypeAs("RpnRois"))
      .Output("BboxOutsideWeights", "[samples, 4 * class_nums]", SameTypeAs("RpnRois"))
      .RequiredAttr("batch_size_per_im", AttrKind::kInt, "the number of samples per image", AtLeast(0))
      .RequiredAttr("fg_fraction", AttrKind::kFloat, "the largest fraction of foreground samples",
                    Between(0, 1))
      .RequiredAttr("fg_thresh", AttrKind::kFloat, "the smallest overlap of a foreground sample")
      .RequiredAttr("bg_thresh_hi", AttrKind::kFloat, "background samples have smaller overlaps than this")
      .RequiredAttr("bg_thresh_lo", AttrKind::kFloat, "the smallest overlap of a background sample")
      .RequiredAttr("bbox_reg_weights", AttrKind::kFloats, "the divisors of the four offsets")
      .RequiredAttr("class_nums", AttrKind::kInt, "the number of classes including the background",
                    Between(1, 1 << 16))
      .Affects({Effect::kRandom})
      .Attr("use_random", true, "whether to sample at random")
      .Attr("is_cascade_rcnn", false,
            "whether to keep all regions, which then begin with the ground-truth boxes")
      .Attr("is_cls_agnostic", false, "whether all classes share the targets of class 1")
      .Nan("a region with a NaN overlaps nothing.")
      .InferShape(InferProposalLabels)
      .KernelTypeFrom("RpnRois")
      .Kernel<Cpu, ProposalLabelsKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
