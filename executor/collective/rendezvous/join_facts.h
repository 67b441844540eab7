// The ranks of a job, the rank of this process, and the members of a ring. Programs state them in ops
// (gen_nccl_id, c_gen_nccl_id), whose kernels call CollectiveRings; the launcher, in the environment.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::optional<JoinFacts> facts, FactsOfEnvironment(ProcessEnvironment()));
//   if (facts) ... JoinJobStore(*facts, limit) ...
//
// Pure functions. Errors: kInvalidArgument E-rendezvous-facts (the facts contradict each other),
// E-rendezvous-groups (the ranks do not fill the groups).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/collective/rendezvous/environment.h"
#include "framework/base/status.h"

namespace penstock::rendezvous {

struct JoinFacts {
  std::vector<std::string> addresses;  // "host:port" of all ranks, in order
  int rank = 0;
};

// Checks that addresses are host:port, without duplicates, and that `rank` is in range. `who` is the source
// named in errors.
Status CheckFacts(std::string_view who, const JoinFacts& facts);

// Reads PADDLE_TRAINER_ENDPOINTS, and at least one of PADDLE_TRAINER_ID and PADDLE_CURRENT_ENDPOINT;
// PADDLE_TRAINERS_NUM must agree. nullopt without PADDLE_TRAINER_ENDPOINTS.
Result<std::optional<JoinFacts>> FactsOfEnvironment(const Environment& environment);

// A ring that this process belongs to.
struct Ring {
  int number = 0;            // ring_id
  std::vector<int> members;  // ranks of the job, in the order of the ring
  int rank = 0;              // the position of this process in `members`

  std::string Key() const;  // the prefix of its keys in the store: "ring/0"
};

// Divides the ranks into groups of `size` consecutive ones. E-rendezvous-groups: the number of ranks is not a
// multiple of `size`, or there would be a single group.
Result<std::vector<std::vector<int>>> GroupRanks(int ranks, int size);

}  // namespace penstock::rendezvous
