// Records in a pserver's variable which rows of which whole it holds, so that initial values do not depend on
// the slicing: the initializer gives these rows the values that they have in the whole. Nothing is recorded
// if each slice starts as if it were a whole parameter.
#pragma once

#include <string>

#include "framework/ir/var.h"
#include "transpiler/plan/names.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

inline void RecordSlice(const plan::PlacementPlan& plan, plan::SliceRef ref, const std::string& whole,
                        Var& var) {
  const plan::ParamPlacement& param = plan.param(ref);
  if (!plan.conventions().slices_start_as_rows || !param.sliced()) return;
  const plan::Slice& slice = plan.slice(ref);
  var.facts.slice = InitialSlice{
      .whole = whole, .whole_shape = param.shape, .row_begin = slice.row_begin, .row_end = slice.row_end};
}

// The variable that a pserver's program declares for a slice of a parameter.
inline Var HeldPiece(const plan::PlacementPlan& plan, plan::SliceRef ref) {
  const plan::ParamPlacement& param = plan.param(ref);
  Var piece = TensorVar(plan::ParamPieceName(param, ref.slice), param.dtype, param.ShapeOf(plan.slice(ref)));
  piece.persistable = true;
  RecordSlice(plan, ref, param.param, piece);
  return piece;
}

// Records that a variable starts as a copy of another whole variable.
inline void RecordCopy(const std::string& whole, const Shape& shape, Var& var) {
  if (shape.rank() == 0) return;
  var.facts.slice = InitialSlice{.whole = whole, .whole_shape = shape, .row_begin = 0, .row_end = shape[0]};
}

}  // namespace penstock::passes
