// detection_map: the mean average precision of detected boxes, accumulated over batches.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/detection/boxes.h"
#include "operators/detection/made_rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
A row of DetectRes is (class, score, box). A row of Label is (class, box) or (class, difficult, box), where
`difficult` is a flag. Both have one sequence per image. Within an image and class, detections are considered
in descending order of score. A detection is a true positive if the ground-truth box that it overlaps most has
an overlap above overlap_threshold and is not matched yet; otherwise it is a false positive. Without
evaluate_difficult, detections of difficult boxes are ignored, and difficult boxes are not counted. MAP is the
mean, over the classes that have ground-truth boxes, of the average precision. With ap_type 11point, average
precision is the mean of the largest precision at recalls of at least 0, 0.1, ..., 1; with integral it is the
sum of precision times increase of recall. background_label is excluded.

AccumPosCount is the number of ground-truth boxes of each class. AccumTruePos and AccumFalsePos have one
sequence per class, whose rows are (score, 1 or 0). If HasState is given and not 0, they continue PosCount,
TruePos and FalsePos.

Everingham et al.: "The PASCAL visual object classes (VOC) challenge", IJCV 2010.)";

using Hits = std::vector<std::pair<float, int>>;  // pairs of a score and whether it is a hit

Status InferDetectionMap(InferContext& c) {
  const Shape &found = c.ShapeOf("DetectRes"), &label = c.ShapeOf("Label");
  if (found.rank() != 2 || !Compatible(found[1], 6))
    return c.Error("shape of DetectRes (", found, ") must be [boxes, 6]");
  if (label.rank() != 2 || (!Compatible(label[1], 6) && !Compatible(label[1], 5)))
    return c.Error("shape of Label (", label, ") must be [boxes, 5] or [boxes, 6]");
  const bool state = c.HasInput("PosCount");
  if (c.HasInput("TruePos") != state || c.HasInput("FalsePos") != state)
    return c.Error("PosCount, TruePos and FalsePos must be given together");
  const Dim classes = c.Attr<std::int32_t>("class_num");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("AccumPosCount", {classes, 1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("AccumTruePos", {kUnknownDim, 2}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("AccumFalsePos", {kUnknownDim, 2}));
  return c.SetShape("MAP", {1});
}

// Returns the average precision of one class with `positives` ground-truth boxes, whose hits are in both
// lists.
double AveragePrecision(const Hits& right, const Hits& wrong, int positives, bool integral,
                        std::vector<std::size_t>& order) {
  order.resize(right.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return right[a].first > right[b].first || (right[a].first == right[b].first && a < b);
  });
  double hits = 0, misses = 0, sum = 0, before = 0;
  double most[11] = {};
  for (const std::size_t i : order) {
    hits += right[i].second;
    misses += wrong[i].second;
    const double precision = hits + misses > 0 ? hits / (hits + misses) : 0, recall = hits / positives;
    if (std::abs(recall - before) > 1e-6) sum += precision * std::abs(recall - before);
    before = recall;
    for (int point = 0; point <= 10; ++point) {
      if (recall >= static_cast<double>(static_cast<float>(point) / 10.0f))
        most[point] = std::max(most[point], precision);
    }
  }
  if (integral) return sum;
  double points = 0;
  for (const double precision : most) points += precision / 11;
  return points;
}

template <typename Device, typename T>
class DetectionMapKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    found_.Prepare(k, "DetectRes");
    label_.Prepare(k, "Label");
    k.Bind(has_state_, count_);
    right_in_.Prepare(k, "TruePos");
    wrong_in_.Prepare(k, "FalsePos");
    count_out_.Start(k.Output("AccumPosCount"), DType::kInt32, {0, 1});
    right_out_.Start(k.Output("AccumTruePos"), DType::kFp32, {0, 2});
    wrong_out_.Start(k.Output("AccumFalsePos"), DType::kFp32, {0, 2});
    k.Bind(map_);
    threshold_ = k.Attr<float>("overlap_threshold");
    difficult_ = k.Attr<bool>("evaluate_difficult");
    integral_ = k.Attr<std::string>("ap_type") == "integral";
    background_ = k.Attr<std::int32_t>("background_label");
    classes_ = k.Attr<std::int32_t>("class_num");
    positives_.resize(static_cast<std::size_t>(classes_));
    right_.resize(static_cast<std::size_t>(classes_));
    wrong_.resize(static_cast<std::size_t>(classes_));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    std::ranges::fill(positives_, 0);
    for (auto* lists : {&right_, &wrong_}) {
      for (Hits& list : *lists) list.clear();
    }
    PENSTOCK_RETURN_IF_ERROR(ReadState(k));
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets found, found_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets truth, label_.Innermost(k));
    if (found.count() != truth.count())
      return LodError(found_.what(), " is in ", found.count(), " sequences, Label in ", truth.count());
    for (Dim image = 0; image < found.count(); ++image) {
      PENSTOCK_RETURN_IF_ERROR(
          AddImage(k, found.begin(image), found.end(image), truth.begin(image), truth.end(image)));
    }
    Write(k);
    return OkStatus();
  }

 private:
  Status ClassOf(float number, const SequenceInput& input, std::size_t& label) const {
    if (number >= 0 && number < static_cast<float>(classes_)) {
      label = static_cast<std::size_t>(number);
      return OkStatus();
    }
    return InvalidArgument("E-op-label", input.what(), " holds class ", number, "; it must be in [0, ",
                           classes_, ")");
  }

  Status ReadState(KernelRun& k) {
    if (!count_) return OkStatus();
    if (has_state_ && k.Var(has_state_).initialized() &&
        std::as_const(k[has_state_]).Data<std::int32_t>()[0] == 0)
      return OkStatus();
    for (const auto& [operand, slot] : {std::pair<Operand, const char*>(has_state_, "HasState"),
                                        {count_, "PosCount"},
                                        {right_in_.operand(), "TruePos"},
                                        {wrong_in_.operand(), "FalsePos"}}) {
      if (operand && !k.Var(operand).initialized())
        return FailedPrecondition("E-run-uninitialized", "detection_map: ", slot,
                                  " has no value; set HasState to 0 if there is no state yet");
    }
    if (k[count_].count() != classes_)
      return InvalidArgument("E-op-value", "detection_map: PosCount holds ", k[count_].count(),
                             " numbers; there are ", classes_, " classes");
    std::ranges::copy(std::as_const(k[count_]).template Span<std::int32_t>(), positives_.begin());
    for (const bool hit : {true, false}) {
      const SequenceInput& input = hit ? right_in_ : wrong_in_;
      std::vector<Hits>& lists = hit ? right_ : wrong_;
      PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, input.Innermost(k));
      if (sequences.count() > classes_)  // classes after the last sequence have no rows
        return LodError(input.what(), " has ", sequences.count(), " sequences, but there are ", classes_,
                        " classes");
      const float* const rows = std::as_const(k[input.operand()]).Data<float>();
      if (sequences.total() > 0 && k[input.operand()].count() != 2 * sequences.total())
        return LodError(input.what(), " must have two numbers in a row");
      for (Dim label = 0; label < sequences.count(); ++label) {
        for (Dim i = sequences.begin(label); i < sequences.end(label); ++i)
          lists[static_cast<std::size_t>(label)].emplace_back(rows[2 * i], static_cast<int>(rows[2 * i + 1]));
      }
    }
    for (std::size_t label = 0; label < right_.size(); ++label) {
      if (right_[label].size() != wrong_[label].size())
        return LodError("detection_map: TruePos and FalsePos differ in class ", label);
    }
    return OkStatus();
  }

  Status AddImage(KernelRun& k, Dim begin, Dim end, Dim truth_begin, Dim truth_end) {
    const Dim width = k[label_.operand()].shape()[1], first = width == 6 ? 2 : 1;
    const T* const truth = std::as_const(k[label_.operand()]).template Data<T>();
    const T* const found = std::as_const(k[found_.operand()]).template Data<T>();
    truths_.clear();
    for (Dim i = truth_begin; i < truth_end; ++i) {
      Truth one;
      PENSTOCK_RETURN_IF_ERROR(ClassOf(static_cast<float>(truth[i * width]), label_, one.label));
      one.box = truth + i * width + first;
      one.difficult = width == 6 && std::abs(static_cast<double>(truth[i * width + 1])) >= 1e-6;
      if (difficult_ || !one.difficult) ++positives_[one.label];
      truths_.push_back(one);
    }
    rows_.clear();
    for (Dim i = begin; i < end; ++i) {
      std::size_t label = 0;
      PENSTOCK_RETURN_IF_ERROR(ClassOf(static_cast<float>(found[i * 6]), found_, label));
      rows_.push_back(i);
    }
    std::sort(rows_.begin(), rows_.end(), [&](Dim a, Dim b) {
      return found[a * 6 + 1] > found[b * 6 + 1] || (found[a * 6 + 1] == found[b * 6 + 1] && a < b);
    });
    for (const Dim row : rows_) AddFound(found + row * 6);
    return OkStatus();
  }
  void AddFound(const T* row) {
    const std::size_t label = static_cast<std::size_t>(row[0]);
    T box[4];
    for (int n = 0; n < 4; ++n) box[n] = std::clamp(row[2 + n], T{0}, T{1});
    T most{-1};
    Truth* best = nullptr;
    for (Truth& one : truths_) {
      if (one.label != label) continue;
      const T overlap = BoxOverlap(box, one.box, true);
      if (!(overlap > most)) continue;
      most = overlap;
      best = &one;
    }
    const bool enough = best != nullptr && static_cast<float>(most) > threshold_;
    if (enough && !difficult_ && best->difficult) return;
    const bool hit = enough && !best->visited;
    if (hit) best->visited = true;
    right_[label].emplace_back(static_cast<float>(row[1]), hit ? 1 : 0);
    wrong_[label].emplace_back(static_cast<float>(row[1]), hit ? 0 : 1);
  }

  void Write(KernelRun& k) {
    std::ranges::copy(positives_, count_out_.Make(k, classes_).template Data<std::int32_t>());
    WriteHits(k, right_out_, right_, lods_[0]);
    WriteHits(k, wrong_out_, wrong_, lods_[1]);
    double sum = 0;
    int counted = 0;
    for (std::size_t label = 0; label < right_.size(); ++label) {
      if (positives_[label] == 0 || static_cast<Dim>(label) == background_) continue;
      ++counted;
      if (!right_[label].empty())
        sum += AveragePrecision(right_[label], wrong_[label], positives_[label], integral_, order_);
    }
    k[map_].template Data<float>()[0] = counted == 0 ? 0.0f : static_cast<float>(sum / counted);
  }
  void WriteHits(KernelRun& k, MadeRows& out, const std::vector<Hits>& lists, MadeLod& lod) {
    Dim rows = 0;
    lod.Start(1);
    for (const Hits& list : lists) {
      rows += static_cast<Dim>(list.size());
      lod.Add(0, static_cast<Dim>(list.size()));
    }
    Tensor& made = out.Make(k, rows);
    float* to = made.template Data<float>();
    for (const Hits& list : lists) {
      for (const auto& [score, hit] : list) {
        *to++ = score;
        *to++ = static_cast<float>(hit);
      }
    }
    lod.Set(made);
  }

  struct Truth {
    const T* box = nullptr;
    std::size_t label = 0;
    bool difficult = false, visited = false;
  };
  SequenceInput found_, label_, right_in_, wrong_in_;
  In<"HasState"> has_state_;
  In<"PosCount"> count_;
  Out<"MAP"> map_;
  MadeRows count_out_, right_out_, wrong_out_;
  float threshold_ = 0;
  bool difficult_ = true, integral_ = true;
  Dim background_ = 0, classes_ = 0;
  std::vector<std::int32_t> positives_;
  std::vector<Hits> right_, wrong_;
  MadeLod lods_[2];
  std::vector<Truth> truths_;
  std::vector<Dim> rows_;
  std::vector<std::size_t> order_;
};

}  // namespace

