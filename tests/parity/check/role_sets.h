// Sets of role programs for check: Fluid's, from the corpus, and ours, from the same source program.
#pragma once

#include <optional>
#include <string>

#include "tests/parity/transpile/case_folder.h"
#include "transpiler/check/check.h"

namespace penstock::test {

// Fluid's set; nullopt if it has no trainer, or lacks pservers that the case requires.
std::optional<check::RoleFiles> FluidSet(const CaseFolder& one);
// Our set in one dialect; nullopt if the transpiler rejects the case.
std::optional<check::RoleFiles> OurSet(const CaseFolder& one, plan::Dialect dialect);

}  // namespace penstock::test
