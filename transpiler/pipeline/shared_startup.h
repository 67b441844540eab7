// One transpiler object for all roles, as Fluid has it.
#pragma once

#include "transpiler/passes/context.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock {

// What is left of a trainer's startup program after Fluid's get_startup_program was called on the same
// object for every pserver in turn: it writes the shape of each server's variable into the user's own
// initializers, as 32-bit numbers, so that the trainer starts a sliced parameter as its last slice, and takes
// a table for as large as the last pserver's part of it.
Program AfterPserverStartups(const Program& trainer_startup, const RoleSet& roles,
                             const passes::PassContext& context);

}  // namespace penstock
