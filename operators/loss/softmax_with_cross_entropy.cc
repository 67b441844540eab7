// softmax_with_cross_entropy: the cross entropy of the softmax of scores.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/vector/softmax.h"
#include "operators/common/require_shape.h"
#include "operators/common/try_rows.h"
#include "operators/loss/labels.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Softmax = exp(Logits) / sum(exp(Logits)) along dimension `axis` (negative values count from the end), and

Loss = -log(Softmax[Label])              if labels are classes
Loss = -sum_c Label[c] log(Softmax[c])   if soft_label

The maximum is subtracted from the scores first, so that large scores do not overflow. As in softmax, these
differences are at least -64; a row therefore costs at most 64 plus the logarithm of the number of classes.
A row whose label is ignore_index costs 0 and has no gradient; any other label outside [0, classes) is an
error.)";

int AxisOf(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

Status InferSoftmaxWithCrossEntropy(InferContext& c) {
  const Shape& logits = c.ShapeOf("Logits");
  const int axis = AxisOf(c.Attr<int>("axis"), logits.rank());
  if (axis < 0 || axis >= logits.rank()) {
    return c.Error("axis (", c.Attr<int>("axis"), ") must be within the rank of Logits (", logits.rank(),
                   ")");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckLabels(c, "Logits", axis, c.Attr<bool>("soft_label")));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Logits", "Softmax"));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Logits", "Loss"));
  Shape loss = logits;
  loss.Set(axis, 1);
  return c.SetShape("Loss", loss);
}

Status InferLogitsGrad(InferContext& c) { return c.ShareAll("Softmax", "Logits@GRAD"); }

// Classes along one dimension: element (outer, class, inner) is at (outer * classes + class) * inner_count +
// inner.
struct ClassLayout {
  Dim outer = 1, classes = 1, inner = 1;
  void Prepare(const Shape& shape, int axis_attr) {
    const int axis = AxisOf(axis_attr, shape.rank());
    outer = shape.Product(0, axis);
    classes = shape[axis];
    inner = shape.Product(axis + 1, shape.rank());
  }
};

template <typename T>
class Rows {
 public:
  Rows(const ClassLayout& layout, Dim row)
      : begin_(row / layout.inner * layout.classes * layout.inner + row % layout.inner),
        step_(layout.inner) {}
  Dim operator[](Dim c) const { return begin_ + c * step_; }

 private:
  Dim begin_, step_;
};

template <typename Device, typename T>
class SoftmaxWithCrossEntropyKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(logits_, label_, softmax_, loss_);
    soft_ = k.Attr<bool>("soft_label");
    layout_.Prepare(k[logits_].shape, k.Attr<int>("axis"));
    labels_.Prepare(k, layout_.classes);
    return RequireOutput(k, "Softmax");
  }
  Status Run(KernelRun& k) override {
    const T* const logits = k[logits_].template Data<T>();
    T* const softmax = k[softmax_].template Data<T>();
    T* const loss = k[loss_].template Data<T>();
    const T* const share = soft_ ? k[label_].template Data<T>() : nullptr;
    if (!soft_) labels_.Attach(k);
    if constexpr (std::is_same_v<T, float>) {
      constexpr double kClassNs = 0.6;
      if (layout_.inner == 1 && layout_.classes > 0) {
        return TryForRows(
            layout_.outer, kClassNs * static_cast<double>(layout_.classes),
            [&](Dim begin, Dim end) { return Contiguous(logits, share, softmax, loss, begin, end); });
      }
    }
    constexpr double kClassNs = 10;
    return TryForRows(layout_.outer * layout_.inner, kClassNs * static_cast<double>(layout_.classes),
                      [&](Dim begin, Dim end) { return Strided(logits, share, softmax, loss, begin, end); });
  }

 private:
  // Rows [begin, end), whose classes are any distance apart.
  Status Strided(const T* logits, const T* share, T* softmax, T* loss, Dim begin, Dim end) const {
    for (Dim r = begin; r < end; ++r) {
      const Rows<T> at(layout_, r);
      T peak = logits[at[0]];
      for (Dim c = 1; c < layout_.classes; ++c) peak = std::max(peak, logits[at[c]]);
      const auto score = [&](Dim c) { return std::max(logits[at[c]] - peak, T{-64}); };
      T sum = 0;
      for (Dim c = 0; c < layout_.classes; ++c) sum += softmax[at[c]] = std::exp(score(c));
      const T log_sum = std::log(sum);
      for (Dim c = 0; c < layout_.classes; ++c) softmax[at[c]] /= sum;
      if (soft_) {
        loss[r] = 0;
        for (Dim c = 0; c < layout_.classes; ++c) loss[r] -= share[at[c]] * (score(c) - log_sum);
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(const Dim right, labels_.ClassOf(r));
      loss[r] = right == ClassLabels::kIgnored ? T{0} : log_sum - score(right);
    }
    return OkStatus();
  }

  // Rows [begin, end), whose classes are contiguous.
  Status Contiguous(const float* logits, const float* share, float* softmax, float* loss, Dim begin,
                    Dim end) const {
    const auto classes = static_cast<std::size_t>(layout_.classes);
    constexpr Dim kTogether = 64;  // rows, whose numbers stay in the cache
    vec::RowScale scales[kTogether];
    for (Dim first = begin; first < end; first += kTogether) {
      const auto rows = static_cast<std::size_t>(std::min(kTogether, end - first));
      const float* const x = logits + first * layout_.classes;
      vec::Softmax(x, softmax + first * layout_.classes, rows, classes, scales);
      if (soft_) {
        vec::SoftCrossEntropy(x, share + first * layout_.classes, scales, loss + first, rows, classes);
        continue;
      }
      for (std::size_t row = 0; row < rows; ++row) {
        const Dim r = first + static_cast<Dim>(row);
        PENSTOCK_ASSIGN_OR_RETURN(const Dim right, labels_.ClassOf(r));
        const float score = logits[r * layout_.classes + std::max<Dim>(right, 0)] - scales[row].largest;
        loss[r] = right == ClassLabels::kIgnored ? 0 : scales[row].log_sum - std::max(score, -64.0f);
      }
    }
    return OkStatus();
  }

  In<"Logits"> logits_;
  In<"Label"> label_;
  Out<"Softmax"> softmax_;
  Out<"Loss"> loss_;
  bool soft_ = false;
  ClassLayout layout_;
  ClassLabels labels_;
};

