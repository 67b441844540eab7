// In what the default dialect differs from Fluid 1.8.5: the list of tests/parity/DIFFERENCES.md, as code.
// Each entry says which role programs it touches and turns Fluid's program into what ours must be. After all
// entries that apply, the two must be equal, so that nothing else can differ.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

struct Difference {
  std::string id;  // as in DIFFERENCES.md, which says which quirk it mends
  // Whether it changes this role program of this case.
  std::function<bool(const CaseFolder&, const RoleSet&, const RoleFile&)> touches;
  // Makes Fluid's program ours. Null, if change_source and change_config are too: too much is different to be
  // derived; the program is not compared.
  std::function<void(const CaseFolder&, const RoleSet&, const RoleFile&, Program&)> apply;
  // Makes of the user's main program one of which Fluid would make our role program, or nearly: what compat
  // makes of it takes the place of Fluid's program, before anything is applied.
  std::function<void(const CaseFolder&, const RoleSet&, const RoleFile&, Program& main)> change_source = {};
  // The same with the configuration.
  std::function<void(plan::TranspileConfig&)> change_config = {};
};

const std::vector<Difference>& Differences();

}  // namespace penstock::test
