// What a job costs in bytes and messages: a pure function of a Job. Times on a network are expect.h's.
//
//   PENSTOCK_ASSIGN_OR_RETURN(CostReport cost, EstimateCost(job, {.rows_per_step = 13312}));
//   cost.pservers[0].parameter_bytes        bytes of the parameters that it holds
//   cost.pservers[0].traffic.up.bytes       bytes that all trainers send to it in one exchange
//   cost.trainers[0].to[0].up.messages      messages of trainer 0 among these
//
// Units: bytes of payload. Messages are calls by a trainer, each counted once, in the direction of its
// payload (gradients, ids, counters and barriers up; parameters and rows down). There is one exchange per
// step, except in geo mode and for ranks that average only after several steps.
//
// Ring all-reduce of S bytes among n ranks: each rank sends and receives 2(n-1) messages of S/n bytes,
// 2S(n-1)/n in total; n-1 of the messages reduce and n-1 distribute the result (Patarasuk and Yuan, Bandwidth
// optimal all-reduce algorithms, 2009). With k ranks per host, k-1 of them send S bytes to the first rank and
// receive S bytes back, and the first ranks form the ring.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "transpiler/cost/job.h"

namespace penstock::cost {

struct CostOptions {
  // Rows of each table that one trainer touches in an exchange; capped at the number of the table's rows.
  std::optional<std::int64_t> rows_per_step;
  // Examples in one trainer's step. Without rows_per_step, gives the rows: the ids looked up per example.
  std::optional<std::int64_t> batch;
  std::optional<int> steps_per_exchange;  // replaces the job's
};

struct Volume {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  Volume& operator+=(const Volume& other);
  Volume Times(std::int64_t count) const { return {messages * count, bytes * count}; }
  friend bool operator==(const Volume&, const Volume&) = default;
};

// The volume that each rank in a ring of `ranks` sends to reduce `reduced.messages` variables of
// `reduced.bytes` in total. It receives the same volume.
Volume RingVolume(const Volume& reduced, std::int64_t ranks);

// `up` goes to the pserver, `down` comes from it. `overlaps` is the part of `up` that may travel during the
// backward pass.
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
  Volume told;      // measures sent to other pservers, in one exchange
  Volume heard;     // measures received from other pservers, in one exchange
};

struct TrainerCost {
  int count = 1;            // the number of trainers like this one, itself included
  std::vector<Traffic> to;  // by pserver
  Traffic total;
  // All-reduce: the volume that this rank sends between hosts; it receives the same. With ranks_per_host,
  // only the first rank of each host takes part. ring_overlaps is the part that may travel during the
  // backward pass.
  Volume ring, ring_overlaps;
  Volume inside_host;  // the volume that it sends to the first rank of its host, and receives from it
  JobMemory memory;
};

// The traffic of a table, per touched row.
struct TableCost {
  std::string param;
  std::int64_t rows = 0, row_bytes = 0;
  bool remote = false;
  std::int64_t up_bytes_per_row = 0, down_bytes_per_row = 0;  // of one trainer
  std::optional<std::int64_t> rows_touched;                   // if unknown, no total includes the table
};

// How unevenly bytes are spread over pservers.
struct Imbalance {
  double factor = 1;  // largest / mean; 1 if there are no bytes
  int largest = 0;    // the pserver with the most bytes
  std::int64_t largest_bytes = 0;
  double mean_bytes = 0;
};
inline constexpr double kImbalanceHint = 1.5;  // above it, reports suggest another placement
Imbalance ImbalanceOf(const std::vector<std::int64_t>& bytes);

struct CostReport {
  std::vector<PserverCost> pservers;
  std::vector<TrainerCost> trainers;  // by Job::present
  std::vector<TableCost> tables;
  Imbalance parameters;  // of the bytes held
  Imbalance traffic;     // of the bytes transferred
  // As `parameters`, if the same pieces were placed largest first, each on the pserver with the fewest bytes.
  Imbalance by_size;
  bool by_size_helps = false;  // `parameters` exceeds kImbalanceHint, and by_size is at least a tenth lower
  std::int64_t largest_piece_bytes = 0;
  enum class Stays { kNot, kOneRow, kUpdatedAsOne } largest_piece_stays = Stays::kNot;  // why not sliced
  std::string largest_piece;
  int steps_per_exchange = 1;
};

// kInvalidArgument E-cost-options (a number under 0), E-cost-size (more bytes than 63 bits count).
Result<CostReport> EstimateCost(const Job& job, const CostOptions& options);

}  // namespace penstock::cost
