// A trainer's own parts of the checkpoints of geo-SGD: what it has and no server does.
//
//   TrainerParts parts({.disk = &disk, .folder = "DIR", .run = "job7.0.0", .every = 5}, trainer);
//   if (parts.Keeps(7)) parts.Keep(7, deltas);       // those of its exchange 7
//   PENSTOCK_RETURN_IF_ERROR(parts.SaveIfDue({.exchanges = 8, .steps = 800}, [&] { return values; }));
//
//   PENSTOCK_ASSIGN_OR_RETURN(const TrainerParts::Saved saved, parts.Restore(6));   // in the next job
//   saved.deltas[0]           // those of exchange 6, which some server lacks
//
// The servers decide without the trainers which exchanges a checkpoint has, each for itself. After its next
// exchange a trainer finds their parts in the folder, which say how many of its exchanges each has, and adds
// its own: its variables after this exchange, and the deltas since the least of these numbers. A job that
// continues sends those deltas again; each server drops what it has. So no trainer waits for a checkpoint,
// and each delta counts once.
//
// Deltas are kept from the exchange at which the next checkpoint is due: it has all of this trainer that are
// earlier. So only a trainer that is ahead of others keeps more than a few, and waits for them when they are
// too many (is_full). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/writer.h"
#include "framework/runtime/disk.h"
#include "framework/tensor/variable.h"

namespace penstock::communicator {

struct PartOptions {
  Disk* disk = nullptr;     // null: no parts are written or read
  std::string folder;       // that of the servers' parts
  std::string run;          // names this start of the job, as the servers do
  std::uint64_t every = 0;  // exchanges from one checkpoint to the next; 0: none are made
  int keep = 2;             // whole checkpoints that are kept
  std::size_t most_bytes = std::size_t{1} << 30;  // of deltas
  // The name of the checkpoint from which the job continues; nullopt or 0: it begins.
  std::optional<std::uint64_t> resume = {};
};

class TrainerParts {
 public:
  struct Count {
    std::uint64_t exchanges = 0, steps = 0;  // of this trainer, in the job
  };
  using Values = std::vector<std::pair<std::string, Tensor>>;
  using Deltas = std::vector<std::pair<std::string, Variable>>;  // of one exchange, by variable
  struct Saved {
    Count count;
    std::map<std::string, Tensor> values;
    std::vector<std::map<std::string, Variable>> deltas;  // of the exchanges before count.exchanges
  };

  TrainerParts(PartOptions options, int trainer);

  bool continues() const { return options_.resume.value_or(0) > 0; }
  // Whether deltas of this exchange may be needed; then they are kept, copied, in the order of exchanges.
  bool Keeps(std::uint64_t exchange) const { return options_.every > 0 && exchange >= keeps_from_; }
  void Keep(std::uint64_t exchange, const Deltas& deltas);
  // After an exchange: writes a part of each checkpoint that lacks one of this trainer. E-file-write,
  // E-file-read.
  Status SaveIfDue(const Count& count, const std::function<Values()>& values);
  // No more deltas may be kept until SaveIfDue has found the next checkpoint.
  bool is_full() const { return kept_bytes_ >= options_.most_bytes; }
  std::uint64_t awaited() const { return (last_ / options_.every + 1) * options_.every; }  // its name
  // This trainer's part of the checkpoint from which the job continues, in which the servers have at least
  // `exchanges` of its exchanges. kDataLoss E-checkpoint-whole, E-checkpoint-damaged; E-checkpoint-differs.
  Result<Saved> Restore(std::uint64_t exchanges) const;

  // The trainer's own steps in that checkpoint; nullopt: it has no parts of trainers.
  static Result<std::optional<std::uint64_t>> StepsIn(const PartOptions& options, int trainer);

 private:
  struct Kept {
    std::uint64_t exchange = 0;
    Deltas deltas;
    std::size_t bytes = 0;
  };
  Status Write(const checkpoint::Found& found, std::uint64_t least, const Count& count, const Values& values);

  const PartOptions options_;
  const int trainer_;
  checkpoint::Writer writer_;
  std::uint64_t last_;        // the name of the newest checkpoint with a part of this trainer
  std::uint64_t keeps_from_;  // the first exchange that the next checkpoint may lack
  std::deque<Kept> kept_;     // from there on, or from the first one since
  std::size_t kept_bytes_ = 0;
};

}  // namespace penstock::communicator
