// Whether pservers or all-reduce sum the gradients of a parameter, and how a plan prints its choices:
//
//   exchange w by allreduce: allreduce 41943 ns, pserver 66060 ns
//   exchange b by pserver: allreduce 120000 ns, pserver 80000 ns
//   exchange emb by pserver: sparse
//   exchange w by pserver: one trainer
//
// The times are the cost model's, for one step: how long the exchange of this parameter keeps the busiest
// link busy. A sparse parameter stays on pservers, because all-reduce would send all of its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::plan {

// How dense parameters are updated. kPserver: by pservers. kAllreduce: by every trainer alike, after an
// all-reduce of the gradients over rings; pservers keep sparse parameters (mode hybrid). kAuto: for each
// dense parameter the way that is faster according to the cost model (cost/choose_exchange.h); the plan
// prints the choice and the reason.
enum class DenseExchange { kPserver, kAllreduce, kAuto };
std::string_view DenseExchangeName(DenseExchange exchange);  // "pserver", "allreduce", "auto"
std::optional<DenseExchange> DenseExchangeFromName(std::string_view name);

struct ExchangeChoice {
  enum class Reason { kTimes, kSparse, kOneTrainer };
  std::string param;
  DenseExchange way = DenseExchange::kPserver;  // never kAuto
  Reason reason = Reason::kSparse;
  std::int64_t allreduce_ns = 0, pserver_ns = 0;  // for kTimes only
  friend bool operator==(const ExchangeChoice&, const ExchangeChoice&) = default;
};

}  // namespace penstock::plan
