// matrix_nms: non-maximum suppression that reduces the scores of boxes by their overlap with better boxes.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/detection/made_rows.h"
#include "operators/detection/nms.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each image and each class except background_label, takes the nms_top_k best of the boxes with a score
above score_threshold, in descending order of score. The score of box i is multiplied by the minimum, over the
better boxes j, of (1 - o(i, j)) / (1 - m(j)), or of exp(gaussian_sigma * (m(j)^2 - o(i, j)^2)) with
use_gaussian. Here o is the overlap of two boxes and m(j) the largest overlap of j with a better box. Boxes
whose score is then above post_threshold are detected. The keep_top_k best detections of all classes together
are kept, best first. A limit of -1 keeps all.

A row of Out is (class, score, box); the rows of an image form a sequence. Index is the index of each box
among the boxes of all images.

Wang, Zhang, Kong, Li, Shen: "SOLOv2: dynamic and fast instance segmentation", NeurIPS 2020.)";

Status InferMatrixNms(InferContext& c) {
  const Shape &boxes = c.ShapeOf("BBoxes"), &scores = c.ShapeOf("Scores");
  if (boxes.rank() != 3 || scores.rank() != 3)
    return c.Error("BBoxes (", boxes, ") and Scores (", scores, ") must have rank 3");
  if (!Compatible(boxes[2], 4) || !Compatible(boxes[0], scores[0]) || !Compatible(boxes[1], scores[2]))
    return c.Error("BBoxes (", boxes, ") must be [images, boxes, 4], Scores (", scores,
                   ") [images, classes, boxes]");
  c.SetLodLevel("Out", 1);
  c.SetLodLevel("Index", 1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Index", {kUnknownDim, 1}));
  return c.SetShape("Out", {kUnknownDim, 6});
}

template <typename Device, typename T>
class MatrixNmsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(boxes_, scores_);
    out_.Start(k.Output("Out"), k[boxes_].dtype, {0, 6});
    index_.Start(k.Output("Index"), DType::kInt32, {0, 1});
    background_ = k.Attr<std::int32_t>("background_label");
    nms_top_k_ = k.Attr<std::int32_t>("nms_top_k");
    keep_top_k_ = k.Attr<std::int32_t>("keep_top_k");
    threshold_ = static_cast<T>(k.Attr<float>("score_threshold"));
    post_threshold_ = static_cast<T>(k.Attr<float>("post_threshold"));
    sigma_ = static_cast<T>(k.Attr<float>("gaussian_sigma"));
    gaussian_ = k.Attr<bool>("use_gaussian");
    normalized_ = k.Attr<bool>("normalized");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* boxes = std::as_const(k[boxes_]).template Data<T>();
    const T* scores = std::as_const(k[scores_]).template Data<T>();
    const Dim count = k[boxes_].shape()[1], classes = k[scores_].shape()[1];
    lod_.Start(1);
    all_.clear();
    for (Dim image = 0; image < k[boxes_].shape()[0]; ++image, boxes += count * 4) {
      found_.clear();
      for (Dim label = 0; label < classes; ++label, scores += count) {
        if (label != background_) FindInClass({boxes, 4, 4, normalized_}, scores, count, label);
      }
      std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
        if (a.score != b.score) return a.score > b.score;
        return a.label != b.label ? a.label < b.label : a.box < b.box;
      });
      if (keep_top_k_ >= 0 && static_cast<Dim>(found_.size()) > keep_top_k_)
        found_.resize(static_cast<std::size_t>(keep_top_k_));
      for (Detection<T>& one : found_) {
        one.box += image * count;
        all_.push_back(one);
      }
      lod_.Add(0, static_cast<Dim>(found_.size()));
    }
    Write(k);
    return OkStatus();
  }

 private:
  void FindInClass(const BoxList<T>& boxes, const T* scores, Dim count, Dim label) {
    BestFirst<T>(
        count, threshold_, nms_top_k_, [scores](Dim i) { return scores[i]; }, candidates_);
    largest_.assign(candidates_.size(), T{0});
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      T decay{1};
      for (std::size_t j = 0; j < i; ++j) {
        const T overlap = boxes.Overlap(candidates_[i].second, candidates_[j].second);
        largest_[i] = std::max(largest_[i], overlap);
        const T m = largest_[j];
        decay = std::min(
            decay, gaussian_ ? std::exp((m * m - overlap * overlap) * sigma_) : (1 - overlap) / (1 - m));
      }
      const T score = candidates_[i].first * decay;
      if (score > post_threshold_) found_.push_back({score, label, candidates_[i].second});
    }
  }

  void Write(KernelRun& k) {
    const Dim rows = static_cast<Dim>(all_.size());
    Tensor& made = out_.Make(k, rows);
    T* out = made.template Data<T>();
    for (const Detection<T>& one : all_) {
      *out++ = static_cast<T>(one.label);
      *out++ = one.score;
      out = std::copy_n(std::as_const(k[boxes_]).template Data<T>() + one.box * 4, 4, out);
    }
    lod_.Set(made);
    if (!index_) return;
    Tensor& numbers = index_.Make(k, rows);
    std::int32_t* index = numbers.template Data<std::int32_t>();
    for (const Detection<T>& one : all_) *index++ = static_cast<std::int32_t>(one.box);
    index_lod_.Start(1);
    index_lod_.CopyLevel(0, made.lod().front());
    index_lod_.Set(numbers);
  }

  In<"BBoxes"> boxes_;
  In<"Scores"> scores_;
  MadeRows out_, index_;
  Dim background_ = 0, nms_top_k_ = -1, keep_top_k_ = -1;
  T threshold_{}, post_threshold_{}, sigma_{};
  bool gaussian_ = false, normalized_ = true;
  MadeLod lod_, index_lod_;
  std::vector<std::pair<T, Dim>> candidates_;
  std::vector<T> largest_;
  std::vector<Detection<T>> found_, all_;
};

}  // namespace

void RegisterMatrixNms(OpRegistry& ops) {
  ops.Add("matrix_nms")
      .Doc(
          "Non-maximum suppression that lowers the scores of overlapping boxes instead of removing the "
          "boxes.",
          kDoc)
      .Input("BBoxes", "[images, boxes, 4]", Floats())
      .Input("Scores", "[images, classes, boxes]", SameTypeAs("BBoxes"))
      .Output("Out", "one row per box: class, score, box", SameTypeAs("BBoxes"), Apart())
      .Output("Index", "the index of each box among the boxes of all images", Only(DType::kInt32))
      .Attr("background_label", 0, "the class to exclude; -1: none")
      .RequiredAttr("score_threshold", AttrKind::kFloat, "boxes with larger scores are considered")
      .Attr("post_threshold", 0.0f, "boxes with a larger lowered score are detected")
      .RequiredAttr("nms_top_k", AttrKind::kInt, "the number of boxes per class to consider; -1: all",
                    AtLeast(-1))
      .RequiredAttr("keep_top_k", AttrKind::kInt, "the number of boxes per image to keep; -1: all",
                    AtLeast(-1))
      .Attr("normalized", true, "whether coordinates are normalised; if not, boxes include their last pixel")
      .Attr("use_gaussian", false, "whether scores decay by a Gaussian")
      .Attr("gaussian_sigma", 2.0f, "the parameter of the Gaussian")
      .Nan("a box whose score is NaN is not detected.")
      .InferShape(InferMatrixNms)
      .KernelTypeFrom("BBoxes")
      .Kernel<Cpu, MatrixNmsKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
