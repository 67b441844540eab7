// Decides which temporaries of a block are views: rows of another variable's memory instead of memory of
// their own. What an op cuts is then sent from where it was computed, and what is received lands where an op
// would join it.
//
//   [g0, g1] = split_byref(X=g)     g0 and g1 are views of g
//   send(X=[g0, g1])
//   [w0, w1] = recv()               w0 and w1 are views of the parameter w
//   w = concat(X=[w0, w1])
//
// Kernels copy what does not lie in place (OpDef::PartsAreRows), so a slot that is left alone here, or that a
// run binds otherwise, costs a copy and nothing else.
#pragma once

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

// Sets SlotInfo::view_of of every slot that may be a view, adds the instructions concerned to
// `block.row_groups`, and extends the life of what is viewed to that of its views. Called once, when slots
// and fetches are complete.
//
// A part that an instruction cuts is a view if
//   * the whole is a temporary that nobody writes after the cut, and is itself no view;
//   * the part is a temporary that nothing else writes.
// A part that an instruction joins is a view if
//   * the whole lives in the scope, and no op with an effect outside reads it: a send of it may be in flight
//     when the part arrives;
//   * the part is a temporary that only the join reads, and only ops with an effect outside write (recv and
//     fetch_barrier);
//   * from the first of these to the join no op reads or writes the whole or starts a block.
// What is fetched, or named by a block that is started, is never a view and never viewed as a temporary.
void AddRowViews(CompiledBlock& block);

}  // namespace penstock::exec
