// What a mode of asynchronous training keeps beside the memory of a chunk: the part of a mode that needs
// values, where an UpdatePolicy (machine/update_policy.h) decides without them. The ChunkStore reports what
// happens to the chunk. This class is the policy of a mode that keeps nothing.
//
// Not thread-safe: used on the queue of the chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/tensor/tensor.h"

namespace penstock::pserver {

class ChunkPolicy {
 public:
  virtual ~ChunkPolicy() = default;

  // The trainers have set this value before their first step.
  virtual void Begin(const Tensor& /*value*/) {}
  // The block will run on a gradient of this trainer.
  virtual void Merge(int /*trainer*/) {}

  // An earlier value of the chunk, after so many updates.
  struct Earlier {
    const Tensor* value = nullptr;
    std::uint64_t updates = 0;
  };
  // The trainer requests this version of the chunk, which is `now` after `updates` updates. Returns what it
  // gets instead of `now`, if it must get an earlier value; valid until the next call.
  virtual std::optional<Earlier> Read(int /*trainer*/, std::uint64_t /*version*/, const Tensor& /*now*/,
                                      std::uint64_t /*updates*/) {
    return std::nullopt;
  }

  // Whether trainers may ask which rows were updated. From any thread.
  virtual bool NotesRows() const { return false; }
  // The block has run on a sparse gradient of these rows. Only if NotesRows(), as the next.
  virtual void Updated(std::span<const std::int64_t> /*rows*/) {}
  // Every row counts as updated.
  virtual void UpdatedAll() {}
  // The rows updated since the trainer's request of a lower version, ascending.
  virtual std::vector<std::int64_t> TakeRows(int /*trainer*/, std::uint64_t /*version*/) { return {}; }
};

}  // namespace penstock::pserver
