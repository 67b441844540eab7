// Differences in where trainers read updated parameters.
#pragma once

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

// D-updated-params: ops that read an updated parameter follow its recv.
bool ReadsUpdatedParams(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void ReadAfterReceives(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                       Program& program);

}  // namespace penstock::test
