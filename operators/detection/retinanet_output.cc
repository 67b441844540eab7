// retinanet_detection_output: decodes and suppresses RetinaNet's boxes over all levels of its feature
// pyramid.
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
#include "operators/detection/nms.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each level, takes the nms_top_k best of the scores above score_threshold (above 0 on the last level). Each
is the score of one class of one anchor. The anchor is moved by BBoxes as box_coder's decode_center_size moves
boxes in pixels, divided by the image's scale and clipped to the image; the result is a box of that class.
Then, class by class, boxes that overlap a better one by more than nms_threshold are removed; nms_threshold
shrinks by nms_eta as in multiclass_nms. The keep_top_k best boxes of all classes together are kept, best
first. A row of Out is (class + 1, score, box); the rows of an image form a sequence.

Lin, Goyal, Girshick, He, Dollar: "Focal loss for dense object detection", ICCV 2017.)";

Status InferRetinanetOutput(InferContext& c) {
  const int levels = c.InputCount("BBoxes");
  if (c.InputCount("Scores") != levels || c.InputCount("Anchors") != levels)
    return c.Error("there are ", levels, " BBoxes, ", c.InputCount("Scores"), " Scores and ",
                   c.InputCount("Anchors"), " Anchors; each level needs one of each");
  const Shape& info = c.ShapeOf("ImInfo");
  if (info.rank() != 2 || !Compatible(info[1], 3))
    return c.Error("shape of ImInfo (", info, ") must be [images, 3]");
  for (int i = 0; i < levels; ++i) {
    const Shape &boxes = c.ShapeOf("BBoxes", i), &scores = c.ShapeOf("Scores", i);
    const Shape &anchors = c.ShapeOf("Anchors", i), &first = c.ShapeOf("Scores", 0);
    const bool ranks = boxes.rank() == 3 && scores.rank() == 3 && first.rank() == 3 && anchors.rank() == 2;
    if (!ranks || !Compatible(boxes, Shape{info[0], anchors[0], 4}) ||
        !Compatible(scores, Shape{info[0], anchors[0], first[2]}) || !Compatible(anchors[1], 4))
      return c.Error("level ", i, " has BBoxes ", boxes, ", Scores ", scores, " and Anchors ", anchors,
                     "; they must be [images, n, 4], [images, n, classes] and [n, 4]");
  }
  c.SetLodLevel("Out", 1);
  return c.SetShape("Out", {kUnknownDim, 6});
}

