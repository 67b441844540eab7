// The first step of Transpile: brings the user's programs into the form from which plans are made, and
// completes the config.
//
//   ops spelled as their schemas want      Conformed (framework/op)
//   without gradients that no op writes    WithoutUnwrittenParts; the plan records it
//   without updates in branches            WithoutConditionalUpdates, for jobs with pservers
//   with updates marked as such            WithMarkedUpdates, likewise
//   exchange=auto decided                  ChooseExchanges
//
// In compat, Fluid's own updates of tables (WithFluidsTableUpdates) take the place of the middle three.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/config.h"

namespace penstock {

struct PreparedSource {
  Program main;
  Program startup;
  plan::TranspileConfig config;        // valid
  bool lacks_unwritten_parts = false;  // such parts were removed from `main`
};

// kInvalidArgument: E-op-attr (an attribute has another kind than its op declares), E-plan-*: the errors of
// ValidateConfig and ChooseExchanges.
Result<PreparedSource> PrepareSource(const OpRegistry& ops, const Program& main, const Program& startup,
                                     const plan::TranspileConfig& config);

}  // namespace penstock
