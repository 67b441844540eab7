// What an op reads is of the kinds that its slots take.
#pragma once

#include <string>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace penstock {

// kInvalidArgument E-op-kind, without the op's place: `name`, which stands in the slot, is of another kind.
Status KindError(const OpDef& def, const SlotDef& slot, const std::string& name, VarKind kind);

// Before a kernel of `def` is prepared: KindError if an input of `k` is of a kind that its slot does not
// take. A declaration may let selected rows stand for a dense tensor, and the other way round; a kernel may
// not.
Status RequireKinds(const OpDef& def, const KernelSetup& k);

}  // namespace penstock
