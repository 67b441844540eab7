// A pass: stores images channels last, [N, ..., C] instead of [N, C, ...], where the ops that compute them
// are then faster. Changes a compiled block for the shapes of a run:
//
//   conv2d(x, w) -> c            transpose(x) -> x@last          (a feed is plain)
//   relu(c) -> r                 conv2d[NHWC](x@last, w) -> c@last
//   mul(r, v) -> out             relu(c@last) -> r@last
//                                transpose(r@last) -> r          (mul flattens plain images)
//                                mul(r, v) -> out
//
// The choice minimises the cost of the ops in their layouts (OpDef::ChannelsLast) plus that of the copies
// between them (layout_cut.h). It depends on shapes and on the instruction set only, never on a measurement.
// What others read is plain: variables of the scope, fetches, what communication ops and nested blocks read.
// Sums over images then add in another order, within the bounds of their ops.
#pragma once

#include <memory>
#include <span>

#include "executor/graph/compiled_block.h"
#include "framework/op/infer_context.h"

namespace penstock::exec {

// `known`: the type of each slot before the run, as for Specialise. Returns `block` itself if nothing
// changes, or if a type cannot be inferred. Slots keep their numbers; new ones follow them.
std::shared_ptr<const CompiledBlock> StoreChannelsLast(const OpRegistry& ops,
                                                       const std::shared_ptr<const CompiledBlock>& block,
                                                       std::span<const TensorDesc> known);

}  // namespace penstock::exec
