// Finds the parameters that are sparse tables, from which trainers request single rows, and the requesting
// ops.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

// Fills analysis.tables, and `prefetched` and `distributed` of analysis.params, whose other fields must be
// set.
//
// kInvalidArgument: E-plan-table-mixed (looked up with is_distributed and without), E-plan-table-dense and
// E-plan-table-frozen (is_distributed, but the gradient is dense or missing), E-plan-table-reader (an op
// needs the whole of a table that no trainer holds; default dialect), E-plan-table-many (compat: Fluid
// supports one distributed table), E-plan-optimizer (compat: Fluid does not recognise the optimizer).
// kUnimplemented: E-plan-table-norm (is_distributed with an update that needs all rows), E-plan-table-sampler
// (compat: Fluid has no nce with prefetch).
Status FindTables(const Program& main, Dialect dialect, Analysis& analysis);

// Compat: fills analysis.forgotten_tables, for an analysis that is complete otherwise.
void FindForgottenTables(const Program& main, Analysis& analysis);

}  // namespace penstock::plan
