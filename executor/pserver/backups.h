// Delay compensation (DC-ASGD): what each trainer has read of a chunk. The update block corrects a gradient
// by what has changed since the trainer that sent it read the chunk, g + lambda * g * g * (w - w_then); how
// is the program's business.
//
//   Backups backups({rows_of_trainer_0, rows_of_trainer_1}, whose);
//   backups.Keep(1, 7, chunk, 20);     // trainer 1 pulls version 7; the chunk has had 20 updates
//   backups.SetWhose(1);               // the block works on a gradient of trainer 1
//
// Promise: a trainer's gradient of a step is corrected by the bytes that its last pull before that gradient
// gave it. A repeated question is given the same bytes again, whatever has happened since; so is one that
// comes after a later question, whose answer nobody waits for any more. Not thread-safe: of a chunk's queue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/tensor/tensor.h"

namespace penstock::pserver {

class Backups {
 public:
  // By trainer, the chunk's rows of the variables that the block reads; they begin as the startup program
  // made them. `whose`: one int64, by which the block finds the trainer.
  Backups(std::vector<Tensor> rows, Tensor whose);

  // The trainer asks for this version of the chunk, which is `now` and has had so many updates. It gets
  // of(trainer); of how many updates that is.
  std::uint64_t Keep(int trainer, std::uint64_t version, const Tensor& now, std::uint64_t updates);
  const Tensor& of(int trainer) const { return kept_[static_cast<std::size_t>(trainer)].rows; }
  // All trainers begin from this value, which they have set.
  void Reset(const Tensor& value);
  void SetWhose(int trainer) { whose_.Data<std::int64_t>()[0] = trainer; }

 private:
  struct Kept {
    Tensor rows;
    std::optional<std::uint64_t> version;  // as asked for; nothing: the trainer has read nothing yet
    std::uint64_t updates = 0;
  };
  std::vector<Kept> kept_;  // by trainer
  Tensor whose_;
};

}  // namespace penstock::pserver
