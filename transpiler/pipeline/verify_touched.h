// Verifies the result of a pass, looking only at the blocks that the pass changed.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

// kInternal E-pass-undeclared: a new or changed op names a variable that no enclosing block declares, or the
// pass removed a declaration that an op still needs. E-verify-block: an op enters a block that does not
// exist. kInvalidArgument: a new op of a known type violates its schema.
Status VerifyTouched(const Program& before, const Program& after, const OpRegistry& ops);

}  // namespace penstock
