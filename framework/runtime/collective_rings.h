// The rings of a process, as kernels see them: who the ranks are, one group for each ring, and the operations
// that run beside the computation.
//
//   PENSTOCK_RETURN_IF_ERROR(rings.Join({"10.0.0.1:6170", "10.0.0.2:6170"}, 1));  // gen_nccl_id
//   PENSTOCK_RETURN_IF_ERROR(rings.MakeRing(0));
//   ... each step:
//   PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, rings.Ring(0));
//   rings.Keep(0, group->AllReduce(...));       // c_allreduce_sum: returns at once
//   PENSTOCK_RETURN_IF_ERROR(rings.Await(0));   // c_sync_comm_stream: waits for all that was kept
//
// Join, MakeRing and Begin wait for other ranks. Called from one thread at a time, but for Cancel.
// executor/process/job_rings.h is the one of production.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock {

class Program;

class CollectiveRings {
 public:
  virtual ~CollectiveRings() = default;

  // This process is rank `rank` of the job whose ranks are at `addresses`. Returns when all have come.
  // Again with the same is ok; with others kFailedPrecondition E-collective-joined.
  virtual Status Join(const std::vector<std::string>& addresses, int rank) = 0;
  // The ring of that number, over all ranks that were joined. Returns when all make it; a ring that is there
  // stays. kFailedPrecondition E-collective-not-joined.
  virtual Status MakeRing(int ring) = 0;
  // A ring of this process alone.
  virtual Status MakeOwnRing(int ring) = 0;
  // Called before the first operation of a program, which is on `ring`: all ranks must have the same
  // (E-rendezvous-contract). They meet on the ring first, so a rank that does something else there is found
  // (E-collective-mismatch, with `label` for this one). Without effect on a program that has begun.
  virtual Status Begin(const Program& program, int ring, std::string_view label) = 0;
  // How often an operation was started, this time included: the steps of its program. `operation` stands for
  // it in all compiled forms of that.
  std::int64_t CountRun(std::uint64_t operation);
  // kFailedPrecondition E-collective-no-ring: nobody made it.
  virtual Result<CollectiveGroup*> Ring(int ring) = 0;

  // Remembers an operation that runs beside the computation.
  void Keep(int ring, Completion started);
  // Waits for what was kept of a ring, or of all; the first error.
  Status Await(int ring);
  Status AwaitAll();
  // Waits for one operation.
  Status Wait(const Completion& completion);

  // Ends what waits for other ranks now, if anything does: the groups fail with kCancelled. From any thread.
  void Cancel();
  // A run has failed: its memory goes away. Groups with operations that were kept fail with `why`, and return
  // once nobody touches their elements any more.
  void GiveUp(const Status& why);

 protected:
  // Ends all groups, and waits for other ranks while groups are made. From any thread.
  virtual void AbortAll(const Status& why) = 0;
  virtual void AbortRing(int ring, const Status& why) = 0;

  // In scope while the process waits for other ranks.
  class Waiting {
   public:
    explicit Waiting(CollectiveRings& rings);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    CollectiveRings& rings_;
  };

 private:
  std::vector<Completion> Taken(int ring);

  std::mutex mutex_;
  int waiting_ = 0;
  std::map<int, std::vector<Completion>> kept_;           // by ring
  std::unordered_map<std::uint64_t, std::int64_t> runs_;  // by operation
};

}  // namespace penstock
