// Checks of an operation that one rank can make alone.
#pragma once

#include "executor/collective/operation.h"

namespace penstock::collective {

// kInvalidArgument E-collective-argument: element types, counts, a rank out of range, a mean of integers.
Status CheckOperation(const Operation& op, int rank, int size);

}  // namespace penstock::collective
