#include "executor/collective/rendezvous/join_facts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace penstock::rendezvous {
namespace {

template <typename... Parts>
Status BadFacts(const Parts&... parts) {
  return InvalidArgument("E-rendezvous-facts", parts...);
}

// nullopt: the variable is not set. kInvalidArgument E-environment.
Result<std::optional<std::int64_t>> NumberIn(const Environment& environment, const char* name) {
  PENSTOCK_ASSIGN_OR_RETURN(const env::Value value, env::Parse(*env::FindSetting(name), environment(name)));
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? std::optional<std::int64_t>() : std::optional(*number);
}

// The rank according to the environment. The launcher sets it in two variables, which must agree.
Result<int> RankIn(const Environment& environment, const std::vector<std::string>& addresses) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> rank,
                            NumberIn(environment, "PADDLE_TRAINER_ID"));
  const std::string own = environment("PADDLE_CURRENT_ENDPOINT");
  const auto at = std::find(addresses.begin(), addresses.end(), own);
  if (!own.empty() && at == addresses.end()) {
    return BadFacts("PADDLE_CURRENT_ENDPOINT ", Quote(own), " is not in PADDLE_TRAINER_ENDPOINTS ",
                    Quote(Join(addresses, ",")));
  }
  if (!rank) {
    if (own.empty()) return BadFacts("neither PADDLE_TRAINER_ID nor PADDLE_CURRENT_ENDPOINT is set");
    return static_cast<int>(at - addresses.begin());
  }
  if (!own.empty() && at - addresses.begin() != *rank) {
    return BadFacts("PADDLE_TRAINER_ID is ", *rank, ", but PADDLE_CURRENT_ENDPOINT ", Quote(own),
                    " is the address of rank ", at - addresses.begin());
  }
  return static_cast<int>(*rank);
}

}  // namespace

Status CheckFacts(std::string_view who, const JoinFacts& facts) {
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

Result<std::optional<JoinFacts>> FactsOfEnvironment(const Environment& environment) {
  const std::string endpoints = environment("PADDLE_TRAINER_ENDPOINTS");
  if (endpoints.empty()) return std::optional<JoinFacts>();
  JoinFacts facts;
  for (const std::string& address : Split(endpoints, ',')) facts.addresses.emplace_back(StripSpace(address));
  PENSTOCK_ASSIGN_OR_RETURN(facts.rank, RankIn(environment, facts.addresses));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> count,
                            NumberIn(environment, "PADDLE_TRAINERS_NUM"));
  if (count && *count != static_cast<std::int64_t>(facts.addresses.size())) {
    return BadFacts("PADDLE_TRAINERS_NUM is ", *count, ", but PADDLE_TRAINER_ENDPOINTS names ",
                    facts.addresses.size(), " ranks");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckFacts("PADDLE_TRAINER_ENDPOINTS", facts));
  return std::optional(std::move(facts));
}

std::string Ring::Key() const { return StrCat("ring/", number); }

Result<std::vector<std::vector<int>>> GroupRanks(int ranks, int size) {
  if (size < 1 || ranks % size != 0 || ranks <= size) {
    return InvalidArgument("E-rendezvous-groups", ranks, " ranks do not make several groups of ", size,
                           " (hierarchical_allreduce_inter_nranks)");
  }
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(ranks / size));
  for (int rank = 0; rank < ranks; ++rank) groups[static_cast<std::size_t>(rank / size)].push_back(rank);
  return groups;
}

}  // namespace penstock::rendezvous
