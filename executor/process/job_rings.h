// The rings of this process: joins the job's store, makes a group for each ring, and agrees with the other
// ranks on each program before it first runs.
//
//   JobRings rings;
//   ... ExecutorOptions{.rings = &rings} ...
//   rings.Leave(OkStatus());   // the process ends
//
// After Leave, every call fails with kFailedPrecondition E-collective-left. StartOver leaves too; after it,
// the process can join the next round of its job: other ranks, or the same ones at other addresses.
//
// One per process. Thread-safe, except Disconnect. Calls that wait for other ranks run one at a time, and all
// ranks must make their rings in the same order.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "executor/collective/rendezvous/wait_board.h"
#include "executor/observe/report_times.h"
#include "executor/process/job_store.h"
#include "executor/process/ring_watch.h"
#include "framework/runtime/collective_rings.h"

namespace penstock::process {

class JobRings : public CollectiveRings {
 public:
  JobRings() = default;
  ~JobRings() override;

  Status Join(const std::vector<std::string>& addresses, int rank) override;
  Status MakeRing(int ring, int group_ranks) override;
  Status MakeOwnRing(int ring) override;
  Status Begin(const Program& program, int ring, std::string_view label) override;
  Result<CollectiveGroup*> Ring(int ring) override;

  // Makes a ring over some ranks of the job, which include this one; `members` has no duplicates. Returns
  // when all members make it. Members need not make their rings in the same order as other ranks. A ring with
  // this number must not exist. kFailedPrecondition E-collective-not-joined.
  Status MakeSubRing(int ring, const std::vector<int>& members);
  // Frees a ring that MakeSubRing has made, after its operations have ended. No effect if there is none.
  void DropSubRing(int ring);
  // The operations that run now, of all rings over all ranks.
  std::vector<rendezvous::WaitedOperation> Running();
  // Ends the operations of all rings: all ranks get `why`.
  void EndOperations(const Status& why);

  // The job's store, for keys that begin with "hvd/". From any thread; in a job of one rank
  // kFailedPrecondition E-collective-not-joined. Errors of rendezvous::Store.
  Status Tell(const std::string& key, std::string value);
  Result<std::string> Ask(const std::string& key);  // waits until a rank has told it
  Result<std::int64_t> Count(const std::string& counter, std::int64_t by);

  // Tells the other ranks that this one is done, or, if `why` is an error, that it gives up: this ends their
  // operations and waits with this rank. Only the first call counts. Rank 0 waits for the others, at most 5
  // s.
  void Leave(const Status& why);
  // Frees groups and connections. The groups must no longer be in use.
  void Disconnect();
  // Leave and Disconnect; then this object is as new, so that Join can make this process a rank of the next
  // round. No run may be in progress.
  void StartOver(const Status& why);

 protected:
  void AbortAll(const Status& why) override;
  void AbortRing(int ring, const Status& why) override;

 private:
  // E-collective-left.
  Status RequirePresence() const;
  // E-collective-left, -not-joined. Hold `store_use_` while the store is used.
  Result<rendezvous::Store*> StoreOfJob() const;
  // E-collective-ring-made.
  Status RequireGroups(int ring, int group_ranks) const;
  Result<std::unique_ptr<CollectiveGroup>> GroupOfAll(int ring, int group_ranks);
  // With several rings, ranks can wait for each other in different ones: starts to detect and end such waits.
  void WatchWaits();
  bool LookAtWaits();  // returns whether to look again
  // The operations in which this process waits; empty unless a thread is blocked, because otherwise this
  // process may still start operations that other ranks await.
  std::vector<rendezvous::WaitedOperation> Waits();
  // The operations that run; sets *blocked if a thread waits in one. Hold `mutex_`.
  std::vector<rendezvous::WaitedOperation> RunningOfAll(bool* blocked = nullptr) const;

  std::shared_mutex store_use_;  // held shared by Tell, Ask and Count, and alone while the store is freed
  std::mutex meeting_;           // held while ranks meet; locked before `mutex_`
  // Guards the members below, which are written only while `meeting_` is held too.
  mutable std::mutex mutex_;
  std::optional<rendezvous::JoinFacts> facts_;
  JobStore job_;  // without a store if the job has one rank
  std::map<int, std::unique_ptr<CollectiveGroup>> groups_;
  std::map<int, int> group_ranks_;  // of rings over all ranks
  std::set<std::uint64_t> begun_;   // content ids of programs
  std::atomic<bool> cancelled_{false};
  bool left_ = false;
  Nanoseconds report_after_ = observe::kReportAfter;
  std::unique_ptr<rendezvous::WaitBoard> board_;
  std::unique_ptr<RingWatch> watch_;  // destroyed first
};

}  // namespace penstock::process
