#include "executor/pserver/machine/sum_exchange.h"

#include <algorithm>
#include <utility>

namespace penstock::pserver {

SumExchange::SumExchange(std::size_t chunks, int servers, int self)
    : chunks_(chunks), self_(self), servers_(static_cast<std::size_t>(servers)) {}

bool SumExchange::Measured() {
  ++measured_;
  return all_measured();
}

bool SumExchange::Take(int server, std::uint64_t step, Payload sums) {
  if (step > over_ + 1) return false;
  if (step < over_) return true;  // a repeat
  std::optional<Payload>& place = step == over_ ? At(server).now : At(server).next;
  if (!place) place = std::move(sums);
  return true;
}

void SumExchange::Taken(int server, std::uint64_t step) {
  const std::uint64_t told_below = over_ + (all_measured() ? 1 : 0);
  At(server).taken_below = std::max(At(server).taken_below, std::min(step + 1, told_below));
}

bool SumExchange::whole() const { return all_measured() && !begun_ && Lacks().empty(); }

std::vector<Payload> SumExchange::Begin() {
  begun_ = true;
  std::vector<Payload> sums;
  for (const Other& other : servers_) sums.push_back(other.now.value_or(Payload()));
  return sums;
}

void SumExchange::End() {
  ++over_;
  measured_ = 0;
  begun_ = false;
  for (Other& other : servers_) other.now = std::exchange(other.next, std::nullopt);
}

std::vector<int> SumExchange::Lacks() const {
  std::vector<int> lacking;
  for (int server = 0; server < static_cast<int>(servers_.size()); ++server) {
    if (all_measured() && server != self_ && !At(server).now) lacking.push_back(server);
  }
  return lacking;
}

bool SumExchange::settled() const {
  const std::uint64_t told_below = over_ + (all_measured() ? 1 : 0);
  for (int server = 0; server < static_cast<int>(servers_.size()); ++server) {
    if (server != self_ && !At(server).completed && At(server).taken_below < told_below) return false;
  }
  if (!all_measured()) return true;
  const std::vector<int> lacking = Lacks();
  return std::any_of(lacking.begin(), lacking.end(), [&](int server) { return completed(server); });
}

}  // namespace penstock::pserver
