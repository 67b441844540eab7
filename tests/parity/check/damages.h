// The table of damages: each breaks one property of a correct set, and lists the findings of which one must
// report it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/parity/check/edit_set.h"
#include "transpiler/check/check.h"

namespace penstock::test {

struct Damage {
  std::string name;
  // Returns false if it does not apply to the set.
  std::function<bool(check::RoleFiles&)> make;
  std::vector<std::string> ids;  // check must report one of these
};

// Trainers: messages, slices, barriers.
const std::vector<Damage>& TrainerDamages();
// Pservers: merges, updates, learning rates.
const std::vector<Damage>& PserverDamages();
// Initial values, tables, and sets combined from two sets.
const std::vector<Damage>& SetDamages();
// Sets of other modes than sync, and sets without pservers.
const std::vector<Damage>& ModeDamages();
// Staleness, backup trainers and compression.
const std::vector<Damage>& PolicyDamages();

// The role programs that most damages change.
inline Program& Trainer(check::RoleFiles& roles) { return roles.trainers.back().program; }
inline Program& Pserver(check::RoleFiles& roles) { return roles.pservers.front().program; }

// Changes, or removes, the first op of a type in a program, block 0 first; false if there is none.
bool ChangeFirst(Program& program, const std::string& type, const std::function<void(Op&)>& change);
bool RemoveFirst(Program& program, const std::string& type);
// The first op that is declared as an optimizer.
std::optional<OpAt> FindOptimizer(const Program& program);
bool IsOptimizer(const Op& op);
std::string AddressOf(const check::RoleFiles& roles, std::size_t pserver);
// The address of a pserver other than `than`.
std::string OtherAddress(const check::RoleFiles& roles, const std::string& than);

}  // namespace penstock::test
