// What the ranks of a job must have in common, and what differs where they do not: programs that do other
// collectives, or in another order, would wait for each other forever.
//
//   const CollectiveContract own = ContractOf(program, store.ranks());         // the program as it is run
//   PENSTOCK_RETURN_IF_ERROR(AgreeOnContract(store, "main", own));             // before its first run
//
//   rank 1's collective 7 is c_allreduce_sum of fc_0.w_0@GRAD f32[784, 200] (train.py:31 in model), rank 0's
//   is c_allreduce_sum of fc_0.b_0@GRAD f32[200] (train.py:31 in model)   [E-rendezvous-contract]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/collective/rendezvous/store.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock::rendezvous {

// One collective of a program. `where` is for people and is not compared.
struct CollectiveCall {
  std::string op;        // its type, which says the reduction: c_allreduce_sum
  std::string variable;  // fc_0.w_0@GRAD
  std::string type;      // element type and extents: f32[784, 200]
  int root = 0;
  std::string where;  // the user's line, or that of the last op before it that writes the variable

  bool SameAs(const CollectiveCall& other) const {
    return op == other.op && variable == other.variable && type == other.type && root == other.root;
  }
  std::string ToString() const;
};

struct CollectiveContract {
  int ranks = 0;
  std::map<int, std::vector<CollectiveCall>> rings;  // by ring_id, in the order in which they are done
  std::string job_facts;                             // JobFactsOfAllRanks, text/job_facts.h
  // Every op of the program: its type, and a hash of it without what is of one rank alone: its number, its
  // addresses, seeds, functions of the user's by number.
  std::vector<std::string> ops;
};

// Of the program's blocks, an inner block where its op stands. O(ops).
CollectiveContract ContractOf(const Program& program, int ranks);

// Of all that is compared.
std::uint64_t DigestOf(const CollectiveContract& contract);

// Bytes of it, for the store. Where they would be more than a value of the store, ops and then rings are left
// out, and a difference among them is told without saying which.
std::string WriteContract(const CollectiveContract& contract);
Result<CollectiveContract> ReadContract(std::string_view bytes);  // kDataLoss E-rendezvous-message

// The first thing in which rank `rank`'s contract differs from rank 0's, in one line; nothing if they are the
// same.
std::optional<std::string> ContractDifference(const CollectiveContract& rank0, int rank,
                                              const CollectiveContract& other);

// Ok on every rank, or kFailedPrecondition E-rendezvous-contract with the same line on every rank: rank 0
// compares the others with itself. `name` tells programs apart that a job runs; all ranks agree on a name
// once. Cost: a contract's bytes to rank 0 from each rank.
Status AgreeOnContract(Store& store, const std::string& name, const CollectiveContract& contract);

}  // namespace penstock::rendezvous
