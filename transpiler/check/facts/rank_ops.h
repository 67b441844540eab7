// Operations between ranks, as programs spell them, and where a block's ops use what they exchange.
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
// Which part of all ranks' examples a rank has: of N that are alike scale / N.
inline bool IsShareOfExamples(const Op& op) { return op.type() == "c_share_of_elements"; }
inline bool IsCollective(const Op& op) {
  return AddsUp(op) || GivesToOthers(op) || op.type() == "c_allgather" || op.type() == "c_reducescatter";
}
// Communication waits for what was computed; computation waits for a ring.
inline bool AwaitsComputation(const Op& op) { return op.type() == "c_sync_calc_stream"; }
inline bool AwaitsRing(const Op& op) { return op.type() == "c_sync_comm_stream"; }
inline bool AwaitsStream(const Op& op) { return AwaitsComputation(op) || AwaitsRing(op); }
inline int RingOf(const Op& op) { return op.GetOr<std::int32_t>("ring_id", 0); }

// What ranks add up in a step.
ViewSet AddedUp(const Program& main);

// Where the ops of a block read and write some names, and where they wait for streams. It views the block.
class RankOps {
 public:
  struct Use {
    int at = 0;
    const Op* op = nullptr;
    bool reads = false;
    bool writes = false;
  };

  // Of the names that the block's operations between ranks take.
  explicit RankOps(const Block& block);

  // In the order of the ops.
  std::span<const Use> UsesOf(std::string_view name) const;
  // The last wait for computation before the op at `at`; -1: none.
  int AwaitedBefore(int at) const;
  // The first wait for the ring after the op at `at`; as many as there are ops: none.
  int RingAwaitedAfter(int ring, int at) const;

 private:
  ViewMap<std::vector<Use>> uses_;
  std::vector<int> computation_;           // waits for it, in order
  std::map<int, std::vector<int>> rings_;  // waits for each
  int ops_ = 0;
};

}  // namespace penstock::check
