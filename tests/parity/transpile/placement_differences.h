// Differences in jobs with the user's own dispatcher.
#pragma once

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

// D-one-table: Fluid would send a gradient to a pserver that does not hold its parameter.
bool SendsElsewhere(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void SendWhereParamsAre(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                        Program& program);

// D-shared-pserver: a pserver holds two slices of one parameter.
bool HoldsTwoSlices(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

}  // namespace penstock::test
