// Who adds up the gradients of a parameter, and how a plan that chose says so:
//
//   exchange w by allreduce: allreduce 41943 ns, pserver 66060 ns
//   exchange b by pserver: allreduce 120000 ns, pserver 80000 ns
//   exchange emb by pserver: sparse
//   exchange w by pserver: one trainer
//
// The times are of the cost model, for one step: how long the exchange of this parameter keeps the busiest
// link busy. A sparse parameter stays on pservers, since all-reduce would move all of its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::plan {

// Of dense parameters: pservers update them, or trainers add up their gradients over rings and update them
// alike, while pservers keep the sparse ones (mode hybrid). kAuto: for each of them what the cost model says
// is faster (cost/choose_exchange.h); the plan says which and why.
enum class DenseExchange { kPserver, kAllreduce, kAuto };
std::string_view DenseExchangeName(DenseExchange exchange);  // "pserver", "allreduce", "auto"
std::optional<DenseExchange> DenseExchangeFromName(std::string_view name);

struct ExchangeChoice {
  enum class Reason { kTimes, kSparse, kOneTrainer };
  std::string param;
  DenseExchange way = DenseExchange::kPserver;  // never kAuto
  Reason reason = Reason::kSparse;
  std::int64_t allreduce_ns = 0, pserver_ns = 0;  // kTimes alone
  friend bool operator==(const ExchangeChoice&, const ExchangeChoice&) = default;
};

}  // namespace penstock::plan
