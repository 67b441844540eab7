#include "framework/op/slices.h"

#include <algorithm>
#include <vector>

namespace penstock {
namespace {

enum class Extent { kWhole, kOne, kOther };

Extent ExtentOf(const Var* var, const Shape& whole) {
  if (var == nullptr || var->kind != VarKind::kTensor || !var->HasShape()) return Extent::kOther;
  if (var->shape() == whole) return Extent::kWhole;
  return var->shape().IsKnown() && var->shape().Count() == Dim{1} ? Extent::kOne : Extent::kOther;
}

}  // namespace

OnSlices WhatOnSlices(const OpRegistry& ops, const Op& op) {
  const OpDef* def = ops.Find(op.type());
  return def == nullptr ? OnSlices::kNeedsWhole : def->on_slices(op);
}

bool WorksByRows(const OpRegistry& ops, const Op& op, const Shape& whole,
                 const std::function<const Var*(const std::string&)>& find) {
  const OpDef* def = ops.Find(op.type());
  if (def == nullptr || !def->elementwise()) return false;
  if (def->optimizer()) return true;
  bool reads_rows = false, writes_rows = false, fits = true;
  const auto read = [&](const std::vector<Slot>& slots, bool& rows) {
    for (const Slot& slot : slots) {
      for (const std::string& name : slot.args) {
        const Extent extent = name == kEmptyVarName ? Extent::kOne : ExtentOf(find(name), whole);
        rows = rows || extent == Extent::kWhole;
        fits = fits && extent != Extent::kOther;
      }
    }
  };
  read(op.inputs(), reads_rows);
  read(op.outputs(), writes_rows);
  return fits && (reads_rows || !writes_rows);
}

}  // namespace penstock
