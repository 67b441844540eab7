// Rings whose ranks are threads of this process, for tests of collective ops.
//
//   OnThreads(2, [](ThreadRings& rings) { ... Services{.rings = &rings} ... });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/collective/arena/threads.h"
#include "framework/runtime/collective_rings.h"

namespace penstock::test {

class ThreadRings : public CollectiveRings {
 public:
  int begun = 0;                                         // calls of Begin
  std::vector<std::pair<std::string, int>> joined = {};  // addresses and rank

  explicit ThreadRings(std::vector<std::unique_ptr<CollectiveGroup>> groups) : groups_(std::move(groups)) {}

  Status Join(const std::vector<std::string>& addresses, int rank) override {
    joined.emplace_back(penstock::Join(addresses, ","), rank);
    return OkStatus();
  }
  Status MakeRing(int, int) override { return OkStatus(); }
  Status MakeOwnRing(int) override { return OkStatus(); }
  Status Begin(const Program&, int, std::string_view) override {
    ++begun;
    return OkStatus();
  }
  Result<CollectiveGroup*> Ring(int ring) override {
    if (ring < static_cast<int>(groups_.size())) return groups_[static_cast<std::size_t>(ring)].get();
    return FailedPrecondition("E-collective-no-ring", "no op has made ring ", ring);
  }

 protected:
  void AbortAll(const Status& why) override {
    for (const auto& group : groups_) group->Abort(why);
  }
  void AbortRing(int ring, const Status& why) override {
    groups_[static_cast<std::size_t>(ring)]->Abort(why);
  }

 private:
  std::vector<std::unique_ptr<CollectiveGroup>> groups_;  // by ring
};

// Calls `rank` on one thread per rank, with rings 0 and 1 over all ranks.
inline void OnThreads(int ranks, const std::function<void(ThreadRings&)>& rank) {
  std::vector<std::vector<std::unique_ptr<CollectiveGroup>>> of_rank(static_cast<std::size_t>(ranks));
  for (int ring = 0; ring < 2; ++ring) {
    auto made = collective::MakeThreadGroups(ranks);
    PENSTOCK_CHECK(made.ok(), made.status().ToString());
    for (std::size_t r = 0; r < of_rank.size(); ++r) of_rank[r].push_back(std::move((*made)[r]));
  }
  std::vector<std::thread> threads;
  for (auto& groups : of_rank) {
    threads.emplace_back([&rank, groups = std::move(groups)]() mutable {
      ThreadRings rings(std::move(groups));
      rank(rings);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace penstock::test
