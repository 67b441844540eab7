// A pass: lets one instruction run a chain of ops on a few rows of their arguments at a time
// (executor/graph/row_chain.h), so that what passes from one op to the next stays in a cache.
//
//   t = elementwise_add(X=c, Y=b)        r = elementwise_add+relu(X0=c, X1=b)
//   r = relu(X=t)
//
// Conditions:
//   * Each op is elementwise (OpDef::keeps_layout) without effects, and no optimizer. All its outputs have
//     one shape and are temporaries that it does not read. It computes rows of the outputs from the same rows
//     of the inputs of as many rows, and from the other inputs whole: no operand of a broadcast lies along
//     the rows.
//   * All ops have the same rows, those of the first one to three dimensions, and use each variable either by
//     rows or whole. A row of all arguments fits the cache.
//   * The next op of a chain is the first reader of its results, and at least 1 MB passes to it.
//   * All ops can stand where the last one stands: no op in between writes what they read or touches what
//     they write. No more memory is in use in between than without the chain.
//
// A result that only ops of the chain name is not made as a whole. The bytes are those of the ops one after
// the other. An error of an op is explained as without the chain.
#pragma once

#include <memory>
#include <span>

#include "executor/graph/compiled_block.h"
#include "framework/op/tensor_desc.h"

namespace penstock::exec {

// `known`: the type of each slot before the run, as for Specialise. Returns `block` itself if it has no such
// chain. Slots keep their numbers.
std::shared_ptr<const CompiledBlock> RunByRows(const std::shared_ptr<const CompiledBlock>& block,
                                               std::span<const TensorDesc> known);

}  // namespace penstock::exec
