// The update of a distributed table, as Fluid's minimize makes it whatever the optimizer is.
//
//   before  adam(Param=table, Grad=table@GRAD@NEWGRAD@, Moment1=..., ...)    behind its regularizer
//   after   sgd(Param=table, Grad=table@GRAD, LearningRate=lr)               alone
//
// penstock.fluid's minimize keeps what the user asked for; compat makes of that what it would make of
// Fluid's.
#pragma once

#include <optional>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::plan {

struct SourcePair {
  Program main;
  Program startup;
};

// Both programs so changed, without state that has no reader left; nothing if all such tables have a plain
// sgd.
std::optional<SourcePair> WithFluidsTableUpdates(const OpRegistry& ops, const Program& main,
                                                 const Program& startup);

}  // namespace penstock::plan
