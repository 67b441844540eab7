// Shared by the ops on tensor arrays: reading an index, finding the array.
#pragma once

#include <string_view>

#include "framework/op/kernel.h"

namespace penstock {

// Returns the index in a one-element i64 or i32 tensor. kInvalidArgument E-op-array-index: the tensor does
// not hold one element, or the index is negative or above the maximum size of an array.
Result<std::size_t> ArrayIndex(KernelRun& k, const NamedOperand& index, std::string_view op);

// Returns the array in a variable. kFailedPrecondition E-op-array: the variable is empty or holds another
// kind of value.
Result<TensorArray*> ArrayIn(KernelRun& k, const NamedOperand& array, std::string_view op);

}  // namespace penstock
