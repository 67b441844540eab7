// cross_entropy, cross_entropy2: the negative logarithm of each row's probability of its label.
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/vector/softmax.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"
#include "operators/common/try_rows.h"
#include "operators/loss/labels.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y[r] = -log(X[r, Label[r]])              if labels are classes
Y[r] = -sum_c Label[r, c] log(X[r, c])   if soft_label

All dimensions of X except the last form the rows. If Label holds classes and lacks the last dimension, so
does Y. A row whose label is ignore_index costs 0 and has no gradient. Logarithms are clamped to +-1e20. Any
other label outside [0, classes) is an error.)";

constexpr char kDoc2[] = R"(
Y[r] = -log(X[r, Label[r]]), like cross_entropy with class labels. MatchX stores the probabilities of the
labels and XShape the shape of X, so that the gradient does not need X.)";

Shape ScoreShape(const Shape& x) {
  Shape out = x;
  out.Set(x.rank() - 1, 1);
  return out;
}

Shape CostShape(const Shape& x, const Shape& label, bool soft) {
  return !soft && label.rank() == x.rank() - 1 ? x.First(x.rank() - 1) : ScoreShape(x);
}

Status InferScores(InferContext& c, bool soft) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 1));
  const Shape& x = c.ShapeOf("X");
  const Shape costs = CostShape(x, c.ShapeOf("Label"), soft);
  const bool flat = costs.rank() < x.rank();
  if (flat && !Compatible(c.ShapeOf("Label"), costs))
    return c.Error("Label (", c.ShapeOf("Label"), ") must have the rows of X (", x, ")");
  PENSTOCK_RETURN_IF_ERROR(flat ? CheckLabelType(c, "X", soft) : CheckLabels(c, "X", x.rank() - 1, soft));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Y"));
  // As in Fluid, the rows are declared with the shape of Label.
  Shape declared = c.ShapeOf("Label");
  if (soft) declared.Set(declared.rank() - 1, 1);
  return c.SetShape("Y", declared);
}

Status InferCrossEntropy(InferContext& c) { return InferScores(c, c.Attr<bool>("soft_label")); }

Status InferCrossEntropy2(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(InferScores(c, false));
  const Shape& x = c.ShapeOf("X");
  Shape kept = x;
  kept.Append(0);  // no elements
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("MatchX", ScoreShape(x)));
  c.ShareLod("X", "XShape");
  return c.SetShape("XShape", kept);
}

Status InferFromKeptShape(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("XShape", 1));
  const Shape& kept = c.ShapeOf("XShape");
  c.SetDType("X@GRAD", c.DTypeOf("Y@GRAD"));
  c.ShareLod("XShape", "X@GRAD");
  return c.SetShape("X@GRAD", kept.First(kept.rank() - 1));
}

template <typename Device, typename T>
class CrossEntropyKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, label_, y_, match_);
    soft_ = k.op().type() == "cross_entropy" && k.Attr<bool>("soft_label");
    classes_ = k[x_].shape[k[x_].shape.rank() - 1];
    labels_.Prepare(k, classes_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* x = k[x_].template Data<T>();
    T* const y = k[y_].template Data<T>();
    const Dim rows = k[y_].count();
    if (soft_) {
      OfShares(x, k[label_].template Data<T>(), rows, y);
      return OkStatus();
    }
    labels_.Attach(k);
    T* const match = match_ ? k[match_].template Data<T>() : nullptr;
    for (Dim r = 0; r < rows; ++r, x += classes_) {
      PENSTOCK_ASSIGN_OR_RETURN(const Dim label, labels_.ClassOf(r));
      const bool counts = label != ClassLabels::kIgnored;
      y[r] = counts ? -FiniteLog(x[label]) : T{0};
      if (match != nullptr) match[r] = counts ? x[label] : T{0};
    }
    return OkStatus();
  }

 private:
  void OfShares(const T* x, const T* label, Dim rows, T* y) const {
    constexpr double kElementNs = 1;
    ForRows(rows, kElementNs * static_cast<double>(classes_), [=, this](Dim begin, Dim end) {
      if constexpr (std::is_same_v<T, float>) {
        vec::CrossEntropyOfShares(x + begin * classes_, label + begin * classes_, y + begin,
                                  static_cast<std::size_t>(end - begin), static_cast<std::size_t>(classes_));
      } else {
        for (Dim r = begin; r < end; ++r) {
          T sum = 0;
          for (Dim c = r * classes_; c < (r + 1) * classes_; ++c) sum += label[c] * FiniteLog(x[c]);
          y[r] = -sum;
        }
      }
    });
  }

  In<"X"> x_;
  In<"Label"> label_;
  Out<"Y"> y_;
  Out<"MatchX"> match_;  // cross_entropy2 only
  ClassLabels labels_;
  bool soft_ = false;
  Dim classes_ = 0;
};

