// Updates a chunk of a key of a key-value store by a built-in optimizer, whose state it keeps.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const auto sgd, KeyUpdater::Make(optimizer, key, value.shape(), runner));
//   PENSTOCK_RETURN_IF_ERROR(sgd->Update(gradient, {.count = 1, .largest = 4}, value, runner));
//
// One call at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/kvstore/optimizer.h"
#include "executor/pserver/memory/lazy_block.h"
#include "executor/pserver/memory/table_copy.h"
#include "framework/roles/piece.h"
#include "framework/runtime/block_runner.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/variable.h"

namespace penstock::pserver {

class KeyUpdater {
 public:
  // The updates of a chunk of `shape` of the key; its gradients are selected rows if the piece is.
  static kvstore::KeyFacts FactsOf(const roles::PieceType& key, const Shape& shape);
  static Result<std::shared_ptr<KeyUpdater>> Make(std::shared_ptr<const kvstore::KeyOptimizer> optimizer,
                                                  const roles::PieceType& key, const Shape& shape,
                                                  BlockRunner& runner);

  // Takes the state of the same name and shape from one that is not used any more.
  void TakeState(KeyUpdater& from);

  const std::shared_ptr<const kvstore::KeyOptimizer>& optimizer() const { return optimizer_; }
  // The states for a checkpoint, and from one. kFailedPrecondition E-checkpoint-differs: a state is missing
  // there, or has another type.
  NamedTensors CopyStates() const;
  Status ContinueStates(const NamedTensors& states);

  struct Counts {
    std::uint64_t count = 1;    // updates of the key by this optimizer, this one included
    std::uint64_t largest = 1;  // of the key with most
  };
  // Changes `value` in place. `gradient`, a tensor or selected rows, is used up.
  Status Update(Variable gradient, const Counts& counts, Tensor& value, BlockRunner& runner);

 private:
  KeyUpdater(std::shared_ptr<const kvstore::KeyOptimizer> optimizer, std::string key,
             kvstore::KeyUpdate update)
      : optimizer_(std::move(optimizer)), key_(std::move(key)), update_(std::move(update)) {}

  const std::shared_ptr<const kvstore::KeyOptimizer> optimizer_;
  const std::string key_;
  const kvstore::KeyUpdate update_;
  Scope scope_;
  LazyBlock block_;
};

}  // namespace penstock::pserver
