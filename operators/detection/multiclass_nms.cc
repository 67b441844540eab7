// multiclass_nms, multiclass_nms2 and locality_aware_nms: non-maximum suppression, class by class.
#include <algorithm>
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
For each image and each class except background_label, takes the nms_top_k best of the boxes with a score
above score_threshold and removes those that overlap a better box by more than nms_threshold. After each kept
box nms_threshold is multiplied by nms_eta, as long as it is above 0.5. The keep_top_k best boxes of all
classes together are kept. A limit of -1 keeps all.

BBoxes is either [images, boxes, size] with Scores [images, classes, boxes], where size is 4, or 8, 16, 24 or
32 for polygons; or [boxes, classes, 4], one sequence per image, with Scores [boxes, classes]. A row of Out is
(class, score, box); the rows of an image form a sequence. If no box is detected, Out of multiclass_nms and
locality_aware_nms is a single element, -1, whereas multiclass_nms2 yields no rows. Index is the index of each
box among the boxes of all images.

locality_aware_nms first merges consecutive boxes: a box that overlaps its predecessor by more than
nms_threshold is averaged with it, weighted by the scores, and the scores are added (Zhou et al.: "EAST: an
efficient and accurate scene text detector", CVPR 2017).)";

struct NmsAttrs {
  Dim background = -1, nms_top_k = -1, keep_top_k = -1;
  float score_threshold = 0, nms_threshold = 0, eta = 1;
  bool normalized = true;

  void Read(const KernelSetup& k) {
    background = k.Attr<std::int32_t>("background_label");
    nms_top_k = k.Attr<std::int32_t>("nms_top_k");
    keep_top_k = k.Attr<std::int32_t>("keep_top_k");
    score_threshold = k.Attr<float>("score_threshold");
    nms_threshold = k.Attr<float>("nms_threshold");
    eta = k.Attr<float>("nms_eta");
    normalized = k.Attr<bool>("normalized");
  }
};

Status InferNms(InferContext& c) {
  const Shape &boxes = c.ShapeOf("BBoxes"), &scores = c.ShapeOf("Scores");
  const bool by_image = scores.rank() == 3;
  if (boxes.rank() != 3 || (!by_image && scores.rank() != 2))
    return c.Error("BBoxes (", boxes, ") must have rank 3, Scores (", scores, ") rank 3 or 2");
  if (!by_image && c.op().type() == "locality_aware_nms")
    return c.Error("rank of Scores (2, shape ", scores, ") must be 3");
  if (boxes[2] != kUnknownDim && !(by_image ? IsBoxSize(boxes[2]) : boxes[2] == 4))
    return c.Error("the last extent of BBoxes (", boxes, ") must be 4", by_image ? ", 8, 16, 24 or 32" : "");
  const bool fit = Compatible(boxes[0], scores[0]) && Compatible(boxes[1], scores[by_image ? 2 : 1]);
  if (!fit)
    return c.Error("BBoxes (", boxes, ") and Scores (", scores,
                   ") must have the same images, boxes and classes");
  c.SetLodLevel("Out", 1);
  c.SetLodLevel("Index", 1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Index", {kUnknownDim, 1}));
  return c.SetShape("Out", {kUnknownDim, boxes[2] == kUnknownDim ? kUnknownDim : boxes[2] + 2});
}

// The boxes of one image and class, and their scores.
template <typename T>
struct ClassOfImage {
  BoxList<T> boxes;
  const T* scores = nullptr;
  Dim stride = 1, count = 0;
  T Score(Dim i) const { return scores[i * stride]; }
};

template <typename Device, typename T>
class MulticlassNmsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(boxes_, scores_);
    sequences_.Prepare(k, "BBoxes");
    attrs_.Read(k);
    by_image_ = k[scores_].shape.rank() == 3;
    merges_ = k.op().type() == "locality_aware_nms";
    empty_row_ = k.op().type() != "multiclass_nms2";
    classes_ = k[scores_].shape[1];
    places_ = k[boxes_].shape[1];
    size_ = k[boxes_].shape[2];
    out_.Start(k.Output("Out"), k[boxes_].dtype, {0, size_ + 2});
    nothing_.Start(k.Output("Out"), k[boxes_].dtype, {1, 1});
    index_.Start(k.Output("Index"), DType::kInt32, {0, 1});
    if (merges_) merged_boxes_.resize(static_cast<std::size_t>(k[boxes_].shape.Count() * classes_));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    Offsets sequences;
    if (!by_image_) {
      PENSTOCK_ASSIGN_OR_RETURN(sequences, sequences_.Innermost(k));
    }
    const Dim images = by_image_ ? k[boxes_].shape()[0] : sequences.count();
    lod_.Start(1);
    all_.clear();
    for (Dim image = 0; image < images; ++image) {
      const Dim first = by_image_ ? image * k[boxes_].shape()[1] : sequences.begin(image);
      const Dim count = by_image_ ? k[boxes_].shape()[1] : sequences.length(image);
      FindInImage(k, image, first, count);
      for (Detection<T>& one : found_) {
        one.box += first;  // among those of all images
        all_.push_back(one);
      }
      lod_.Add(0, static_cast<Dim>(found_.size()));
    }
    return Write(k);
  }

 private:
  ClassOfImage<T> ClassAt(KernelRun& k, Dim image, Dim first, Dim count, Dim label) const {
    const T* const boxes = std::as_const(k[boxes_]).template Data<T>();
    const T* const scores = std::as_const(k[scores_]).template Data<T>();
    if (by_image_) {
      return {{boxes + first * size_, size_, static_cast<int>(size_), attrs_.normalized},
              scores + (image * classes_ + label) * count,
              1,
              count};
    }
    return {{boxes + (first * classes_ + label) * size_, classes_ * size_, static_cast<int>(size_),
             attrs_.normalized},
            scores + first * classes_ + label,
            classes_,
            count};
  }

  void FindInImage(KernelRun& k, Dim image, Dim first, Dim count) {
    found_.clear();
    for (Dim label = 0; label < classes_; ++label) {
      if (label == attrs_.background) continue;
      ClassOfImage<T> one = ClassAt(k, image, first, count, label);
      if (merges_) Merge(MergedBoxes(first, label), one);
      const T threshold = static_cast<T>(attrs_.score_threshold);
      BestFirst<T>(
          count, threshold, attrs_.nms_top_k,
          [&](Dim i) {
            return merges_ && merged_away_[static_cast<std::size_t>(i)] ? threshold : one.Score(i);
          },
          candidates_);
      Suppress(one.boxes, static_cast<T>(attrs_.nms_threshold), static_cast<T>(attrs_.eta), candidates_);
      if (!by_image_)
        std::sort(candidates_.begin(), candidates_.end(),
                  [](auto& a, auto& b) { return a.second < b.second; });
      for (const auto& [score, box] : candidates_) found_.push_back({score, label, box});
    }
    KeepBest(attrs_.keep_top_k, found_);
    if (by_image_) return;
    std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
      return a.label != b.label ? a.label < b.label : a.box < b.box;
    });
  }

  // Returns the first of the averaged boxes of an image and class; `box` is a box of that image.
  T* MergedBoxes(Dim box, Dim label) {
    const Dim count = places_;
    return merged_boxes_.data() + (box / count * classes_ + label) * count * size_;
  }
  // Averages consecutive boxes that overlap, in copies of the boxes and scores.
  void Merge(T* boxes, ClassOfImage<T>& one) {
    std::copy_n(one.boxes.data, one.count * size_, boxes);
    merged_scores_.assign(one.scores, one.scores + one.count);
    merged_away_.assign(static_cast<std::size_t>(one.count), false);
    one.boxes.data = boxes;
    one.scores = merged_scores_.data();
    for (Dim i = 1, last = 0; i < one.count; ++i) {
      if (!(one.boxes.Overlap(i, last) > static_cast<T>(attrs_.nms_threshold))) {
        last = i;
        continue;
      }
      T& kept = merged_scores_[static_cast<std::size_t>(last)];
      const T mine = one.Score(i);
      for (Dim n = 0; n < size_; ++n) {
        T& to = boxes[last * size_ + n];
        to = (boxes[i * size_ + n] * mine + to * kept) / (mine + kept);
      }
      kept += mine;
      merged_away_[static_cast<std::size_t>(i)] = true;
    }
  }

  const T* BoxOf(KernelRun& k, const Detection<T>& one) {
    if (merges_) return MergedBoxes(one.box, one.label) + one.box % k[boxes_].shape()[1] * size_;
    const T* const boxes = std::as_const(k[boxes_]).template Data<T>();
    return boxes + (by_image_ ? one.box : one.box * classes_ + one.label) * size_;
  }

  Status Write(KernelRun& k) {
    const Dim rows = static_cast<Dim>(all_.size());
    if (rows == 0 && empty_row_) {
      Tensor& nothing = nothing_.Make(k, 1);
      nothing.template Data<T>()[0] = T{-1};
      lod_.Start(1);
      lod_.Add(0, 1);
      lod_.Set(nothing);
      return OkStatus();
    }
    Tensor& made = out_.Make(k, rows);
    T* out = made.template Data<T>();
    for (const Detection<T>& one : all_) {
      *out++ = static_cast<T>(one.label);
      *out++ = one.score;
      out = std::copy_n(BoxOf(k, one), size_, out);
    }
    lod_.Set(made);
    if (!index_) return OkStatus();
    Tensor& numbers = index_.Make(k, rows);
    std::int32_t* index = numbers.template Data<std::int32_t>();
    for (const Detection<T>& one : all_)
      *index++ = static_cast<std::int32_t>(by_image_ ? one.box : one.box * classes_ + one.label);
    index_lod_.Start(1);
    index_lod_.CopyLevel(0, made.lod().front());
    index_lod_.Set(numbers);
    return OkStatus();
  }

  In<"BBoxes"> boxes_;
  In<"Scores"> scores_;
  MadeRows out_, nothing_, index_;
  SequenceInput sequences_;
  NmsAttrs attrs_;
  bool by_image_ = true, merges_ = false, empty_row_ = true;
  Dim classes_ = 0, places_ = 0, size_ = 4;
  MadeLod lod_, index_lod_;
  std::vector<std::pair<T, Dim>> candidates_;
  std::vector<Detection<T>> found_, all_;
  std::vector<T> merged_boxes_, merged_scores_;
  std::vector<bool> merged_away_;
};

