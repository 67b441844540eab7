// The checks of an operation that need no other rank.
#pragma once

#include "executor/collective/group/operation.h"

namespace penstock::collective {

// kInvalidArgument E-collective-argument: the element types or counts do not match, a rank is out of range,
// or the operation is a mean of integers.
Status CheckOperation(const Operation& op, int rank, int size);

}  // namespace penstock::collective
