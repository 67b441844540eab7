// Finds which variables of a program a rewrite may move to other memory, and from which op to which each is
// live.
//
// A movable variable is a temporary that only the program's own ops can read: not persistable, not fed, not
// in `keep`, not the loss, read by some op, and written whole before it is read. These variables never move:
//
//  * named in op_role_var or in another attribute
//  * read or written by an op with an effect outside the program (send, recv, listen_and_serv, feed, fetch),
//    by an op that the registry does not know, or by an op of communication, the update or the learning rate
//    (servers run these in parallel)
//  * declared by two blocks
//  * read by a gradient block from the block whose gradient it computes
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::memory {

// Positions of ops in the block that declares the variable. An op that enters blocks counts as a user of
// every variable used in them.
struct Lifetime {
  const Var* var = nullptr;
  int first_write = 0;
  int last_use = 0;
};

using NameSet = std::set<std::string, std::less<>>;

class Lifetimes {
 public:
  // `skip` holds op roles whose outputs never move: bits of OpRole, 0 for none.
  Lifetimes(const OpRegistry& ops, const Program& program, const NameSet& keep,
            OpRole skip = OpRole::kForward);

  // The movable variables that the block declares, in the order of their first writes; outputs of one op in
  // their order.
  const std::vector<Lifetime>& OfBlock(int block) const { return blocks_[static_cast<std::size_t>(block)]; }

 private:
  std::vector<std::vector<Lifetime>> blocks_;
};

}  // namespace penstock::memory
