// The differences between the default dialect and Fluid 1.8.5: the list of tests/parity/DIFFERENCES.md, as
// code. Each entry has a predicate for the role programs that it affects, and a function that turns Fluid's
// program into the expected one. After all entries that apply, both programs must be equal, so that nothing
// else can differ.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

struct Difference {
  std::string id;  // as in DIFFERENCES.md, which names the quirk
  // Whether it affects this role program of this case.
  std::function<bool(const CaseFolder&, const RoleSet&, const RoleFile&)> touches;
  // Turns Fluid's program into ours. If this, change_source and change_config are null, the programs differ
  // too much, and are not compared.
  std::function<void(const CaseFolder&, const RoleSet&, const RoleFile&, Program&)> apply;
  // Changes the source program so that Fluid would make (nearly) our role program from it. Compat's role
  // program for the changed source replaces Fluid's before `apply` of any entry.
  std::function<void(const CaseFolder&, const RoleSet&, const RoleFile&, Program& main)> change_source = {};
  // Does the same with the configuration.
  std::function<void(plan::TranspileConfig&)> change_config = {};
};

const std::vector<Difference>& Differences();

}  // namespace penstock::test
