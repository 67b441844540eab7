#include "executor/collective/gloo.h"

#include <utility>

#include "executor/collective/gloo_links.h"
#include "executor/collective/queued_group.h"
#include "executor/collective/ring_backend.h"

namespace penstock::collective {

Result<std::unique_ptr<CollectiveGroup>> MakeGlooGroup(const GlooRendezvous& rendezvous) {
  constexpr int kMostRanks = 4096;
  if (rendezvous.size < 1 || rendezvous.size > kMostRanks) {
    return InvalidArgument("E-collective-size", "a group over Gloo has 1 to ", kMostRanks, " ranks, not ",
                           rendezvous.size);
  }
  if (rendezvous.rank < 0 || rendezvous.rank >= rendezvous.size) {
    return InvalidArgument("E-collective-size", "rank ", rendezvous.rank, " is out of range; there are ",
                           rendezvous.size, " ranks");
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Links> links, ConnectGloo(rendezvous));
  return std::unique_ptr<CollectiveGroup>(std::make_unique<QueuedGroup>(std::make_unique<RingBackend>(
      "gloo", std::move(links), RingOptions{.report_after = rendezvous.report_after})));
}

}  // namespace penstock::collective
