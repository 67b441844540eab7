// A CollectiveGroup over a Backend: checks arguments, runs operations in order on a thread of its own, each
// after the ranks have agreed on it, and keeps the first error.
//
//   return std::make_unique<QueuedGroup>(std::make_unique<ArenaBackend>(...), "ring/0");
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "executor/collective/group/agreed_backend.h"
#include "executor/observe/trace/flow.h"
#include "executor/observe/trace/tracer.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

class QueuedGroup : public CollectiveGroup {
 public:
  // `name` identifies the group in traces: the same on all ranks, another one for each group of the job.
  // Without it, the traces of the ranks do not join its operations.
  explicit QueuedGroup(std::unique_ptr<Backend> backend, std::string_view name = {});
  ~QueuedGroup() override;

  int rank() const override { return backend_.rank(); }
  int size() const override { return backend_.size(); }
  std::string_view backend() const override { return backend_.name(); }
  bool adds_in_rank_order() const override { return backend_.adds_in_rank_order(); }

  Completion AllReduce(Elements data, Reduction reduction, const CollectiveOptions& options) override;
  Completion ReduceScatter(ConstElements in, Elements out, Reduction reduction,
                           const CollectiveOptions& options) override;
  Completion AllGather(ConstElements in, std::span<const std::int64_t> counts, Elements out,
                       const CollectiveOptions& options) override;
  Completion Broadcast(Elements data, int root, const CollectiveOptions& options) override;
  Completion Reduce(Elements data, Reduction reduction, int root, const CollectiveOptions& options) override;
  Completion Barrier(const CollectiveOptions& options) override;
  Completion SendRecv(ConstElements out, int to, Elements in, int from,
                      const CollectiveOptions& options) override;
  Completion Send(ConstElements out, int to, const CollectiveOptions& options) override;
  Completion Recv(Elements in, int from, const CollectiveOptions& options) override;
  std::optional<Running> running() const override;
  void Abort(const Status& why) override;

 private:
  struct Queued {
    Operation op;
    Promise promise;
  };

  Completion Start(Operation op, const CollectiveOptions& options);
  Status RunOne(const Operation& op);
  Status RunTraced(const Operation& op);
  void ServeQueue();

  std::uint64_t FlowOf(const Operation& op) const;

  AgreedBackend backend_;
  trace::Tracer* const tracer_ = trace::Tracer::OfThisProcess();  // null: nothing is traced
  const std::optional<trace::FlowBase> flows_;                    // absent: the group has no name
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  std::uint64_t number_ = 0;        // of the last collective started
  bool running_ = false;            // an operation runs, on any thread
  const Operation* now_ = nullptr;  // the operation that the backend runs
  int blocked_ = 0;                 // callers blocked in Start
  bool ending_ = false;
  Status error_;
  std::thread thread_;  // last member, because it uses all others
};

}  // namespace penstock::collective
