// Recognises operations between ranks, and finds the ops of a block that use the exchanged variables.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "framework/ir/op.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {

inline bool AddsUp(const Op& op) {
  return op.type() == "c_allreduce_sum" || op.type() == "c_sparse_allreduce_sum";
}
inline bool GivesToOthers(const Op& op) { return op.type() == "c_broadcast"; }
// Computes the rank's share of all ranks' examples, times `scale`: scale / N for N equal ranks.
inline bool IsShareOfExamples(const Op& op) { return op.type() == "c_share_of_elements"; }
inline bool IsCollective(const Op& op) {
  return AddsUp(op) || GivesToOthers(op) || op.type() == "c_allgather" || op.type() == "c_reducescatter";
}
// The communication stream waits for the computation; the computation waits for a ring.
inline bool AwaitsComputation(const Op& op) { return op.type() == "c_sync_calc_stream"; }
inline bool AwaitsRing(const Op& op) { return op.type() == "c_sync_comm_stream"; }
inline bool AwaitsStream(const Op& op) { return AwaitsComputation(op) || AwaitsRing(op); }
inline int RingOf(const Op& op) { return op.GetOr<std::int32_t>("ring_id", 0); }

// The variables that ranks sum in a step.
ViewSet AddedUp(const Program& main);

// Finds where the ops of a block read and write certain variables, and where they wait for streams. The block
// must outlive it.
class RankOps {
 public:
  struct Use {
    int at = 0;
    const Op* op = nullptr;
    bool reads = false;
    bool writes = false;
  };

  // Indexes the arguments of the block's operations between ranks.
  explicit RankOps(const Block& block);

  // In the order of the ops.
  std::span<const Use> UsesOf(std::string_view name) const;
  // Position of the last wait for computation before the op at `at`; -1 if there is none.
  int AwaitedBefore(int at) const;
  // Position of the first wait for the ring after the op at `at`; the number of ops if there is none.
  int RingAwaitedAfter(int ring, int at) const;

 private:
  ViewMap<std::vector<Use>> uses_;
  std::vector<int> computation_;           // positions of waits for computation, ascending
  std::map<int, std::vector<int>> rings_;  // positions of waits for each ring
  int ops_ = 0;
};

}  // namespace penstock::check
