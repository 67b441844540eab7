// Which parameters are tables that trainers ask for row by row, and by which ops.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

// Fills analysis.tables, and `prefetched` and `distributed` of analysis.params, whose other facts are known.
//
// kInvalidArgument: E-plan-table-mixed (looked up with is_distributed and without), E-plan-table-dense and
// E-plan-table-frozen (is_distributed, and the gradient is dense or there is none), E-plan-table-reader (an
// op needs the whole of a table that no trainer holds; default dialect), E-plan-table-many (compat: Fluid has
// one distributed table), E-plan-optimizer (compat: Fluid does not see what updates it). kUnimplemented:
// E-plan-table-norm (is_distributed with an update that needs all rows), E-plan-table-sampler (compat: Fluid
// has no nce with prefetch).
Status FindTables(const Program& main, Dialect dialect, Analysis& analysis);

// Compat: tables that are looked up as if pservers had the rows, while none has them: frozen, or with a dense
// gradient. Fluid's trainers start without their values. By name; none in the default dialect.
std::vector<std::string> ForgottenTables(const Program& main, Dialect dialect, const Analysis& analysis);

}  // namespace penstock::plan