// dX for rows with class labels: 0, except at the class, where it is -dY divided by the probability of the
// class.
template <typename T, typename Probability>
Status FillClassGrad(const ClassLabels& labels, Dim rows, Dim classes, const T* dy, T* dx,
                     const Probability& probability) {
  const double row_ns = StreamNs<T>(1) * static_cast<double>(classes);
  return TryForRows(rows, row_ns, [&](Dim begin, Dim end) -> Status {
    for (Dim r = begin; r < end; ++r) {
      PENSTOCK_ASSIGN_OR_RETURN(const Dim label, labels.ClassOf(r));
      const T slope = -dy[r];  // dX may be dY, if there is one class
      std::fill_n(dx + r * classes, classes, T{0});
      if (label != ClassLabels::kIgnored) dx[r * classes + label] = slope / probability(r, label);
    }
    return OkStatus();
  });
}

template <typename Device, typename T>
class CrossEntropyGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, label_, dy_, dx_);
    soft_ = k.Attr<bool>("soft_label");
    if (k[x_].shape.rank() < 2) return k.Error("rank of X (", k[x_].shape.rank(), ") must be above 1");
    classes_ = k[x_].shape[k[x_].shape.rank() - 1];
    labels_.Prepare(k, classes_);
    PENSTOCK_RETURN_IF_ERROR(RequireLabelType(k, soft_, k[x_].dtype));
    const Shape costs = CostShape(k[x_].shape, k[label_].shape, soft_);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Label", soft_ ? k[x_].shape : costs));
    return RequireShape(k, "Y@GRAD", costs);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const dy = k[dy_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const Dim rows = k[dy_].count();
    if (soft_) {
      const T* const label = k[label_].template Data<T>();
      ForRows(rows, StreamNs<T>(3) * static_cast<double>(classes_), [=, this](Dim begin, Dim end) {
        for (Dim r = begin; r < end; ++r) {
          const T slope = -dy[r];
          for (Dim c = r * classes_; c < (r + 1) * classes_; ++c) dx[c] = slope * label[c] / x[c];
        }
      });
      return OkStatus();
    }
    labels_.Attach(k);
    return FillClassGrad(labels_, rows, classes_, dy, dx,
                         [&](Dim r, Dim label) { return x[r * classes_ + label]; });
  }

 private:
  In<"X"> x_;
  In<"Label"> label_;
  In<"Y@GRAD"> dy_;
  Out<"X@GRAD"> dx_;
  ClassLabels labels_;
  bool soft_ = false;
  Dim classes_ = 0;
};

template <typename Device, typename T>
class CrossEntropyGrad2Kernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(match_, dy_, dx_);
    // The dimensions of X and a 0; inference has checked the rank.
    const Shape& kept = k.Input("XShape").shape;
    classes_ = kept[kept.rank() - 2];
    labels_.Prepare(k, classes_);
    const Shape x = kept.First(kept.rank() - 1);
    const Shape costs = CostShape(x, k.Input("Label").shape, false);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "MatchX", ScoreShape(x)));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Label", costs));
    return RequireShape(k, "Y@GRAD", costs);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const match = k[match_].template Data<T>();
    labels_.Attach(k);
    return FillClassGrad(labels_, k[dy_].count(), classes_, k[dy_].template Data<T>(),
                         k[dx_].template Data<T>(), [&](Dim r, Dim) { return match[r]; });
  }

 private:
  In<"MatchX"> match_;
  In<"Y@GRAD"> dy_;
  Out<"X@GRAD"> dx_;
  ClassLabels labels_;
  Dim classes_ = 0;
};

}  // namespace

void RegisterCrossEntropy(OpRegistry& ops) {
  ops.Add("cross_entropy")
      .Doc("The cross entropy of probabilities with labels.", kDoc)
      .Input("X", "probabilities; classes along the last dimension", Floats())
      .Input("Label", "one class per row, or a distribution if soft_label", AnyType())
      .Output("Y", "the cost of each row; the last dimension is 1 if Label has it", SameTypeAs("X"))
      .Attr("soft_label", false, "whether Label holds distributions")
      .Attr("ignore_index", -100, "rows with this label are ignored")
      .InferShape(InferCrossEntropy)
      .Kernel<Cpu, CrossEntropyKernel, float, double>()
      .Grad({.reads = {"X", "Label"}, .yields = {"X"}})
      .GradKernel<Cpu, CrossEntropyGradKernel, float, double>();
  ops.Add("cross_entropy2")
      .Doc("The cross entropy of probabilities with class labels.", kDoc2)
      .Input("X", "probabilities; classes along the last dimension", Floats())
      .Input("Label", "one class per row", Integers())
      .Output("Y", "the cost of each row; the last dimension is 1 if Label has it", SameTypeAs("X"))
      .Output("XShape", "no elements; its shape is that of X followed by 0, for the gradient",
              SameTypeAs("X"))
      .Output("MatchX", "the probability of the class of each row", SameTypeAs("X"))
      .Attr("ignore_index", -100, "rows with this label are ignored")
      .InferShape(InferCrossEntropy2)
      .Kernel<Cpu, CrossEntropyKernel, float, double>()
      .Grad({.reads = {"Label"},
             .reads_outputs = {"MatchX", "XShape"},
             .yields = {"X"},
             .of = {"Y"},
             .type = "cross_entropy_grad2"})
      .GradDef()
      .InferShape(InferFromKeptShape)
      .KernelTypeFrom("Y@GRAD")
      .Kernel<Cpu, CrossEntropyGrad2Kernel, float, double>();
}

}  // namespace penstock
