#include "executor/collective/rendezvous/join_facts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "executor/transport/address.h"
#include "framework/roles/collective_views.h"

namespace penstock::rendezvous {
namespace {

template <typename... Parts>
Status BadFacts(const Parts&... parts) {
  return InvalidArgument("E-rendezvous-facts", parts...);
}

// What every source must keep to. `who` says it.
Status CheckRanks(std::string_view who, const JoinFacts& facts) {
  const int ranks = static_cast<int>(facts.addresses.size());
  if (ranks == 0) return BadFacts(who, " names no ranks");
  if (facts.rank < 0 || facts.rank >= ranks)
    return BadFacts(who, ": rank ", facts.rank, " is out of range; there are ", ranks, " ranks");
  std::map<std::string_view, int> first;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string& address = facts.addresses[static_cast<std::size_t>(rank)];
    if (address.rfind(':') == std::string::npos)
      return BadFacts(who, ": address ", Quote(address), " of rank ", rank, " is not host:port");
    const auto [at, added] = first.emplace(address, rank);
    if (!added)
      return BadFacts(who, ": address ", Quote(address), " is of ranks ", at->second, " and ", rank);
  }
  return OkStatus();
}

Result<JoinFacts> FactsOfAllRings(const roles::AllRingsView& op) {
  JoinFacts facts;
  facts.addresses.assign(op.addresses().begin(), op.addresses().end());
  facts.rank = op.rank();
  if (op.rings() < 1) return BadFacts("gen_nccl_id: nccl_comm_num is ", op.rings(), "; at least 1 is needed");
  facts.rings.clear();
  for (int ring = 0; ring < op.rings(); ++ring) facts.rings.push_back(ring);
  facts.hierarchical = op.hierarchical();
  facts.group_ranks = op.group_ranks() > 1 ? op.group_ranks() : 0;
  PENSTOCK_RETURN_IF_ERROR(CheckRanks("gen_nccl_id", facts));
  return facts;
}

Result<JoinFacts> FactsOfRingId(const roles::RingIdView& op) {
  JoinFacts facts;
  facts.addresses.assign(op.others().begin(), op.others().end());
  facts.rank = op.rank();
  if (facts.rank < 0 || facts.rank > static_cast<int>(facts.addresses.size())) {
    return BadFacts("c_gen_nccl_id: rank ", facts.rank, " is out of range; there are ",
                    facts.addresses.size() + 1, " ranks");
  }
  facts.addresses.insert(facts.addresses.begin() + facts.rank, op.address());
  PENSTOCK_RETURN_IF_ERROR(CheckRanks("c_gen_nccl_id", facts));
  return facts;
}

// Reads the ops of a program whose rings are made one by one.
class RingsByOps {
 public:
  Status AddId(const roles::RingIdView& op) {
    PENSTOCK_ASSIGN_OR_RETURN(JoinFacts facts, FactsOfRingId(op));
    if (facts_ && (facts_->addresses != facts.addresses || facts_->rank != facts.rank)) {
      return BadFacts("c_gen_nccl_id joins rank ", facts.rank, " of ", Join(facts.addresses, ","),
                      ", and another ring rank ", facts_->rank, " of ", Join(facts_->addresses, ","));
    }
    facts_ = std::move(facts);
    ids_.insert(op.id());
    return OkStatus();
  }
  Status AddRing(const roles::RingView& op) {
    if (!ids_.contains(op.id()))
      return BadFacts("c_comm_init: no c_gen_nccl_id before it makes the id ", Quote(op.id()));
    if (op.rank() != facts_->rank || op.ranks() != static_cast<int>(facts_->addresses.size())) {
      return BadFacts("c_comm_init is for rank ", op.rank(), " of ", op.ranks(), ", its id for rank ",
                      facts_->rank, " of ", facts_->addresses.size());
    }
    if (!rings_.insert(op.ring()).second) return BadFacts("c_comm_init makes ring ", op.ring(), " twice");
    return OkStatus();
  }
  std::optional<JoinFacts> Take() {
    if (!facts_ || rings_.empty()) return std::nullopt;
    facts_->rings.assign(rings_.begin(), rings_.end());
    return std::move(facts_);
  }

