// Checks an op's arguments against its declaration: kinds of variables, and variables that the op names
// twice.
#pragma once

#include <string>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace penstock {

// kInvalidArgument E-op-kind, without the op's place: variable `name` in the slot has another kind.
Status KindError(const OpDef& def, const SlotDef& slot, const std::string& name, VarKind kind);

// Whether the op runs other blocks: an attribute of its declaration names some.
bool StartsBlocks(const OpDef& def, const Op& op);

// Before a kernel of `def` is prepared: KindError if an input of `k` has a kind that its slot does not
// accept. A declaration may let selected rows stand for a dense tensor and vice versa; a kernel may
// not.
Status RequireKinds(const OpDef& def, const KernelSetup& k);

// Before a kernel of `def` is prepared: kInvalidArgument E-op-slot if an argument has no variable and the
// declaration does not allow that. In a slot of several inputs some may be absent if the op reads only some
// of them.
Status RequireVariables(const OpDef& def, const KernelSetup& k);

// Before a kernel of `def` is prepared: kInvalidArgument E-op-alias, without the op's place, if an output
// names an input's variable and the output's declaration does not allow it, or if two outputs, one of them
// without a size yet, name one variable.
Status RequireAliasing(const OpDef& def, const KernelSetup& k);

}  // namespace penstock
