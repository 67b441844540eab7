// Avoids name collisions between slices and variables: a program may have both a sliced parameter `a` and a
// variable `a.block1`.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// The program's names that look like names of slices; few or none. A query costs a look-up and does not
// construct the name of every slice.
class TakenNames {
 public:
  explicit TakenNames(const Program& main);
  // Returns a name that both a slice of the parameter and a variable would have, if any; `own` as in
  // PieceNames.
  std::optional<std::string> Find(const PlacementPlan& plan, const ParamPlacement& param,
                                  const std::set<std::string>& own) const;
  // Adds the names of this parameter's slices.
  void Add(const PlacementPlan& plan, const ParamPlacement& param, const std::set<std::string>& own);

 private:
  bool AnyBeginsWith(const std::string& prefix) const;
  std::set<std::string> names_;
};

// Gives each parameter whose slices would have the name of a variable a mark that makes the names distinct.
// Not for compat, because Fluid raises an error. The plan must have pservers, and params with slices in the
// order of the analysis.
void MarkTakenNames(const Program& main, const Analysis& analysis, PlacementPlan& plan);

}  // namespace penstock::plan