template <typename Device, typename T>
class RetinanetOutputKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const auto take = [&](const char* slot, std::vector<Operand>& to) {
      to.assign(k.Inputs(slot).begin(), k.Inputs(slot).end());
    };
    take("BBoxes", deltas_);
    take("Scores", scores_);
    take("Anchors", anchors_);
    k.Bind(info_);
    threshold_ = static_cast<T>(k.Attr<float>("score_threshold"));
    overlap_ = static_cast<T>(k.Attr<float>("nms_threshold"));
    eta_ = static_cast<T>(k.Attr<float>("nms_eta"));
    top_k_ = k.Attr<std::int32_t>("nms_top_k");
    keep_ = k.Attr<std::int32_t>("keep_top_k");
    classes_ = k.Input("Scores").shape[2];
    of_class_.resize(static_cast<std::size_t>(classes_));
    return out_.Prepare(k, "Out", k[info_].dtype, {0, 6});
  }

  Status Run(KernelRun& k) override {
    rows_.clear();
    lod_.Start(1);
    for (Dim image = 0; image < k[info_].shape()[0]; ++image) {
      boxes_.clear();
      for (auto& list : of_class_) list.clear();
      for (std::size_t level = 0; level < scores_.size(); ++level) AddLevel(k, image, level);
      found_.clear();
      for (std::size_t label = 0; label < of_class_.size(); ++label) {
        std::sort(of_class_[label].begin(), of_class_[label].end(), [](const auto& a, const auto& b) {
          return a.first > b.first || (a.first == b.first && a.second < b.second);
        });
        Suppress({boxes_.data(), 4, 4, false}, overlap_, eta_, of_class_[label]);
        for (const auto& [score, box] : of_class_[label])
          found_.push_back({score, static_cast<Dim>(label), box});
      }
      std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
        if (a.score != b.score) return a.score > b.score;
        return a.label != b.label ? a.label < b.label : a.box < b.box;
      });
      if (keep_ >= 0 && static_cast<Dim>(found_.size()) > keep_)
        found_.resize(static_cast<std::size_t>(keep_));
      for (const Detection<T>& one : found_) {
        rows_.insert(rows_.end(), {static_cast<T>(one.label + 1), one.score});
        rows_.insert(rows_.end(), boxes_.begin() + one.box * 4, boxes_.begin() + one.box * 4 + 4);
      }
      lod_.Add(0, static_cast<Dim>(found_.size()));
    }
    Tensor& out = out_.Make(k, static_cast<Dim>(rows_.size() / 6));
    std::ranges::copy(rows_, out.Data<T>());
    lod_.Set(out);
    return OkStatus();
  }

 private:
  void AddLevel(KernelRun& k, Dim image, std::size_t level) {
    const Dim count = k[anchors_[level]].shape()[0];
    const T* const scores = std::as_const(k[scores_[level]]).template Data<T>() + image * count * classes_;
    const T* const deltas = std::as_const(k[deltas_[level]]).template Data<T>() + image * count * 4;
    const T* const anchors = std::as_const(k[anchors_[level]]).template Data<T>();
    const T* const info = std::as_const(k[info_]).template Data<T>() + image * 3;
    const T threshold = level + 1 < scores_.size() ? threshold_ : T{0};
    BestFirst<T>(
        count * classes_, threshold, top_k_, [scores](Dim i) { return scores[i]; }, best_);
    const T last_x = std::round(info[1] / info[2]) - 1, last_y = std::round(info[0] / info[2]) - 1;
    for (const auto& [score, at] : best_) {
      const Dim anchor = at / classes_;
      T box[4];
      Move(anchors + anchor * 4, deltas + anchor * 4, box);
      for (int n = 0; n < 4; ++n) {
        const T place = box[n] / info[2];
        box[n] = std::max(std::min(place, n % 2 == 0 ? last_x : last_y), T{0});
      }
      of_class_[static_cast<std::size_t>(at % classes_)].emplace_back(score,
                                                                      static_cast<Dim>(boxes_.size() / 4));
      boxes_.insert(boxes_.end(), box, box + 4);
    }
  }
  static void Move(const T* anchor, const T* delta, T* box) {
    const T width = anchor[2] - anchor[0] + 1, height = anchor[3] - anchor[1] + 1;
    const T x = delta[0] * width + anchor[0] + width / 2, y = delta[1] * height + anchor[1] + height / 2;
    const T wide = std::exp(delta[2]) * width, high = std::exp(delta[3]) * height;
    box[0] = x - wide / 2;
    box[1] = y - high / 2;
    box[2] = x + wide / 2 - 1;
    box[3] = y + high / 2 - 1;
  }

  std::vector<Operand> deltas_, scores_, anchors_;
  In<"ImInfo"> info_;
  T threshold_{}, overlap_{}, eta_{1};
  Dim top_k_ = -1, keep_ = -1, classes_ = 0;
  RowsOutput out_;
  MadeLod lod_;
  std::vector<std::pair<T, Dim>> best_;
  std::vector<std::vector<std::pair<T, Dim>>> of_class_;
  std::vector<Detection<T>> found_;
  std::vector<T> boxes_, rows_;
};

}  // namespace

void RegisterRetinanetOutput(OpRegistry& ops) {
  ops.Add("retinanet_detection_output")
      .Doc("The detections of RetinaNet, over all levels of its feature pyramid.", kDoc)
      .Input("BBoxes", "[images, n, 4] of each level", Floats(), Repeated())
      .Input("Scores", "[images, n, classes] of each level", SameTypeAs("BBoxes"), Repeated())
      .Input("Anchors", "[n, 4] of each level", SameTypeAs("BBoxes"), Repeated())
      .Input("ImInfo", "[images, 3]: height, width, scale", SameTypeAs("BBoxes"))
      .Output("Out", "one row per box: class + 1, score, box", SameTypeAs("BBoxes"))
      .RequiredAttr("score_threshold", AttrKind::kFloat, "boxes with larger scores are considered")
      .RequiredAttr("nms_top_k", AttrKind::kInt, "the number of scores per level to consider; -1: all",
                    AtLeast(-1))
      .RequiredAttr("nms_threshold", AttrKind::kFloat, "the largest overlap of two kept boxes")
      .RequiredAttr("nms_eta", AttrKind::kFloat, "the factor of nms_threshold after each kept box",
                    Between(0, 1))
      .RequiredAttr("keep_top_k", AttrKind::kInt, "the number of boxes per image to keep; -1: all",
                    AtLeast(-1))
      .Nan("a score that is NaN yields no detection, and a coordinate that would be NaN is 0.")
      .InferShape(InferRetinanetOutput)
      .Kernel<Cpu, RetinanetOutputKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
