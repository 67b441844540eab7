// Replaces the update of a distributed table by the update that Fluid's minimize makes, whatever the
// optimizer is.
//
//   before  adam(Param=table, Grad=table@GRAD@NEWGRAD@, Moment1=..., ...)    behind its regularizer
//   after   sgd(Param=table, Grad=table@GRAD, LearningRate=lr)               alone
//
// penstock.fluid's minimize keeps the user's optimizer. Compat needs Fluid's update to make the same role
// programs.
#pragma once

#include <optional>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::plan {

struct SourcePair {
  Program main;
  Program startup;
};

// Returns both programs with this change and without state that no op reads any more; nullopt if every such
// table already has a plain sgd.
std::optional<SourcePair> WithFluidsTableUpdates(const OpRegistry& ops, const Program& main,
                                                 const Program& startup);

}  // namespace penstock::plan
