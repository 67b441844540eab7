// Shared by the ops that compare X and Y row by row. X is [N, ...]; Y has N rows too, or one row for all rows
// of X.
#pragma once

#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"

namespace penstock {

struct RowPairs {
  Dim rows = 0, width = 0;
  bool one_y = false;  // Y has one row, which is compared with every row of X

  Dim YRow(Dim row) const { return one_y ? 0 : row; }
};

// kInvalidArgument: the shapes do not match. Unknown extents match any. Context is an InferContext or a
// KernelSetup.
template <typename Context>
Result<RowPairs> PairRows(const Context& c, const Shape& x, const Shape& y) {
  if (x.rank() < 2 || x.rank() != y.rank()) {
    return c.Error("ranks of X (", x.rank(), ", shape ", x, ") and Y (", y.rank(), ", shape ", y,
                   ") must be equal and at least 2");
  }
  if (!Compatible(x[0], y[0]) && y[0] != 1)
    return c.Error("rows of Y (", y[0], ") must be 1 or equal rows of X (", x[0], ")");
  for (int i = 1; i < x.rank(); ++i) {
    if (!Compatible(x[i], y[i]))
      return c.Error("extent ", i, " of Y (", y[i], ") must equal that of X (", x[i], ")");
  }
  return RowPairs{x[0], x.RowWidth(), y[0] == 1};
}

}  // namespace penstock
