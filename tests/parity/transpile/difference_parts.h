// Shared by the predicates and functions of several differences.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

bool IsTrainerMain(const RoleFile& file);

// Whether the op belongs to a learning-rate schedule.
bool IsLrOp(const Op& op);
// Adds the variables that an op reads and writes, including those in its blocks.
void AddMentioned(const Program& main, const Op& op, std::set<std::string>& names);

// Calls `change` on a copy of each op of a block, and replaces the op if it returns true.
void ChangeOps(Program& program, int block, const std::function<bool(Op&)>& change);

// The learning-rate ops that no optimize-role op of a parameter on the pserver depends on.
std::vector<OpId> UnneededLrOps(const CaseFolder& folder, const RoleSet& roles, int pserver);

}  // namespace penstock::test
