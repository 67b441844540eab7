// What a job costs in bytes and messages: a pure function of a Job. Times on a network are expect.h's.
//
//   PENSTOCK_ASSIGN_OR_RETURN(CostReport cost, EstimateCost(job, {.rows_per_step = 13312}));
//   cost.pservers[0].parameter_bytes        what it holds
//   cost.pservers[0].traffic.up.bytes       what all trainers send it in one exchange
//   cost.trainers[0].to[0].up.messages      of which trainer 0
//
// Units: bytes of payload; messages are calls of a trainer, each counted once, in the direction of its
// payload (gradients, ids, counters and barriers up; parameters and rows down). An exchange is a step, but in
// geo mode and for ranks that average only every so many steps.
//
// Ring all-reduce, n ranks, S bytes: each rank sends and receives 2(n-1) messages of S/n bytes, 2S(n-1)/n in
// all: n-1 that add up and n-1 that hand out (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms,
// 2009). With k ranks a host: k-1 of them hand S to the first and get S back, and the firsts form the ring.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "transpiler/cost/job.h"

namespace penstock::cost {

struct CostOptions {
  // Rows of each table that one trainer touches in an exchange, at most the table's.
  std::optional<std::int64_t> rows_per_step;
  // Examples of one trainer's step: says the rows, if rows_per_step does not, by what is looked up for each.
  std::optional<std::int64_t> batch;
  std::optional<int> steps_per_exchange;  // instead of the job's
};

struct Volume {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  Volume& operator+=(const Volume& other);
  Volume Times(std::int64_t count) const { return {messages * count, bytes * count}; }
  friend bool operator==(const Volume&, const Volume&) = default;
};

// What a rank of a ring of `ranks` sends, and gets as much of, to reduce variables of `reduced.bytes` in all,
// of which `reduced.messages` is the number.
Volume RingVolume(const Volume& reduced, std::int64_t ranks);

// `up` is to the pserver. Of it, `overlaps` may travel while the backward pass goes on.
struct Traffic {
  Volume up, overlaps, down;
  Traffic& operator+=(const Traffic& other);
  Traffic Times(std::int64_t count) const {
    return {up.Times(count), overlaps.Times(count), down.Times(count)};
  }
};

struct PserverCost {
  std::string address;
  int pieces = 0;
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0, other_bytes = 0;
  std::int64_t TotalBytes() const { return parameter_bytes + gradient_bytes + state_bytes + other_bytes; }
  Traffic traffic;  // with all trainers, in one exchange
  Volume told;      // to other pservers, in one exchange
  Volume heard;     // of other pservers, likewise
};

struct TrainerCost {
  int count = 1;            // how many trainers are like this one, itself included
  std::vector<Traffic> to;  // by pserver
  Traffic total;
  // All-reduce: what this rank sends between hosts, and gets as much of; with ranks_per_host, those that are
  // first on their host.
  Volume ring, ring_overlaps;
  Volume inside_host;  // what it sends to and gets from the first rank of its host
  JobMemory memory;
};

// Messages about a table's rows, for each row that is touched.
struct TableCost {
  std::string param;
  std::int64_t rows = 0, row_bytes = 0;
  bool remote = false;
  std::int64_t up_bytes_per_row = 0, down_bytes_per_row = 0;  // of one trainer
  std::optional<std::int64_t> rows_touched;                   // unknown: its bytes are in no other number
};

// How far the largest is above the mean.
struct Imbalance {
  double factor = 1;  // largest / mean; 1 if there is nothing
  int largest = 0;    // pserver
  std::int64_t largest_bytes = 0;
  double mean_bytes = 0;
};
inline constexpr double kImbalanceHint = 1.5;  // above it another placement is worth a thought
Imbalance ImbalanceOf(const std::vector<std::int64_t>& bytes);

struct CostReport {
  std::vector<PserverCost> pservers;
  std::vector<TrainerCost> trainers;  // by Job::present
  std::vector<TableCost> tables;
  Imbalance parameters;  // of the bytes held
  Imbalance traffic;     // of the bytes that pass
  // If the same pieces were placed by size, longest first, each to the pserver with the least.
  Imbalance by_size;
  bool by_size_helps = false;  // parameters is over kImbalanceHint, and by_size a tenth below it at least
  std::int64_t largest_piece_bytes = 0;
  enum class Stays { kNot, kOneRow, kUpdatedAsOne } largest_piece_stays = Stays::kNot;  // whole, and why
  std::string largest_piece;
  int steps_per_exchange = 1;
};

// kInvalidArgument E-cost-options (a number under 0), E-cost-size (more bytes than 63 bits count).
Result<CostReport> EstimateCost(const Job& job, const CostOptions& options);

}  // namespace penstock::cost