 private:
  std::optional<JoinFacts> facts_;
  std::set<std::string, std::less<>> ids_;
  std::set<int> rings_;
};

std::optional<int> NumberIn(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The rank that the environment says; the launcher says it twice.
Result<int> RankIn(const Environment& environment, const std::vector<std::string>& addresses) {
  const std::string id = environment("PADDLE_TRAINER_ID"), own = environment("PADDLE_CURRENT_ENDPOINT");
  const auto at = std::find(addresses.begin(), addresses.end(), own);
  if (!own.empty() && at == addresses.end()) {
    return BadFacts("PADDLE_CURRENT_ENDPOINT ", Quote(own), " is not in PADDLE_TRAINER_ENDPOINTS ",
                    Quote(Join(addresses, ",")));
  }
  if (id.empty()) {
    if (own.empty()) return BadFacts("neither PADDLE_TRAINER_ID nor PADDLE_CURRENT_ENDPOINT is set");
    return static_cast<int>(at - addresses.begin());
  }
  const std::optional<int> rank = NumberIn(id);
  if (!rank) return BadFacts("PADDLE_TRAINER_ID is ", Quote(id), ", which is no number");
  if (!own.empty() && at - addresses.begin() != *rank) {
    return BadFacts("PADDLE_TRAINER_ID is ", *rank, ", but PADDLE_CURRENT_ENDPOINT ", Quote(own),
                    " is the address of rank ", at - addresses.begin());
  }
  return *rank;
}

Ring MakeRing(int number, RingLevel level, int group, std::vector<int> members, int self) {
  const auto at = std::find(members.begin(), members.end(), self);
  const int rank = static_cast<int>(at - members.begin());
  return {.number = number, .level = level, .group = group, .members = std::move(members), .rank = rank};
}

}  // namespace

Result<std::optional<JoinFacts>> FactsOfProgram(const Program& startup) {
  RingsByOps rings;
  for (const OpEntry& entry : startup.main().ops()) {
    const Op& op = *entry.op;
    switch (roles::JoiningOf(op)) {
      case roles::Joining::kNone:
        break;
      case roles::Joining::kAllRings: {
        PENSTOCK_ASSIGN_OR_RETURN(JoinFacts facts, FactsOfAllRings(roles::AllRingsView(op)));
        return std::optional(std::move(facts));
      }
      case roles::Joining::kRingId:
        PENSTOCK_RETURN_IF_ERROR(rings.AddId(roles::RingIdView(op)));
        break;
      case roles::Joining::kRing:
        PENSTOCK_RETURN_IF_ERROR(rings.AddRing(roles::RingView(op)));
        break;
      case roles::Joining::kDevices: {
        JoinFacts facts;
        facts.rings = {roles::RingView(op).ring()};
        facts.of_devices = true;
        return std::optional(std::move(facts));
      }
    }
  }
  return rings.Take();
}

Result<std::optional<JoinFacts>> FactsOfEnvironment(const Environment& environment) {
  const std::string endpoints = environment("PADDLE_TRAINER_ENDPOINTS");
  if (endpoints.empty()) return std::optional<JoinFacts>();
  JoinFacts facts;
  for (const std::string& address : Split(endpoints, ',')) facts.addresses.emplace_back(StripSpace(address));
  PENSTOCK_ASSIGN_OR_RETURN(facts.rank, RankIn(environment, facts.addresses));
  const std::string count = environment("PADDLE_TRAINERS_NUM");
  if (!count.empty() && NumberIn(count) != static_cast<int>(facts.addresses.size())) {
    return BadFacts("PADDLE_TRAINERS_NUM is ", count, ", but PADDLE_TRAINER_ENDPOINTS names ",
                    facts.addresses.size(), " ranks");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckRanks("PADDLE_TRAINER_ENDPOINTS", facts));
  return std::optional(std::move(facts));
}

std::string Ring::Key() const {
  const std::string key = StrCat("ring/", number);
  if (level == RingLevel::kInner) return StrCat(key, "/inner/", group);
  return level == RingLevel::kOuter ? StrCat(key, "/outer") : key;
}

Result<std::vector<std::vector<int>>> GroupRanks(const std::vector<std::string>& addresses, int size) {
  std::vector<std::vector<int>> groups;
  std::map<std::string, std::size_t> by_host;
  const int ranks = static_cast<int>(addresses.size());
  for (int rank = 0; rank < ranks; ++rank) {
    std::size_t group = 0;
    if (size > 0) {
      group = static_cast<std::size_t>(rank / size);
    } else {
      const std::string host = transport::HostOf(addresses[static_cast<std::size_t>(rank)]);
      group = by_host.emplace(host, by_host.size()).first->second;
    }
    if (group == groups.size()) groups.emplace_back();
    groups[group].push_back(rank);
  }
  if (size > 0 && (ranks % size != 0 || ranks <= size)) {
    return InvalidArgument("E-rendezvous-groups", ranks, " ranks do not make several groups of ", size,
                           " (hierarchical_allreduce_inter_nranks)");
  }
  return groups;
}

Result<Membership> MakeMembership(const JoinFacts& facts) {
  Membership job{.addresses = facts.addresses, .rank = facts.rank, .rings = {}};
  if (facts.of_devices) {
    for (const int number : facts.rings) job.rings.push_back({.number = number, .members = {0}});
    return job;
  }
  PENSTOCK_RETURN_IF_ERROR(CheckRanks("a job", facts));
  std::vector<int> all(facts.addresses.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = static_cast<int>(rank);
  std::vector<std::vector<int>> groups;
  if (facts.hierarchical) {
    PENSTOCK_ASSIGN_OR_RETURN(groups, GroupRanks(facts.addresses, facts.group_ranks));
  }
  std::vector<int> leaders;
  leaders.reserve(groups.size());
  for (const std::vector<int>& group : groups) leaders.push_back(group.front());
  for (const int number : facts.rings) {
    job.rings.push_back(MakeRing(number, RingLevel::kFlat, 0, all, facts.rank));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const bool mine = std::find(groups[g].begin(), groups[g].end(), facts.rank) != groups[g].end();
      if (mine)
        job.rings.push_back(MakeRing(number, RingLevel::kInner, static_cast<int>(g), groups[g], facts.rank));
      if (mine && groups[g].front() == facts.rank)
        job.rings.push_back(MakeRing(number, RingLevel::kOuter, 0, leaders, facts.rank));
    }
  }
  return job;
}

}  // namespace penstock::rendezvous
