// Who the ranks of a job are and which of them this process is, and a ring of them. Programs say it by their
// ops (gen_nccl_id, c_gen_nccl_id), whose kernels call CollectiveRings; the launcher by its environment.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::optional<JoinFacts> facts, FactsOfEnvironment(ProcessEnvironment()));
//   if (facts) ... JoinJobStore(*facts) ...
//
// Pure functions. Errors: kInvalidArgument E-rendezvous-facts (what is said contradicts itself),
// E-rendezvous-groups (ranks do not fill groups).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/collective/rendezvous/environment.h"
#include "framework/base/status.h"

namespace penstock::rendezvous {

struct JoinFacts {
  std::vector<std::string> addresses;  // "host:port" of all ranks, in their order
  int rank = 0;
};

// Addresses are host:port, each once, and `rank` is one of them. `who` names the source in errors.
Status CheckFacts(std::string_view who, const JoinFacts& facts);

// PADDLE_TRAINER_ENDPOINTS, and of PADDLE_TRAINER_ID and PADDLE_CURRENT_ENDPOINT at least one;
// PADDLE_TRAINERS_NUM must agree. Nothing without PADDLE_TRAINER_ENDPOINTS.
Result<std::optional<JoinFacts>> FactsOfEnvironment(const Environment& environment);

// A ring that this process is part of.
struct Ring {
  int number = 0;            // ring_id
  std::vector<int> members;  // ranks of the job, in the order of the ring
  int rank = 0;              // this process's place among them

  std::string Key() const;  // what its keys in the store begin with: "ring/0"
};

// The ranks in groups of `size`, in their order. E-rendezvous-groups: groups of `size` do not use up the
// ranks, or there is only one.
Result<std::vector<std::vector<int>>> GroupRanks(int ranks, int size);

}  // namespace penstock::rendezvous
