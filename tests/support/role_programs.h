// Converts the programs of a transpiled job for ReferenceJob and the jobs of other tests.
#pragma once

#include <vector>

#include "tests/support/reference_job.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {

template <typename Role>
std::vector<RolePrograms> ProgramsOf(const std::vector<Role>& roles) {
  std::vector<RolePrograms> programs;
  for (const Role& role : roles) programs.push_back({role.startup, role.main});
  return programs;
}

inline std::vector<RolePrograms> TrainersOf(const RoleSet& roles) { return ProgramsOf(roles.trainers); }
inline std::vector<RolePrograms> PserversOf(const RoleSet& roles) { return ProgramsOf(roles.pservers); }

}  // namespace penstock::test
