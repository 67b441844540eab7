#include "executor/collective/gloo/gloo.h"

#include <string>
#include <utility>

#include "executor/collective/gloo/gloo_links.h"
#include "executor/collective/group/queued_group.h"
#include "executor/collective/ring/ring_backend.h"

namespace penstock::collective {
namespace {

// Where ranks share processors, the processor time of more messages exceeds what smaller ones save.
constexpr std::size_t kPieceBytesOfOneHost = std::size_t{4} << 20;

// Returns whether all ranks have the same address. Rank 0 compares them and tells the others, because all
// must use the same piece size.
Result<bool> AreOnOneHost(const GlooRendezvous& rendezvous) {
  const KeyValues& store = rendezvous.store;
  if (rendezvous.size == 1) return true;
  PENSTOCK_RETURN_IF_ERROR(store.set(StrCat("address-", rendezvous.rank), rendezvous.address));
  if (rendezvous.rank == 0) {
    bool one = true;
    for (int rank = 1; rank < rendezvous.size; ++rank) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::string address, store.get(StrCat("address-", rank)));
      one = one && address == rendezvous.address;
    }
    PENSTOCK_RETURN_IF_ERROR(store.set("one-host", one ? "yes" : "no"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string answer, store.get("one-host"));
  return answer == "yes";
}

}  // namespace

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
  PENSTOCK_ASSIGN_OR_RETURN(const bool one_host, AreOnOneHost(rendezvous));
  RingOptions options{.report_after = rendezvous.report_after, .names = rendezvous.names};
  if (one_host) options.piece_bytes = kPieceBytesOfOneHost;
  return std::unique_ptr<CollectiveGroup>(std::make_unique<QueuedGroup>(
      std::make_unique<RingBackend>("gloo", std::move(links), options), rendezvous.trace_name));
}

}  // namespace penstock::collective