template <typename Device, typename T>
class SoftmaxWithCrossEntropyGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(softmax_, label_, dloss_, dlogits_);
    soft_ = k.Attr<bool>("soft_label");
    const int axis = AxisOf(k.Attr<int>("axis"), k[softmax_].shape.rank());
    if (axis < 0 || axis >= k[softmax_].shape.rank())
      return k.Error("axis (", axis, ") must be within the rank of Softmax");
    layout_.Prepare(k[softmax_].shape, axis);
    labels_.Prepare(k, layout_.classes);
    Shape rows = k[softmax_].shape;
    rows.Set(axis, 1);
    PENSTOCK_RETURN_IF_ERROR(RequireLabelType(k, soft_, k[softmax_].dtype));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Label", soft_ ? k[softmax_].shape : rows));
    return RequireShape(k, "Loss@GRAD", rows);
  }
  Status Run(KernelRun& k) override {
    if (!dlogits_) return OkStatus();
    const T* const softmax = k[softmax_].template Data<T>();
    const T* const dloss = k[dloss_].template Data<T>();
    T* const dlogits = k[dlogits_].template Data<T>();
    const T* const share = soft_ ? k[label_].template Data<T>() : nullptr;
    if (!soft_) labels_.Attach(k);
    const double row_ns = StreamNs<T>(3) * static_cast<double>(layout_.classes);
    return TryForRows(layout_.outer * layout_.inner, row_ns,
                      [&](Dim begin, Dim end) { return OfRows(softmax, dloss, share, dlogits, begin, end); });
  }

 private:
  // Rows [begin, end).
  Status OfRows(const T* softmax, const T* dloss, const T* share, T* dlogits, Dim begin, Dim end) const {
    for (Dim r = begin; r < end; ++r) {
      const Rows<T> at(layout_, r);
      if (soft_) {
        for (Dim c = 0; c < layout_.classes; ++c) dlogits[at[c]] = dloss[r] * (softmax[at[c]] - share[at[c]]);
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(const Dim right, labels_.ClassOf(r));
      const T weight = right == ClassLabels::kIgnored ? T{0} : dloss[r];
      if (layout_.inner == 1) {
        const T* const from = softmax + at[0];
        T* const to = dlogits + at[0];
        for (Dim c = 0; c < layout_.classes; ++c) to[c] = weight * from[c];
      } else {
        for (Dim c = 0; c < layout_.classes; ++c) dlogits[at[c]] = weight * softmax[at[c]];
      }
      if (right != ClassLabels::kIgnored) dlogits[at[right]] -= weight;
    }
    return OkStatus();
  }

  In<"Softmax"> softmax_;
  In<"Label"> label_;
  In<"Loss@GRAD"> dloss_;
  Out<"Logits@GRAD"> dlogits_;
  bool soft_ = false;
  ClassLayout layout_;
  ClassLabels labels_;
};

}  // namespace

void RegisterSoftmaxWithCrossEntropy(OpRegistry& ops) {
  ops.Add("softmax_with_cross_entropy")
      .Doc("The cross entropy of the softmax of scores.", kDoc)
      .Input("Logits", "scores; classes along dimension `axis`", Floats())
      .Input("Label", "one class per row (`axis` has size 1), or a distribution if soft_label", AnyType())
      .Output("Softmax", "the softmax of the scores, for the gradient", SameTypeAs("Logits"),
              Intermediate() | Apart())
      .Output("Loss", "the cost of each row; `axis` has size 1", SameTypeAs("Logits"))
      .Attr("soft_label", false, "whether Label holds distributions")
      .Attr("numeric_stable_mode", true, "has no effect: the numerically stable algorithm is always used")
      .Attr("ignore_index", -100, "rows with this label are ignored")
      .Attr("axis", -1, "the axis of the classes")
      .InferShape(InferSoftmaxWithCrossEntropy)
      .Kernel<Cpu, SoftmaxWithCrossEntropyKernel, float, double>()
      .Grad({.reads = {"Label"}, .reads_outputs = {"Softmax"}, .yields = {"Logits"}})
      .GradDef()
      .InferShape(InferLogitsGrad)
      .KernelTypeFrom("Softmax")
      .Kernel<Cpu, SoftmaxWithCrossEntropyGradKernel, float, double>();
}

}  // namespace penstock
