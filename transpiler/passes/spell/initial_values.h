// What makes a variable's initial values on a pserver, fitted to the rows that the pserver holds.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "framework/op/op_registry.h"

namespace penstock::passes {

// An initializer that makes what its shape says.
bool ShapeDecides(const Op& op);

// `op`, of the user's startup program, writes the whole that `var` holds rows of (var.facts.slice).
// Afterwards it writes `var`: what fills a shape gets this one (at run time random numbers are those of the
// rows), what lists its values keeps the rows' values. A variable that is no slice keeps its values, and its
// shape is the declared one. kUnimplemented E-pass-initial-value: the op cannot be cut, or `var` has rows by
// id, which only what fills a shape can start.
Status FitInitializer(Op& op, const Var& var, const OpRegistry& ops);

// The same as Fluid does it: what lists values is left alone, and `var` becomes as large as the whole.
void FitInitializerAsFluid(Op& op, Var& var);

}  // namespace penstock::passes
