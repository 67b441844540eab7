// mean_iou: the mean over classes of intersection over union.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
OutCorrect[c] is the number of elements whose prediction and label are both c; OutWrong[c] is the number of
elements for which exactly one of them is c. The sums of the tensors in InCorrects and InWrongs are added.
OutMeanIou is the mean of correct / (correct + wrong) over the classes that occur, plus the sum of
InMeanIou.)";

Status InferMeanIou(InferContext& c) {
  const Shape &x = c.ShapeOf("Predictions"), &label = c.ShapeOf("Labels");
  const Dim classes = c.Attr<int>("num_classes");
  if (!Compatible(x.Count(), label.Count()))
    return c.Error("Labels (", label, ") must hold as many elements as Predictions (", x, ")");
  for (const char* slot : {"InWrongs", "InCorrects", "InMeanIou"}) {
    for (int i = 0; i < c.InputCount(slot); ++i) {
      const Dim wanted = std::string(slot) == "InMeanIou" ? 1 : classes;
      if (!Compatible(c.ShapeOf(slot, i).Count(), wanted))
        return c.Error(slot, "[", i, "] (", c.ShapeOf(slot, i), ") must hold ", wanted, " elements");
    }
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("OutMeanIou", {1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("OutWrong", {classes}));
  return c.SetShape("OutCorrect", {classes});
}

template <typename Device, typename T>
class MeanIouKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(predictions_, labels_, mean_, wrong_, correct_);
    classes_ = k.Attr<int>("num_classes");
    const auto keep = [&k](const char* slot, std::vector<Operand>& to) {
      to.assign(k.Inputs(slot).begin(), k.Inputs(slot).end());
    };
    keep("InWrongs", in_wrongs_);
    keep("InCorrects", in_corrects_);
    keep("InMeanIou", in_means_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::int32_t* const wrong = k[wrong_].template Data<std::int32_t>();
    std::int32_t* const correct = k[correct_].template Data<std::int32_t>();
    PENSTOCK_RETURN_IF_ERROR(Begin(k, in_wrongs_, wrong));
    PENSTOCK_RETURN_IF_ERROR(Begin(k, in_corrects_, correct));
    const T *const x = k[predictions_].template Data<T>(), *const label = k[labels_].template Data<T>();
    const Dim count = k[predictions_].count();
    for (Dim i = 0; i < count; ++i) {
      for (const T one : {x[i], label[i]}) {
        if (one < 0 || one >= classes_)
          return InvalidArgument("E-op-label", "mean_iou: class ", one, " must be in [0, ", classes_, ")");
      }
      if (x[i] == label[i]) {
        PENSTOCK_RETURN_IF_ERROR(Add(1, x[i], correct));
      } else {
        PENSTOCK_RETURN_IF_ERROR(Add(1, x[i], wrong));
        PENSTOCK_RETURN_IF_ERROR(Add(1, label[i], wrong));
      }
    }
    float sum = 0, occur = 0;
    for (Dim c = 0; c < classes_; ++c) {
      const std::int64_t all = std::int64_t{wrong[c]} + correct[c];
      if (all == 0) continue;
      sum += static_cast<float>(correct[c]) / static_cast<float>(all);
      occur += 1;
    }
    float mean = occur == 0 ? 0 : sum / occur;
    for (const Operand& one : in_means_) mean += *k[one].template Data<float>();
    *k[mean_].template Data<float>() = mean;
    return OkStatus();
  }

 private:
  static Status Add(std::int64_t count, Dim of_class, std::int32_t* to) {
    const std::int64_t sum = to[of_class] + count;
    if (sum < 0 || sum > std::numeric_limits<std::int32_t>::max())
      return InvalidArgument("E-op-value", "mean_iou: the count of class ", of_class, ", ", sum,
                             ", must be in [0, 2147483647]");
    to[of_class] = static_cast<std::int32_t>(sum);
    return OkStatus();
  }
  Status Begin(KernelRun& k, const std::vector<Operand>& from, std::int32_t* to) const {
    std::fill_n(to, classes_, 0);
    for (const Operand& one : from) {
      const std::int32_t* const counts = k[one].template Data<std::int32_t>();
      for (Dim c = 0; c < classes_; ++c) PENSTOCK_RETURN_IF_ERROR(Add(counts[c], c, to));
    }
    return OkStatus();
  }
  In<"Predictions"> predictions_;
  In<"Labels"> labels_;
  Out<"OutMeanIou"> mean_;
  Out<"OutWrong"> wrong_;
  Out<"OutCorrect"> correct_;
  std::vector<Operand> in_wrongs_, in_corrects_, in_means_;
  Dim classes_ = 1;
};

}  // namespace

void RegisterMeanIou(OpRegistry& ops) {
  ops.Add("mean_iou")
      .Doc("The mean over classes of intersection over union.", kDoc)
      .Input("Predictions", "the predicted class of each element", Integers())
      .Input("Labels", "the true class of each element", SameTypeAs("Predictions"))
      .Input("InWrongs", "initial counts", Only(DType::kInt32), Optional() | Repeated())
      .Input("InCorrects", "initial counts", Only(DType::kInt32), Optional() | Repeated())
      .Input("InMeanIou", "values added to the mean", Only(DType::kFp32), Optional() | Repeated())
      .Output("OutMeanIou", "[1]", Only(DType::kFp32))
      .Output("OutWrong", "[num_classes]", Only(DType::kInt32), Apart())
      .Output("OutCorrect", "[num_classes]", Only(DType::kInt32), Apart())
      .RequiredAttr("num_classes", AttrKind::kInt, "the number of classes", AtLeast(1))
      .InferShape(InferMeanIou)
      .KernelTypeFrom("Predictions")
      .Kernel<Cpu, MeanIouKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
