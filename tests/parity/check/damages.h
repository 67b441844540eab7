// The table of damages: each breaks one thing in a correct set and says which finding must name it.
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
  // False if the set has nothing to break.
  std::function<bool(check::RoleFiles&)> make;
  std::vector<std::string> ids;  // one of these must be found
};

// What trainers do: messages, slices, barriers.
const std::vector<Damage>& TrainerDamages();
// What pservers do: merges, updates, learning rates.
const std::vector<Damage>& PserverDamages();
// Initial values, tables, and sets put together from two.
const std::vector<Damage>& SetDamages();
// Sets that are not synchronous, or have no pservers.
const std::vector<Damage>& ModeDamages();
// Staleness, backup trainers and compression.
const std::vector<Damage>& PolicyDamages();

// The role programs that most of them break.
inline Program& Trainer(check::RoleFiles& roles) { return roles.trainers.back().program; }
inline Program& Pserver(check::RoleFiles& roles) { return roles.pservers.front().program; }

// Changes, or removes, the first op of a type in a program, block 0 first; false if there is none.
bool ChangeFirst(Program& program, const std::string& type, const std::function<void(Op&)>& change);
bool RemoveFirst(Program& program, const std::string& type);
// The first op that an optimizer's declaration is for.
std::optional<OpAt> FindOptimizer(const Program& program);
bool IsOptimizer(const Op& op);
std::string AddressOf(const check::RoleFiles& roles, std::size_t pserver);
// Another pserver's address than the given one.
std::string OtherAddress(const check::RoleFiles& roles, const std::string& than);

}  // namespace penstock::test
