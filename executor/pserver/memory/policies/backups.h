// Delay compensation (DC-ASGD): keeps what each trainer has read of a chunk. The update block corrects a
// gradient by the chunk's change since its trainer read it, g + lambda * g * g * (w - w_then); the program
// defines the formula.
//
//   Backups backups({rows_of_trainer_0, rows_of_trainer_1}, whose);
//   backups.Keep(1, 7, chunk, 20);     // trainer 1 pulls version 7; the chunk has had 20 updates
//   backups.SetWhose(1);               // the block now works on a gradient of trainer 1
//
// Promise: a trainer's gradient of a step is corrected by the bytes that its last pull before it returned. A
// repeated request gets the same bytes again, whatever has happened since; so does a request that arrives
// after a later one, whose answer is no longer awaited. Not thread-safe: use it from the chunk's queue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/tensor/tensor.h"

namespace penstock::pserver {

class Backups {
 public:
  // By trainer, the chunk's rows of the variables that the block reads, with their values from the startup
  // program. `whose`: one int64 from which the block learns the trainer.
  Backups(std::vector<Tensor> rows, Tensor whose);

  // The trainer requests this version of the chunk, whose current value is `now` after `updates` updates. It
  // gets of(trainer); returns the number of updates in that.
  std::uint64_t Keep(int trainer, std::uint64_t version, const Tensor& now, std::uint64_t updates);
  const Tensor& of(int trainer) const { return kept_[static_cast<std::size_t>(trainer)].rows; }
  // All trainers start from this value, which they have set.
  void Reset(const Tensor& value);
  void SetWhose(int trainer) { whose_.Data<std::int64_t>()[0] = trainer; }

 private:
  struct Kept {
    Tensor rows;
    std::optional<std::uint64_t> version;  // as requested; nullopt: the trainer has read nothing yet
    std::uint64_t updates = 0;
  };
  std::vector<Kept> kept_;  // by trainer
  Tensor whose_;
};

}  // namespace penstock::pserver
