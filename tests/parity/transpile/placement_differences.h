// Differences of jobs whose dispatcher is the user's own.
#pragma once

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

// D-one-table: Fluid would send some gradient elsewhere than its parameter is.
bool SendsElsewhere(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void SendWhereParamsAre(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                        Program& program);

// D-shared-pserver: a pserver that holds two slices of one parameter.
bool HoldsTwoSlices(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

}  // namespace penstock::test
