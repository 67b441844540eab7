// Whether what an op reads and writes is what its declaration allows: kinds of variables, and variables that
// it names twice.
#pragma once

#include <string>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace penstock {

// kInvalidArgument E-op-kind, without the op's place: `name`, which stands in the slot, is of another kind.
Status KindError(const OpDef& def, const SlotDef& slot, const std::string& name, VarKind kind);

// Whether the op runs other blocks: one of the attributes that the declaration knows names some.
bool StartsBlocks(const OpDef& def, const Op& op);

// Before a kernel of `def` is prepared: KindError if an input of `k` is of a kind that its slot does not
// take. A declaration may let selected rows stand for a dense tensor, and the other way round; a kernel may
// not.
Status RequireKinds(const OpDef& def, const KernelSetup& k);

// Before a kernel of `def` is prepared: kInvalidArgument E-op-slot if an argument is no variable and the
// slot's declaration does not allow that. An input of several may be none where the op reads only some of
// them.
Status RequireVariables(const OpDef& def, const KernelSetup& k);

// Before a kernel of `def` is prepared: kInvalidArgument E-op-alias, without the op's place, if an output of
// `k` is the variable of an input and the output's declaration does not allow it.
Status RequireAliasing(const OpDef& def, const KernelSetup& k);

}  // namespace penstock
