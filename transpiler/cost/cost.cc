#include "transpiler/cost/cost.h"

#include <algorithm>
#include <numeric>

namespace penstock::cost {
namespace {

constexpr double kBytesMax = 4e18;  // under 63 bits

// floor(a * b / c) for c > 0, where a * b needs more than 64 bits.
std::int64_t MulDiv(std::int64_t a, std::int64_t b, std::int64_t c) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(static_cast<Wide>(a) * b / c);
}

std::optional<std::int64_t> RowsTouched(const JobTable& table, const CostOptions& options) {
  std::optional<std::int64_t> rows = options.rows_per_step;
  if (!rows && options.batch && table.ids + table.ids_per_example > 0) {
    rows = table.ids + *options.batch * table.ids_per_example;
  }
  if (rows) rows = std::min(*rows, table.rows);
  return rows;
}

class Estimator {
 public:
  Estimator(const Job& job, const CostOptions& options) : job_(job), options_(options) {}

  CostReport Run() {
    out_.steps_per_exchange = options_.steps_per_exchange.value_or(job_.steps_per_exchange);
    AddPservers();
    AddTables();
    for (std::size_t i = 0; i < job_.present.size(); ++i) AddTrainer(i);
    AddImbalance();
    return std::move(out_);
  }

 private:
  void AddPservers() {
    for (std::size_t i = 0; i < job_.pservers.size(); ++i) {
      const JobMemory& memory = job_.pserver_memory[i];
      out_.pservers.push_back({.address = job_.pservers[i], .other_bytes = memory.other, .traffic = {}});
    }
    for (const JobTelling& telling : job_.tellings) {
      const auto teller = static_cast<std::size_t>(telling.pserver);
      out_.pservers[teller].told = Volume{1, telling.bytes}.Times(telling.peers);
      for (const JobTelling& other : job_.tellings) {
        if (other.pserver != telling.pserver) out_.pservers[teller].heard += {1, other.bytes};
      }
    }
    for (const JobPiece& piece : job_.pieces) {
      PserverCost& pserver = out_.pservers[static_cast<std::size_t>(piece.pserver)];
      ++pserver.pieces;
      pserver.parameter_bytes += piece.value_bytes;
      pserver.gradient_bytes += piece.gradient_bytes;
      pserver.state_bytes += piece.state_bytes;
      if (piece.value_bytes <= out_.largest_piece_bytes) continue;
      out_.largest_piece_bytes = piece.value_bytes;
      out_.largest_piece = piece.name;
      out_.largest_piece_stays = piece.rows() <= 1    ? CostReport::Stays::kOneRow
                                 : !piece.elementwise ? CostReport::Stays::kUpdatedAsOne
                                                      : CostReport::Stays::kNot;
    }
  }

  void AddTables() {
    for (const JobTable& table : job_.tables) {
      out_.tables.push_back({.param = table.param,
                             .rows = table.rows,
                             .row_bytes = table.row_bytes,
                             .remote = table.remote,
                             .rows_touched = RowsTouched(table, options_)});
    }
    if (job_.present.empty()) return;
    // A row lies in one piece, so that the messages about one piece say what a row costs.
    for (const JobMessage& message : job_.present.front().messages) {
      if (message.table < 0 || message.row_begin != 0) continue;
      TableCost& table = out_.tables[static_cast<std::size_t>(message.table)];
      (message.up ? table.up_bytes_per_row : table.down_bytes_per_row) += message.bytes_per_row;
    }
  }

  std::int64_t BytesOf(const JobMessage& message) const {
    if (message.table < 0) return message.TravellingBytes();
    const auto index = static_cast<std::size_t>(message.table);
    const std::optional<std::int64_t>& touched = out_.tables[index].rows_touched;
    const std::int64_t rows = job_.tables[index].rows;
    if (!touched || rows == 0) return message.bytes;
    // Assumes that rows are spread evenly; rounds so that the pieces' rows add up to the total.
    const std::int64_t here =
        MulDiv(*touched, message.row_end, rows) - MulDiv(*touched, message.row_begin, rows);
    return message.bytes + here * message.bytes_per_row;
  }

  void AddTrainer(std::size_t index) {
    const JobTrainer& trainer = job_.present[index];
    TrainerCost cost;
    cost.count = index == 0 ? std::max(1, job_.trainers - static_cast<int>(job_.present.size()) + 1) : 1;
    cost.memory = trainer.memory;
    cost.to.resize(job_.pservers.size());
    for (const JobMessage& message : trainer.messages) {
      const Volume volume{1, BytesOf(message)};
      Traffic& to = cost.to[static_cast<std::size_t>(message.pserver)];
      (message.up ? to.up : to.down) += volume;
      if (message.overlaps) to.overlaps += volume;
    }
    for (std::size_t i = 0; i < cost.to.size(); ++i) {
      cost.total += cost.to[i];
      out_.pservers[i].traffic += cost.to[i].Times(cost.count);
    }
    AddRing(trainer, cost);
    out_.trainers.push_back(std::move(cost));
  }

