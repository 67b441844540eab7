// What the cross entropies share: rows of class scores, one label (or a distribution over the classes) for
// each row.
#pragma once

#include <algorithm>
#include <cmath>

#include "framework/op/infer_context.h"
#include "framework/op/op_def.h"

namespace penstock {

// log(p), kept finite as Fluid keeps it: a probability of 0 costs 1e20, not infinity.
template <typename T>
T FiniteLog(T p) {
  constexpr T kBound = static_cast<T>(1e20);
  return std::clamp(std::log(p), -kBound, kBound);
}

// `scores` and Label must agree in all extents but the one at `axis`, where Label has 1, or as many as
// `scores` if it holds distributions.
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
  const DType type = c.DTypeOf("Label");
  if (soft ? type == c.DTypeOf(scores) : type == DType::kInt64 || type == DType::kInt32) return OkStatus();
  return c.Error("element type of Label (", DTypeName(type), ") must be ",
                 soft ? DTypeName(c.DTypeOf(scores)) : "i64 or i32");
}

template <typename Label>
Status LabelOutOfRange(const char* op, std::int64_t row, Label label, std::int64_t classes) {
  return InvalidArgument("E-op-label", op, ": label ", label, " of row ", row, " must be in [0, ", classes,
                         ")");
}

}  // namespace penstock
