// The types of the batches that a block's `read` ops will give, asked for before the run.
#pragma once

#include <span>
#include <vector>

#include "executor/graph/compiled_block.h"
#include "executor/schedule/op_timer.h"
#include "framework/tensor/scope.h"

namespace penstock::exec {

// Appends to `types` those of the outputs of the block's `peeks`, one after the other: of unknown extents
// where the op does not know them. Waits where the op would. kCancelled: the wait was cancelled.
//
//   timer  gets the duration of each wait, as `wait_for_batch`; may be null
Status PeekBatches(const CompiledBlock& block, const Scope& scope, OpTimer* timer,
                   std::vector<TensorDesc>& types);

// Sets the entries of `known`, the types of the block's slots, that `types` are of.
void SetPeeked(const CompiledBlock& block, std::span<const TensorDesc> types, std::vector<TensorDesc>& known);

}  // namespace penstock::exec
