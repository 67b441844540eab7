// The collective rings of a process, as kernels see them: the ranks, one group for each ring, and operations
// that run concurrently with the computation.
//
//   PENSTOCK_RETURN_IF_ERROR(rings.Join({"10.0.0.1:6170", "10.0.0.2:6170"}, 1));  // gen_nccl_id
//   PENSTOCK_RETURN_IF_ERROR(rings.MakeRing(0, 0));
//   ... each step:
//   PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, rings.Ring(0));
//   Status started = rings.ReduceBeside(0, gradient, Reduction::kSum, {.label = "w@GRAD"});  // does not wait
//   PENSTOCK_RETURN_IF_ERROR(rings.Await(0));   // c_sync_comm_stream: waits for all started operations
//
// Join, MakeRing and Begin wait for other ranks. Call from one thread at a time, except for Cancel.
// executor/process/job_rings.h has the production implementation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"
#include "framework/runtime/reduction_bucket.h"

namespace penstock {

class Program;

// Base of what kernels keep about a block.
class RingSiteCache {
 public:
  virtual ~RingSiteCache() = default;
};

class CollectiveRings {
 public:
  // One operation of 1 MB replaces 8 operations of 128 KB and saves the fixed cost of 7 of them. A backward
  // pass fills a bucket of this size early enough for the operation to overlap with the rest.
  static constexpr std::size_t kBucketBytes = std::size_t{1} << 20;

  virtual ~CollectiveRings() = default;

  // Makes this process rank `rank` of the job with these addresses. Returns when all ranks have joined. A
  // repeated call must give the same addresses, else kFailedPrecondition E-collective-joined.
  virtual Status Join(const std::vector<std::string>& addresses, int rank) = 0;
  // Makes the ring with this number over all joined ranks. Returns when all ranks make it; an existing ring
  // stays. If group_ranks > 0, each group of that many consecutive ranks reduces first, then one rank of each
  // group reduces with those of the other groups; 0 chooses the fastest way.
  //
  // kFailedPrecondition  E-collective-not-joined; E-collective-ring-made: the ring exists with other groups
  // kInvalidArgument     E-rendezvous-groups: the number of ranks is not a multiple of group_ranks
  virtual Status MakeRing(int ring, int group_ranks) = 0;
  // Makes a ring of this process alone.
  virtual Status MakeOwnRing(int ring) = 0;
  // Call before the first operation of a program; `ring` is the ring of that operation. All ranks must have
  // the same program (E-rendezvous-contract). The ranks first meet on the ring, which detects a rank that
  // runs another operation there (E-collective-mismatch; `label` describes this rank's operation). No effect
  // if the program has begun.
  virtual Status Begin(const Program& program, int ring, std::string_view label) = 0;
  // The count of an operation's starts since the ranks have joined, which is the number of its program's
  // steps; the kernel that starts it adds to it. `operation` identifies the operation in all compiled forms
  // of the program. Valid as long as this object.
  std::int64_t* RunsOf(std::uint64_t operation);
  // What the kernels found in the block that was prepared last. Only kernels use it.
  std::unique_ptr<RingSiteCache>& sites() { return sites_; }
  // kFailedPrecondition E-collective-no-ring: the ring was not made.
  virtual Result<CollectiveGroup*> Ring(int ring) = 0;

  // Records an operation that runs concurrently, for Await.
  void Keep(int ring, Completion started);
  // Reduces `values` over all ranks, concurrently with the computation. Small tensors share a bucket. Its
  // reduction starts when the next tensor does not fit, when another operation of the ring begins (Flush), or
  // when the ring is awaited.
  Status ReduceBeside(int ring, const Elements& values, Reduction reduction,
                      const CollectiveOptions& options);
  // Starts the reduction of the ring's bucket. Call before every other operation of the ring, so that all
  // ranks keep the order of the program.
  Status Flush(int ring);
  // Starts the bucket of a ring, or of all rings, and waits for the recorded operations; returns the first
  // error.
  Status Await(int ring);
  Status AwaitAll();
  // Waits for one operation.
  Status Wait(const Completion& completion);

  // Sets the size of buckets. A tensor larger than an eighth of it is reduced alone; 0: every tensor is
  // reduced alone. Must be equal on all ranks; call before the first operation.
  void SetBucketBytes(std::size_t bytes) { bucket_bytes_ = bytes; }

  // If the process waits for other ranks, ends the wait: the groups fail with kCancelled. From any thread.
  void Cancel();
  // Call when a run has failed, before its memory is freed. Groups with recorded operations fail with `why`;
  // returns once no thread uses their elements.
  void GiveUp(const Status& why);

 protected:
  // Ends all groups, and all calls that wait for other ranks while they make a group. From any thread.
  virtual void AbortAll(const Status& why) = 0;
  virtual void AbortRing(int ring, const Status& why) = 0;
  // Sets the counts of RunsOf to 0, so that each program begins again with the ranks that join next.
  void ForgetRuns();
  // Whether a thread of the process waits for other ranks in a call of this class. From any thread.
  bool waits();

  // Marks the process as waiting for other ranks while in scope.
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
  // An operation in progress, of a bucket or of a tensor that is reduced alone.
  struct Kept {
    Completion done;
    std::unique_ptr<ReductionBucket> bucket;
  };
  std::vector<Kept> Taken(int ring);
  std::unique_ptr<ReductionBucket> EmptyBucket();

  std::mutex mutex_;
  int waiting_ = 0;
  std::map<int, std::vector<Kept>> kept_;                 // by ring
  std::unordered_map<std::uint64_t, std::int64_t> runs_;  // by operation
  // Used only by the thread that runs programs.
  std::unique_ptr<RingSiteCache> sites_;
  std::size_t bucket_bytes_ = kBucketBytes;
  std::map<int, std::unique_ptr<ReductionBucket>> filling_;  // by ring
  std::vector<std::unique_ptr<ReductionBucket>> idle_;
};

}  // namespace penstock