void RegisterDetectionMap(OpRegistry& ops) {
  ops.Add("detection_map")
      .Doc("The mean average precision of detected boxes, accumulated over batches.", kDoc)
      .Input("DetectRes", "[boxes, 6], one sequence per image", Floats())
      .Input("Label", "[boxes, 5] or [boxes, 6], one sequence per image", SameTypeAs("DetectRes"))
      .Input("HasState", "nonzero if PosCount, TruePos and FalsePos are to be continued", Only(DType::kInt32),
             Optional())
      .Input("PosCount", "the number of ground-truth boxes of each class so far", Only(DType::kInt32),
             Optional())
      .Input("TruePos", "the scores of the detections so far, and whether each is a true positive",
             Only(DType::kFp32), Optional())
      .Input("FalsePos", "the same for false positives", Only(DType::kFp32), Optional())
      .Output("AccumPosCount", "the updated PosCount", Only(DType::kInt32), InPlaceInAnySize())
      .Output("AccumTruePos", "the updated TruePos", Only(DType::kFp32), InPlaceInAnySize())
      .Output("AccumFalsePos", "the updated FalsePos", Only(DType::kFp32), InPlaceInAnySize())
      .Output("MAP", "the mean average precision, [1]", Only(DType::kFp32))
      .ReadsOnlySome()
      .RequiredAttr("class_num", AttrKind::kInt, "the number of classes", AtLeast(1))
      .Attr("background_label", 0, "the class that is excluded; -1: none")
      .Attr("overlap_threshold", 0.5f, "overlaps of true positives are above this")
      .Attr("evaluate_difficult", true, "whether difficult boxes count")
      .Attr("ap_type", "integral", "how average precision is computed", OneOf({"integral", "11point"}))
      .Nan("a box with a NaN overlaps nothing.")
      .ReadsOnlySome()
      .InferShape(InferDetectionMap)
      .KernelTypeFrom("DetectRes")
      .Kernel<Cpu, DetectionMapKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
