// Sets of role programs to be checked: Fluid's own, as the corpus has them, and ours from the same program.
#pragma once

#include <optional>
#include <string>

#include "tests/parity/transpile/case_folder.h"
#include "transpiler/check/check.h"

namespace penstock::test {

// Fluid's; nothing if it lacks a trainer or, where there should be some, a pserver.
std::optional<check::RoleFiles> FluidSet(const CaseFolder& one);
// Ours in one dialect; nothing if the case is refused.
std::optional<check::RoleFiles> OurSet(const CaseFolder& one, plan::Dialect dialect);

}  // namespace penstock::test
