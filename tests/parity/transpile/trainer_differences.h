// Differences in modes in which trainers update parameters: geo-SGD and local SGD. See differences.h.
#pragma once

#include "tests/parity/transpile/differences.h"

namespace penstock::test {

// D-geo-tables: a trainer receives tables at the start too.
bool StartsWithOwnTables(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void ReceiveTables(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-snapshot-type: parameters keep their element type, and snapshots have the same type.
bool LosesElementTypes(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void KeepElementTypes(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

}  // namespace penstock::test
