// How a group without shared memory ends: keeps the first error, and sends it to all ranks.
//
//   GroupEnd end(links, {}, [&](int rank) { return StateOfProcess(processes[rank]); });
//   if (const LinkEnd came = transit->Wait(); came != LinkEnd::kDone) return end.Of(from, came, what);
//
// A rank that finds an error tells all others, and each rank that hears of an error for the first time tells
// all others too. All survivors therefore learn of it even if the sender dies meanwhile. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "executor/collective/group/operation.h"
#include "executor/collective/group/rank_names.h"
#include "executor/collective/ring/links.h"
#include "framework/base/status.h"
#include "framework/runtime/process_id.h"

namespace penstock::collective {

class GroupEnd {
 public:
  using ProcessStateOf = std::function<ProcessState(int rank)>;

  // `state_of` tells why a connection has ended; without it, no process is known to have ended.
  explicit GroupEnd(Links& links, RankNames names = {}, ProcessStateOf state_of = {});

  // The first failure, if there is one.
  Status Failure() const;
  // Records `why` as the group's first failure if there is none; returns the first failure.
  Status Fail(const Status& why);
  // This rank fails with `why`, the others with its text.
  void Abort(const Status& why);
  // Returns the error of a wait for `rank` that ended with `end`, which is not kDone: the first failure, or
  // else kUnavailable
  //   E-collective-peer-left     the rank has left the group
  //   E-collective-peer-lost     its process has ended, or is on another host and cannot be reached
  //   E-collective-link-broken   only the connection has ended; the process runs
  Status Of(int rank, LinkEnd end, const Signature& what);
  // This rank starts no more operations. Must be the last call.
  void Leave();

 private:
  void Hear(int from, const Notice& notice);
  Status Lost(int rank, const Signature& what) const;
  ProcessState StateOf(int rank) const { return state_of_ ? state_of_(rank) : ProcessState::kUnknown; }
  bool Record(const Status& why);
  void TellAll(const Notice& notice);

  Links& links_;
  const RankNames names_;
  const ProcessStateOf state_of_;
  std::vector<std::atomic<bool>> left_;  // by rank
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  Status failure_;
};

}  // namespace penstock::collective
