// Names that a user gave are names of variables.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/memory/lifetimes.h"

namespace penstock::memory {

// kInvalidArgument E-memory-keep.
Status RequireDeclared(const Program& program, const NameSet& keep);

}  // namespace penstock::memory
