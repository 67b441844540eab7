#include "executor/collective/arena/threads.h"

#include <utility>

#include "executor/collective/arena/arena_backend.h"
#include "executor/collective/arena/pages.h"
#include "executor/collective/group/queued_group.h"

namespace penstock::collective {

Result<std::vector<std::unique_ptr<CollectiveGroup>>> MakeThreadGroups(int ranks, Nanoseconds report_after,
                                                                       const RankNames& names) {
  if (ranks < 1 || ranks > kMaxRanks)
    return InvalidArgument("E-collective-size", "a group of threads has 1 to ", kMaxRanks, " ranks, not ",
                           ranks);
  PENSTOCK_ASSIGN_OR_RETURN(Pages made, Pages::OfThisProcess(Arena::Bytes(ranks)));
  const auto pages = std::make_shared<const Pages>(std::move(made));
  std::vector<std::unique_ptr<CollectiveGroup>> groups;
  groups.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    groups.push_back(std::make_unique<QueuedGroup>(
        std::make_unique<ArenaBackend>(ArenaOptions{.name = "threads",
                                                    .rank = rank,
                                                    .ranks = ranks,
                                                    .memory = pages->data(),
                                                    .owner = pages,
                                                    .gone = [](int) { return false; },
                                                    .report_after = report_after,
                                                    .names = names}),
        ""));
  }
  return groups;
}

}  // namespace penstock::collective
