// What several differences need to say what they touch and how.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

bool IsTrainerMain(const RoleFile& file);

// Whether the op is of a learning-rate schedule.
bool IsLrOp(const Op& op);
// Adds what an op reads and writes, in its blocks too.
void AddMentioned(const Program& main, const Op& op, std::set<std::string>& names);

// Replaces the ops of a block that `change` says it changed.
void ChangeOps(Program& program, int block, const std::function<bool(Op&)>& change);

// The learning-rate ops that no optimize-role op of a parameter on the pserver depends on.
std::vector<OpId> UnneededLrOps(const CaseFolder& folder, const RoleSet& roles, int pserver);

}  // namespace penstock::test
