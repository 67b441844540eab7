#include "executor/collective/arena/shared_memory.h"

#include <utility>

#include "executor/collective/arena/arena_backend.h"
#include "executor/collective/arena/join.h"
#include "executor/collective/arena/pages.h"
#include "executor/collective/group/queued_group.h"

namespace penstock::collective {
namespace {

// The descriptor stays open: closing one would release this rank's lock.
struct JoinedMemory {
  JoinedMemory(transport::Descriptor file, Pages mapped)
      : descriptor(std::move(file)), pages(std::move(mapped)) {}
  transport::Descriptor descriptor;
  Pages pages;
};

Status CheckRendezvous(const SharedMemoryRendezvous& rendezvous) {
  constexpr std::size_t kMostBytes = 48;
  if (rendezvous.size < 1 || rendezvous.size > kMaxRanks) {
    return InvalidArgument("E-collective-size", "a group of one host has 1 to ", kMaxRanks, " ranks, not ",
                           rendezvous.size);
  }
  if (rendezvous.rank < 0 || rendezvous.rank >= rendezvous.size) {
    return InvalidArgument("E-collective-size", "rank ", rendezvous.rank, " is out of range; there are ",
                           rendezvous.size, " ranks");
  }
  const std::size_t length = rendezvous.meeting_point.size();
  if (length >= 1 && length <= kMostBytes) return OkStatus();
  return InvalidArgument("E-collective-size", "the meeting point has ", length, " bytes; 1 to ", kMostBytes,
                         " are allowed");
}

}  // namespace

Result<std::unique_ptr<CollectiveGroup>> MakeSharedMemoryGroup(const SharedMemoryRendezvous& rendezvous) {
  PENSTOCK_RETURN_IF_ERROR(CheckRendezvous(rendezvous));
  const std::size_t bytes = Arena::Bytes(rendezvous.size);
  PENSTOCK_ASSIGN_OR_RETURN(transport::Descriptor descriptor, JoinMemory(rendezvous, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(Pages pages, Pages::OfDescriptor(descriptor, bytes));
  const auto memory = std::make_shared<const JoinedMemory>(std::move(descriptor), std::move(pages));
  const auto gone = [memory = memory.get(), mine = rendezvous.rank](int rank) {
    return rank != mine && !IsRankLocked(memory->descriptor, rank);
  };
  return std::unique_ptr<CollectiveGroup>(std::make_unique<QueuedGroup>(
      std::make_unique<ArenaBackend>(ArenaOptions{.name = "shared_memory",
                                                  .rank = rendezvous.rank,
                                                  .ranks = rendezvous.size,
                                                  .memory = memory->pages.data(),
                                                  .owner = memory,
                                                  .gone = gone,
                                                  .report_after = rendezvous.report_after,
                                                  .names = rendezvous.names}),
      rendezvous.trace_name));
}

}  // namespace penstock::collective
