// Records in a pserver's variable which rows of which whole it is, so that any slicing starts from the same
// values: the start-up program's op is run for the whole and these rows are taken. Fluid starts each slice as
// if it were a parameter of its own; compat records nothing.
#pragma once

#include <string>

#include "framework/ir/var.h"
#include "transpiler/plan/plan.h"

namespace penstock {

inline void RecordSlice(const PlacementPlan& plan, SliceRef ref, const std::string& whole, Var& var) {
  const ParamPlacement& param = plan.param(ref);
  if (plan.dialect == Dialect::kFluid18 || !param.sliced()) return;
  const Slice& slice = plan.slice(ref);
  var.facts.slice = InitialSlice{
      .whole = whole, .whole_shape = param.shape, .row_begin = slice.row_begin, .row_end = slice.row_end};
}

}  // namespace penstock
