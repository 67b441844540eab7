#include "executor/collective/shared_memory.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tools/bench/collective/all_reducer.h"

namespace penstock::bench {
namespace {

void EndIfWrong(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_collective: %s\n", status.ToString().c_str());
  std::exit(1);
}

class SharedMemoryReducer : public AllReducer {
 public:
  explicit SharedMemoryReducer(std::unique_ptr<CollectiveGroup> group) : group_(std::move(group)) {}
  void Sum(float* values, std::size_t count) override {
    const Elements data{reinterpret_cast<std::byte*>(values), static_cast<std::int64_t>(count),
                        ElementType::kFp32};
    EndIfWrong(group_->AllReduce(data, Reduction::kSum, {.blocking = true}).Wait());
  }

 private:
  std::unique_ptr<CollectiveGroup> group_;
};

}  // namespace

std::unique_ptr<AllReducer> MakeSharedMemoryReducer(const BenchRank& rank) {
  Result<std::unique_ptr<CollectiveGroup>> group =
      collective::MakeSharedMemoryGroup({.rank = rank.rank, .size = rank.ranks, .meeting_point = rank.job});
  EndIfWrong(group.status());
  return std::make_unique<SharedMemoryReducer>(std::move(group).value());
}

}  // namespace penstock::bench
