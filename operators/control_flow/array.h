// What the ops on tensor arrays share: reading an index, reaching the array.
#pragma once

#include <string_view>

#include "framework/op/kernel.h"

namespace penstock {

// The index in the one element of an i64 (or i32) tensor. kInvalidArgument E-op-array-index: it is not one
// element, negative, or so large that no array has it.
Result<std::size_t> ArrayIndex(KernelRun& k, const Operand& index, std::string_view op);

// The array in a variable. kFailedPrecondition E-op-array: nothing was written to it, or it holds something
// else.
Result<TensorArray*> ArrayIn(KernelRun& k, const Operand& array, std::string_view op);

}  // namespace penstock
