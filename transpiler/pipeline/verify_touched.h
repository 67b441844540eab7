// Whether a pass left a sound program, looking only at blocks that it changed.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

// kInternal E-pass-undeclared: an op that is new or changed names a variable that no block around it
// declares, or a declaration went away under an op that still names it. E-verify-block: an op enters a block
// that is not there. kInvalidArgument: a new op of a known type breaks its schema.
Status VerifyTouched(const Program& before, const Program& after, const OpRegistry& ops);

}  // namespace penstock
