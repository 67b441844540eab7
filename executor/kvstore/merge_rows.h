// Adds the rows that several devices push for one key.
#pragma once

#include <span>

#include "framework/tensor/variable.h"

namespace penstock::kvstore {

// Returns all rows of `values`, in ascending order, each once: values of one row are added in the order of
// devices and places. All are rows of one tensor; `type` is their KeptType. The result may share the memory
// of a single value whose rows ascend already.
SelectedRows MergedRows(std::span<const SelectedRows> values, DType type);

}  // namespace penstock::kvstore
