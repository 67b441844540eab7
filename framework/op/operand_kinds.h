// Checks an op's arguments against its declaration: kinds of variables, missing variables, and variables that
// the op names twice.
#pragma once

#include <string>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace penstock {

// Returns kInvalidArgument E-op-kind: variable `name` has the kind `kind`, which the slot does not accept.
// The caller adds the op's place.
Status KindError(const OpDef& def, const SlotDef& slot, const std::string& name, VarKind kind);

// Whether the op runs other blocks, that is, whether an attribute of its declaration names blocks.
bool StartsBlocks(const OpDef& def, const Op& op);

// Call before a kernel of `def` is prepared. KindError: an input of `k` has a kind that its slot does not
// accept. Stricter than the check of declarations, where a tensor and selected rows may stand for each other.
Status RequireKinds(const OpDef& def, const KernelSetup& k);

// Call before a kernel of `def` is prepared. kInvalidArgument E-op-slot: an argument has no variable and the
// declaration does not allow that. In a slot of several inputs, some may be absent if the op reads only some
// of them, or if the slot is optional and the op runs blocks or has effects outside (Effects::AreOutside).
Status RequireVariables(const OpDef& def, const KernelSetup& k);

// Call before a kernel of `def` is prepared. kInvalidArgument E-op-alias, to which the caller adds the op's
// place: an output names an input's variable although its declaration does not allow it, or two outputs name
// one variable and one of them has no known size.
Status RequireAliasing(const OpDef& def, const KernelSetup& k);

}  // namespace penstock
