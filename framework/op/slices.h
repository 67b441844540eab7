// The result of an op on a slice, from its declaration.
#pragma once

#include "framework/ir/op.h"
#include "framework/op/op_registry.h"

namespace penstock {

// kNeedsWhole if the registry does not know the op.
OnSlices WhatOnSlices(const OpRegistry& ops, const Op& op);

}  // namespace penstock