OpDef& AddNms(OpRegistry& ops, const char* type, int background) {
  return ops.Add(type)
      .Doc("Non-maximum suppression, class by class.", kDoc)
      .Input("BBoxes", "the boxes", Floats())
      .Input("Scores", "the scores", SameTypeAs("BBoxes"))
      .Output("Out", "one row per box: class, score, box", SameTypeAs("BBoxes"), Apart())
      .Attr("background_label", background, "the class to exclude; -1: none")
      .RequiredAttr("score_threshold", AttrKind::kFloat, "boxes with larger scores are considered")
      .RequiredAttr("nms_top_k", AttrKind::kInt, "the number of boxes per class to consider; -1: all",
                    AtLeast(-1))
      .Attr("nms_threshold", 0.3f, "the largest overlap of two kept boxes")
      .Attr("nms_eta", 1.0f, "the factor of nms_threshold after each kept box", Between(0, 1))
      .RequiredAttr("keep_top_k", AttrKind::kInt, "the number of boxes per image to keep; -1: all",
                    AtLeast(-1))
      .Attr("normalized", true, "whether coordinates are normalised; if not, boxes include their last pixel")
      .Nan("a box whose score is NaN is not detected.")
      .InferShape(InferNms)
      .Kernel<Cpu, MulticlassNmsKernel, float, double>()
      .NoGrad();
}

}  // namespace

void RegisterMulticlassNms(OpRegistry& ops) {
  AddNms(ops, "multiclass_nms", 0);
  AddNms(ops, "multiclass_nms2", 0)
      .Output("Index", "the index of each box among the boxes of all images", Only(DType::kInt32),
              Intermediate());
  AddNms(ops, "locality_aware_nms", -1);
}

}  // namespace penstock
