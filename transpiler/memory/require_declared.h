// Checks that the names in `keep` are variables.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/memory/lifetimes.h"

namespace penstock::memory {

// kInvalidArgument E-memory-keep: no block declares one of the names.
Status RequireDeclared(const Program& program, const NameSet& keep);

}  // namespace penstock::memory
