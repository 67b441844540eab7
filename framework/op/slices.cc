#include "framework/op/slices.h"

namespace penstock {

OnSlices WhatOnSlices(const OpRegistry& ops, const Op& op) {
  const OpDef* def = ops.Find(op.type());
  return def == nullptr ? OnSlices::kNeedsWhole : def->on_slices(op);
}

}  // namespace penstock