  void AddRing(const JobTrainer& trainer, TrainerCost& cost) const {
    const std::int64_t per_host = std::max(1, job_.ranks_per_host);
    const std::int64_t in_ring = job_.trainers / per_host;
    Volume all, overlaps;
    for (const JobReduction& reduction : trainer.reductions) {
      all += {1, reduction.bytes};
      if (reduction.overlaps) overlaps += {1, reduction.bytes};
    }
    cost.ring = RingVolume(all, in_ring);
    cost.ring_overlaps = RingVolume(overlaps, in_ring);
    if (per_host > 1) cost.inside_host = all;
  }

  void AddImbalance() {
    std::vector<std::int64_t> held, passing;
    for (const PserverCost& pserver : out_.pservers) {
      held.push_back(pserver.parameter_bytes);
      passing.push_back(pserver.traffic.up.bytes + pserver.traffic.down.bytes);
    }
    out_.parameters = ImbalanceOf(held);
    out_.traffic = ImbalanceOf(passing);
    std::vector<std::int64_t> pieces, loads(out_.pservers.size(), 0);
    for (const JobPiece& piece : job_.pieces) pieces.push_back(piece.value_bytes);
    std::sort(pieces.rbegin(), pieces.rend());
    if (loads.empty()) return;
    for (const std::int64_t bytes : pieces) *std::min_element(loads.begin(), loads.end()) += bytes;
    out_.by_size = ImbalanceOf(loads);
    const double now = out_.parameters.factor;
    out_.by_size_helps = now > kImbalanceHint && out_.by_size.factor < 0.9 * now;
  }

  const Job& job_;
  const CostOptions& options_;
  CostReport out_;
};

Status CheckOptions(const Job& job, const CostOptions& options) {
  struct Count {
    const char* name;
    std::int64_t given, least;
  };
  for (const Count& count : {Count{"rows per step", options.rows_per_step.value_or(0), 0},
                             Count{"batch", options.batch.value_or(0), 0},
                             Count{"steps per exchange", options.steps_per_exchange.value_or(1), 1}}) {
    if (count.given >= count.least) continue;
    return InvalidArgument("E-cost-options", "cost: ", count.name, " must be at least ", count.least,
                           ", not ", count.given);
  }
  // Bytes transferred in an exchange plus bytes held, in a type that does not overflow.
  double bytes = 0;
  for (const JobPiece& piece : job.pieces) {
    bytes += static_cast<double>(piece.value_bytes + piece.gradient_bytes) +
             static_cast<double>(piece.state_bytes);
  }
  for (const JobTrainer& trainer : job.present) {
    for (const JobMessage& message : trainer.messages) {
      const double rows = message.table < 0
                              ? 0
                              : static_cast<double>(job.tables[static_cast<std::size_t>(message.table)].rows);
      bytes += (static_cast<double>(message.bytes) + rows * static_cast<double>(message.bytes_per_row)) *
               job.trainers;
    }
    for (const JobReduction& reduction : trainer.reductions) {
      bytes += 2.0 * static_cast<double>(reduction.bytes) * job.trainers;
    }
  }
  if (bytes < kBytesMax && static_cast<double>(options.batch.value_or(0)) < 1e12) return OkStatus();
  return InvalidArgument("E-cost-size", "cost: more bytes than can be counted");
}

}  // namespace

Volume& Volume::operator+=(const Volume& other) {
  messages += other.messages;
  bytes += other.bytes;
  return *this;
}

Volume RingVolume(const Volume& reduced, std::int64_t ranks) {
  const std::int64_t bytes = MulDiv(2 * reduced.bytes, ranks - 1, ranks);
  const bool whole = MulDiv(bytes, ranks, 1) == MulDiv(2 * reduced.bytes, ranks - 1, 1);
  return {2 * (ranks - 1) * reduced.messages, bytes + (whole ? 0 : 1)};
}

Traffic& Traffic::operator+=(const Traffic& other) {
  up += other.up;
  overlaps += other.overlaps;
  down += other.down;
  return *this;
}

Imbalance ImbalanceOf(const std::vector<std::int64_t>& bytes) {
  Imbalance out;
  if (bytes.empty()) return out;
  const auto largest = std::max_element(bytes.begin(), bytes.end());
  out.largest = static_cast<int>(largest - bytes.begin());
  out.largest_bytes = *largest;
  out.mean_bytes = static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0})) /
                   static_cast<double>(bytes.size());
  if (out.mean_bytes > 0) out.factor = static_cast<double>(out.largest_bytes) / out.mean_bytes;
  return out;
}

Result<CostReport> EstimateCost(const Job& job, const CostOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(CheckOptions(job, options));
  return Estimator(job, options).Run();
}

}  // namespace penstock::cost
