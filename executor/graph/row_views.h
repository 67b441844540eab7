// Decides which temporaries of a block are views, that is, rows of another variable's memory. A cut part is
// then sent from where the whole was computed, and a received part arrives directly in the variable that it
// would otherwise be joined into by a copy.
//
//   [g0, g1] = split_byref(X=g)     g0 and g1 are views of g
//   send(X=[g0, g1])
//   [w0, w1] = recv()               w0 and w1 are views of the parameter w
//   w = concat(X=[w0, w1])
//
// Kernels copy parts that are not in place (OpDef::PartsAreRows). A slot that gets no view here, or that a
// run binds differently, therefore only costs a copy.
#pragma once

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

// Sets SlotInfo::view_of of every slot that may be a view, adds the instructions concerned to
// `block.row_groups`, and extends the life of a viewed variable to that of its views. Call once, when slots
// and fetches are complete.
//
// A part that an instruction cuts is a view if
//   * the whole is a temporary that is not written after the cut, and is not a view itself;
//   * the part is a temporary that nothing else writes.
// A part that an instruction joins is a view if
//   * the whole lives in the scope, and no op that may hold it reads it: a send of it may be in flight
//     when the part arrives;
//   * the part is a temporary that only the join reads, and that only ops that may hold it write (recv and
//     fetch_barrier);
//   * from the first of these ops to the join, no op reads or writes the whole or runs a block.
// A variable that is fetched, or that a nested block names, is never a view, nor viewed as a temporary.
void AddRowViews(CompiledBlock& block);

}  // namespace penstock::exec
