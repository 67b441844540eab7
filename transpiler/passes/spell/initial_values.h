// Fits the initializer of a variable to the rows that a pserver holds.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "framework/op/op_registry.h"

namespace penstock::passes {

// Whether the op is an initializer whose output has the shape in its attribute `shape`.
bool ShapeDecides(const Op& op);
// Sets that attribute.
void FitShape(Op& op, const Shape& shape);

// Whether the op draws random numbers without a seed, which differ between processes; and what helps.
bool HasNoSeed(const Op& op, const OpRegistry& ops);
inline constexpr char kGiveASeed[] =
    "set random_seed of the main and the startup program before the layers are made, or give the "
    "initializer a seed";

// Changes `op`, which writes a whole variable in the user's startup program, to write `var`, which holds rows
// of that whole (var.facts.slice). An initializer that fills a shape gets the shape of `var`; at run time it
// draws the random numbers of these rows. An initializer that lists values keeps those of the rows. If `var`
// is not a slice, its values stay, and its shape becomes the declared one.
//
// kUnimplemented E-pass-initial-value: the op cannot be sliced, or `var` has rows by id, which only an
// initializer that fills a shape supports.
Status FitInitializer(Op& op, const Var& var, const OpRegistry& ops);

// The same in Fluid's way: an initializer that lists values is not changed, and `var` gets the shape of the
// whole.
void FitInitializerAsFluid(Op& op, Var& var);

}  // namespace penstock::passes
