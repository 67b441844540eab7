// Decides whether the update of a parameter may be cut at rows.
#pragma once

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Sets `elementwise` to false for parameters of which an op of the update needs all rows, such as a norm
// for a maximum norm (default dialect), and `chunkable`. Adds to `written` the persistable variables of a
// parameter's shape that its update only reads; a parameter that shares such a variable with another is not
// cut either.
//
// Compat decides `elementwise` by the optimizer alone, as Fluid does; `chunkable` follows from the ops in
// both dialects, because the kernels must run on some rows. A pserver that has only the program comes to
// the same result.
void FindCuts(const OpRegistry& ops, const Block& main, Dialect dialect, Analysis& analysis);

}  // namespace penstock::plan
