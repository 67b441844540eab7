#include "executor/collective/gloo/gloo.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "executor/collective/gloo/gloo_links.h"
#include "executor/collective/group/queued_group.h"
#include "executor/collective/ring/ring_backend.h"
#include "framework/runtime/process_id.h"

namespace penstock::collective {
namespace {

// Where ranks share processors, the processor time of more messages exceeds what smaller ones save.
constexpr std::size_t kPieceBytesOfOneHost = std::size_t{4} << 20;

struct Member {
  std::string address;
  std::string process;  // DescribeThisProcess
};

// Returns the members by rank. Rank 0 collects them for all, so that each of N ranks asks the store once.
Result<std::vector<Member>> Members(const GlooRendezvous& rendezvous) {
  const KeyValues& store = rendezvous.store;
  const auto line_of_this = [&] { return StrCat(rendezvous.address, "\t", DescribeThisProcess()); };
  std::string all = line_of_this();
  if (rendezvous.rank > 0) {
    PENSTOCK_RETURN_IF_ERROR(store.set(StrCat("member-", rendezvous.rank), line_of_this()));
    PENSTOCK_ASSIGN_OR_RETURN(all, store.get("members"));
  } else if (rendezvous.size > 1) {
    for (int rank = 1; rank < rendezvous.size; ++rank) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::string one, store.get(StrCat("member-", rank)));
      AppendTo(all, StrCat("\n", one));
    }
    PENSTOCK_RETURN_IF_ERROR(store.set("members", all));
  }
  std::vector<Member> members;
  for (const std::string& line : Split(all, '\n')) {
    const std::size_t tab = std::min(line.find('\t'), line.size());
    members.push_back({line.substr(0, tab), line.substr(std::min(tab + 1, line.size()))});
  }
  members.resize(static_cast<std::size_t>(rendezvous.size));
  return members;
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
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Member> members, Members(rendezvous));
  const bool one_host = std::ranges::all_of(
      members, [&](const Member& member) { return member.address == members.front().address; });
  RingOptions options{.report_after = rendezvous.report_after, .names = rendezvous.names};
  if (one_host) options.piece_bytes = kPieceBytesOfOneHost;
  options.state_of = [members = std::move(members)](int rank) {
    return StateOfProcess(members[static_cast<std::size_t>(rank)].process);
  };
  return std::unique_ptr<CollectiveGroup>(std::make_unique<QueuedGroup>(
      std::make_unique<RingBackend>("gloo", std::move(links), options), rendezvous.trace_name));
}

}  // namespace penstock::collective
