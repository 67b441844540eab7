// Which variables of a program a rewrite may move to other memory, and from which op to which they are
// needed.
//
// Movable is a temporary whose value nobody but the program's own ops can ask for: not persistable, not fed,
// not in `keep`, not the loss, read by some op, written whole before it is read. Left alone is also whatever
// stands in op_role_var or in another attribute by its name, what an op with an effect outside (send, recv,
// listen_and_serv, feed, fetch), an op of communication, of the update or of the learning rate (these run on
// servers, side by side) or an op that the registry does not know reads or writes, what two blocks declare,
// and what a gradient block reads of the block whose gradient it is.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::memory {

// Positions in the block that declares the variable. An op that enters blocks uses what is used in them.
struct Lifetime {
  const Var* var = nullptr;
  int first_write = 0;
  int last_use = 0;
};

using NameSet = std::set<std::string, std::less<>>;

class Lifetimes {
 public:
  // `skip` are op roles whose outputs are left alone: bits of Role, 0 for none.
  Lifetimes(const OpRegistry& ops, const Program& program, const NameSet& keep, Role skip = Role::kForward);

  // In the order of the first writes; of one op's outputs, in their order.
  const std::vector<Lifetime>& OfBlock(int block) const { return blocks_[static_cast<std::size_t>(block)]; }

 private:
  std::vector<std::vector<Lifetime>> blocks_;
};

}  // namespace penstock::memory
