// Checks what a rewrite relies on: the names in `keep` are variables, and shape inference can read the ops.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/memory/lifetimes.h"

namespace penstock::memory {

// kInvalidArgument E-memory-keep: no block declares one of the names.
Status RequireDeclared(const Program& program, const NameSet& keep);
// E-op-attr, E-op-slot: an op violates its schema. Without this check, the sizes of its outputs would be
// unknown and none of them would share a buffer. Unknown ops pass; the report names them.
Status RequireSchemas(const OpRegistry& ops, const Program& program);

}  // namespace penstock::memory
