// What an op makes of a slice: some rows of a tensor instead of all of them.
#pragma once

#include "framework/ir/op.h"
#include "framework/op/op_registry.h"

namespace penstock {

enum class OnSlices {
  kByRows,      // the same rows of its result
  kAddsUp,      // the slices' results, added, are the result for the whole
  kNeedsWhole,  // nothing of use; also of an op that the registry does not know
};
OnSlices WhatOnSlices(const OpRegistry& ops, const Op& op);

}  // namespace penstock
