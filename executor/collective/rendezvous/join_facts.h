// Who the ranks of a job are and which of them this process is, as a start-up program or the launcher's
// environment says; and the rings that follow from it.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::optional<JoinFacts> facts, FactsOfProgram(startup));
//   if (!facts) ... FactsOfEnvironment(ProcessEnvironment()) ...
//   PENSTOCK_ASSIGN_OR_RETURN(const Membership job, MakeMembership(*facts));
//   for (const Ring& ring : job.rings) ... a group of ring.members, of which this process is ring.rank ...
//
// Pure functions. Errors: kInvalidArgument E-rendezvous-facts (what is said contradicts itself),
// E-rendezvous-groups (ranks do not fill groups).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/collective/rendezvous/environment.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock::rendezvous {

struct JoinFacts {
  std::vector<std::string> addresses;  // "host:port" of all ranks, in their order
  int rank = 0;
  std::vector<int> rings = {0};  // numbers, ascending
  bool hierarchical = false;
  int group_ranks = 0;  // with hierarchical: ranks of a group; 0: those of one host
  // c_comm_init_all: the ranks are devices of this process, and there is no other process.
  bool of_devices = false;
};

// gen_nccl_id; or c_gen_nccl_id and c_comm_init of each ring; or c_comm_init_all. Nothing if the program
// joins no ranks.
Result<std::optional<JoinFacts>> FactsOfProgram(const Program& startup);

// PADDLE_TRAINER_ENDPOINTS, and of PADDLE_TRAINER_ID and PADDLE_CURRENT_ENDPOINT at least one;
// PADDLE_TRAINERS_NUM must agree. Nothing without PADDLE_TRAINER_ENDPOINTS.
Result<std::optional<JoinFacts>> FactsOfEnvironment(const Environment& environment);

enum class RingLevel {
  kFlat,   // all ranks
  kInner,  // those of one group
  kOuter,  // the first ranks of all groups
};

// One ring that this process is part of.
struct Ring {
  int number = 0;  // ring_id
  RingLevel level = RingLevel::kFlat;
  int group = 0;             // of an inner ring
  std::vector<int> members;  // ranks of the job, in the order of the ring
  int rank = 0;              // this process's place among them

  // What its keys in the store begin with: "ring/0", "ring/0/inner/1", "ring/0/outer".
  std::string Key() const;
};

struct Membership {
  std::vector<std::string> addresses;
  int rank = 0;
  std::vector<Ring> rings;  // by number; of one number flat, inner, outer
};
Result<Membership> MakeMembership(const JoinFacts& facts);

// The ranks in groups of `size`, in their order; 0: one group for each host, in the order of its first rank.
// E-rendezvous-groups: groups of `size` do not use up the ranks, or there is only one.
Result<std::vector<std::vector<int>>> GroupRanks(const std::vector<std::string>& addresses, int size);

}  // namespace penstock::rendezvous
