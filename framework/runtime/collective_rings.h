// The rings of a process, as kernels see them: who the ranks are, one group for each ring, and the operations
// that run beside the computation.
//
//   PENSTOCK_RETURN_IF_ERROR(rings.Join({"10.0.0.1:6170", "10.0.0.2:6170"}, 1));  // gen_nccl_id
//   PENSTOCK_RETURN_IF_ERROR(rings.MakeRing(0, 0));
//   ... each step:
//   PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, rings.Ring(0));
//   PENSTOCK_RETURN_IF_ERROR(
//       rings.ReduceBeside(0, gradient, Reduction::kSum, {.label = "w@GRAD"}));  // returns at once
//   PENSTOCK_RETURN_IF_ERROR(rings.Await(0));   // c_sync_comm_stream: waits for all that was kept
//
// Join, MakeRing and Begin wait for other ranks. Called from one thread at a time, but for Cancel.
// executor/process/job_rings.h is the one of production.
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

class CollectiveRings {
 public:
  // One operation of 1 MB costs less than 8 of 128 KB by the time of 7 of them, and a backward pass fills it
  // soon enough to run beside the rest.
  static constexpr std::size_t kBucketBytes = std::size_t{1} << 20;

  virtual ~CollectiveRings() = default;

  // This process is rank `rank` of the job whose ranks are at `addresses`. Returns when all have come.
  // Again with the same is ok; with others kFailedPrecondition E-collective-joined.
  virtual Status Join(const std::vector<std::string>& addresses, int rank) = 0;
  // The ring of that number, over all ranks that were joined. Returns when all make it; a ring that is there
  // stays. With group_ranks, each so many ranks in a row reduce among themselves first, and one of each group
  // with those of the others; 0: whatever is fastest. kFailedPrecondition E-collective-not-joined;
  // E-collective-ring-made: it is there with other groups. kInvalidArgument E-rendezvous-groups: the
  // ranks do not fill groups.
  virtual Status MakeRing(int ring, int group_ranks) = 0;
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
  // Reduces `values` over all ranks, beside the computation. Small tensors go together: they wait in a bucket
  // until it is full, another operation of the ring begins (Flush), or somebody awaits the ring.
  Status ReduceBeside(int ring, const Elements& values, Reduction reduction,
                      const CollectiveOptions& options);
  // Starts what waits in the ring's bucket. Before every other operation of a ring, so that the order is the
  // program's on all ranks.
  Status Flush(int ring);
  // Waits for what was kept of a ring, or of all; the first error.
  Status Await(int ring);
  Status AwaitAll();
  // Waits for one operation.
  Status Wait(const Completion& completion);

  // The bytes of a bucket; tensors of more than an eighth of that go alone. 0: all go alone. The same on all
  // ranks, before the first operation.
  void SetBucketBytes(std::size_t bytes) { bucket_bytes_ = bytes; }

  // Ends what waits for other ranks now, if anything does: the groups fail with kCancelled. From any thread.
  void Cancel();
  // A run has failed: its memory goes away. Groups with operations that were kept fail with `why`, and return
  // once nobody touches their elements any more.
  void GiveUp(const Status& why);

 protected:
  // Ends all groups, and waits for other ranks while groups are made. From any thread.
  virtual void AbortAll(const Status& why) = 0;
  virtual void AbortRing(int ring, const Status& why) = 0;
  // Whether a thread of the process waits for other ranks in a call of this class. From any thread.
  bool waits();

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
  // An operation under way, of a bucket or of tensors that go alone.
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
  // Of the one thread that runs programs.
  std::size_t bucket_bytes_ = kBucketBytes;
  std::map<int, std::unique_ptr<ReductionBucket>> filling_;  // by ring
  std::vector<std::unique_ptr<ReductionBucket>> idle_;
};

}  // namespace penstock
