// The facts that the ranks of a job must have in common, and where they differ: ranks whose programs have
// different collectives, or a different order of them, would wait for each other forever.
//
//   const CollectiveContract own = ContractOf(program, store.ranks());         // of the program to run
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

// One collective of a program. `where` is for messages and is not compared.
struct CollectiveCall {
  std::string op;        // its type, which determines the reduction: c_allreduce_sum
  std::string variable;  // fc_0.w_0@GRAD
  std::string type;      // element type and extents: f32[784, 200]
  int root = 0;
  std::string where;  // the user's line, or that of the last earlier op that writes the variable

  bool SameAs(const CollectiveCall& other) const {
    return op == other.op && variable == other.variable && type == other.type && root == other.root;
  }
  std::string ToString() const;
};

struct CollectiveContract {
  int ranks = 0;
  std::map<int, std::vector<CollectiveCall>> rings;  // by ring_id, in program order
  std::string job_facts;                             // JobFactsOfAllRanks, text/job_facts.h
  // Every op of the program: its type, and a hash of the op without what differs between ranks: its rank
  // number, addresses, seeds, and the numbers of user functions.
  std::vector<std::string> ops;
};

// The contract of the program's blocks; an inner block counts at the position of its op. O(ops).
CollectiveContract ContractOf(const Program& program, int ranks);

// A hash of everything that is compared.
std::uint64_t DigestOf(const CollectiveContract& contract);

// The contract as a value for the store. If it is too large for one, ops and then rings are omitted; a
// difference among them is then reported without its place.
std::string WriteContract(const CollectiveContract& contract);
Result<CollectiveContract> ReadContract(std::string_view bytes);  // kDataLoss E-rendezvous-message

// The first difference of rank `rank`'s contract from rank 0's, in one line; nullopt if they are equal.
std::optional<std::string> ContractDifference(const CollectiveContract& rank0, int rank,
                                              const CollectiveContract& other);

// Returns ok on every rank, or kFailedPrecondition E-rendezvous-contract with the same line on every rank:
// rank 0 compares the others with its own. `name` distinguishes a job's programs; all ranks agree on each
// name once. Cost: one contract's bytes from each rank to rank 0.
Status AgreeOnContract(Store& store, const std::string& name, const CollectiveContract& contract);

}  // namespace penstock::rendezvous
