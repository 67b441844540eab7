// Reproduces a side effect of Fluid's transpiler object, which makes the programs of all roles.
#pragma once

#include "transpiler/passes/context.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock {

// Returns the trainer's startup program as it is after Fluid's get_startup_program was called on the same
// object for every pserver in turn. That function writes the shapes of each server's variables, as 32-bit
// numbers, into the user's own initializers. The trainer therefore initializes a sliced parameter with the
// shape of its last slice, and a table with the shape of the last pserver's part.
Program AfterPserverStartups(const Program& trainer_startup, const RoleSet& roles,
                             const passes::PassContext& context);

}  // namespace penstock
