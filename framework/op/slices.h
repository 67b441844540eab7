// What an op makes of a slice, by its declaration.
#pragma once

#include "framework/ir/op.h"
#include "framework/op/op_registry.h"

namespace penstock {

// kNeedsWhole of an op that the registry does not know.
OnSlices WhatOnSlices(const OpRegistry& ops, const Op& op);

}  // namespace penstock
