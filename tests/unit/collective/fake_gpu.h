// A fake of NCCL and the CUDA runtime in one process without a GPU: GPU memory is host memory, each rank has
// a thread, and an operation runs once all ranks have called it. Records all calls; any call can be made to
// fail.
//
//   FakeGpus gpus(2);
//   auto group = MakeNcclGroup(gpus.ApiOf(1), {...});
//   gpus.Calls(1)      // "ncclAllReduce(4, f32, sum)", ...
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/collective/nccl/gpu_api.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

class FakeGpus {
 public:
  explicit FakeGpus(int ranks);
  FakeGpus(const FakeGpus&) = delete;

  const GpuApi& ApiOf(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->api; }
  // The calls since the last call of Calls, without those that only query.
  std::vector<std::string> Calls(int rank);

  // The next call of this name returns `error`.
  void Fail(int rank, const std::string& name, int error);
  // From now on, the rank has this asynchronous NCCL error.
  void FailLater(int rank, int error);
  // From now on, NCCL operations do not end.
  void Hang();
  // The number of live allocations, streams, events and communicators.
  int Held() const { return held_; }

 private:
  struct Call {
    enum Kind { kAllReduce, kReduce, kReduceScatter, kBroadcast, kAllGather, kSend, kRecv } kind;
    const void* in = nullptr;
    void* out = nullptr;
    std::size_t count = 0;
    int type = 0, op = 0, peer = 0;  // peer: the root, or the other rank
    bool done = false;
  };
  struct Item {  // an item of a stream
    std::vector<Call> calls;
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
    int event = 0;
  };
  struct Rank {
    GpuApi api;
    std::vector<std::string> calls;
    std::map<std::string, int> fails;
    std::deque<Item> stream;
    std::vector<Call> group;
    int depth = 0, events = 0, events_done = 0, looks = 0, later = 0;
    bool grouped_in_progress = false;
  };

  auto Noted(int rank, const char* name, int holds);
  void MakeConnections(int rank);
  void MakeOperations(int rank);
  void MakeCuda(int rank);
  int Note(int rank, const std::string& name, const std::string& arguments);
  int Enqueue(int rank, const std::string& name, Call call);
  void Advance();
  bool RunCalls(int rank, Item& item);
  bool RunAll(int rank, std::size_t at);
  bool RunMessage(int rank, Call& call);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  bool hangs_ = false;
  int held_ = 0, connected_ = 0;
};

}  // namespace penstock::collective
