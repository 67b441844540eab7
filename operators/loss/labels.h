// Shared by the cross entropies: rows of class scores, with one label or a distribution over the classes per
// row.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "framework/op/infer_context.h"
#include "framework/op/op_def.h"

namespace penstock {

// Returns log(p), clamped to a finite range as in Fluid: a probability of 0 costs 1e20, not infinity.
template <typename T>
T FiniteLog(T p) {
  constexpr T kBound = static_cast<T>(1e20);
  return std::clamp(std::log(p), -kBound, kBound);
}

inline Status CheckLabelType(const InferContext& c, const char* scores, bool soft) {
  const DType type = c.DTypeOf("Label");
  if (soft ? type == c.DTypeOf(scores) : type == DType::kInt64 || type == DType::kInt32) return OkStatus();
  return c.Error("element type of Label (", DTypeName(type), ") must be ",
                 soft ? DTypeName(c.DTypeOf(scores)) : "i64 or i32");
}

// kInvalidArgument unless the extents of Label equal those of `scores`, except that Label has extent 1 at
// `axis` if it holds classes, not distributions (`soft`).
inline Status CheckLabels(const InferContext& c, const char* scores, int axis, bool soft) {
  const Shape& x = c.ShapeOf(scores);
  const Shape& label = c.ShapeOf("Label");
  if (label.rank() != x.rank()) {
    return c.Error("rank of Label (", label.rank(), ") must equal rank of ", scores, " (", x.rank(), ")");
  }
  for (int i = 0; i < x.rank(); ++i) {
    const Dim expected = i == axis && !soft ? 1 : x[i];
    if (!Compatible(label[i], expected)) {
      return c.Error("extent ", i, " of Label (", label, ") must be ", expected, " for ", scores, " ", x);
    }
  }
  return CheckLabelType(c, scores, soft);
}

// The class of each row, for labels of i32 or i64.
//
//   labels_.Prepare(k, classes);    // reads Label and ignore_index
//   labels_.Attach(k);
//   PENSTOCK_ASSIGN_OR_RETURN(const Dim label, labels_.ClassOf(row));
class ClassLabels {
 public:
  static constexpr Dim kIgnored = -1;

  void Prepare(const KernelSetup& k, Dim classes) {
    op_ = k.op().type();
    k.Bind(label_);
    ignore_ = k.Attr<int>("ignore_index");
    classes_ = classes;
  }
  void Attach(KernelRun& k) {
    wide_ = k[label_].dtype() == DType::kInt64 ? k[label_].Data<std::int64_t>() : nullptr;
    narrow_ = k[label_].dtype() == DType::kInt32 ? k[label_].Data<std::int32_t>() : nullptr;
  }
  // Returns the class of a row, or kIgnored if its label is ignore_index. kInvalidArgument E-op-label: the
  // label is not a class.
  Result<Dim> ClassOf(Dim row) const {
    const Dim label = wide_ != nullptr ? wide_[row] : narrow_[row];
    if (label == ignore_) return kIgnored;
    if (label >= 0 && label < classes_) return label;
    return InvalidArgument("E-op-label", op_, ": label ", label, " of row ", row, " must be in [0, ",
                           classes_, ")");
  }

 private:
  std::string op_;
  In<"Label"> label_;
  Dim ignore_ = -100, classes_ = 0;
  const std::int64_t* wide_ = nullptr;
  const std::int32_t* narrow_ = nullptr;
};

// The check of the labels' type in the forward op's inference, for gradient kernels.
inline Status RequireLabelType(const KernelSetup& k, bool soft, DType scores) {
  const DType type = k.Input("Label").dtype;
  if (soft ? type == scores : type == DType::kInt32 || type == DType::kInt64) return OkStatus();
  return k.Error("element type of Label (", DTypeName(type), ") must be ",
                 soft ? DTypeName(scores) : "i32 or i64");
}

}  // namespace penstock
