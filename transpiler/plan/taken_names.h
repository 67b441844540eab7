// Names of slices that are in use already: a program may have both a parameter `a` that is cut and a variable
// called a.block1.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// The names of a program that slices might be given: few or none. Asking costs a look-up, not the making of
// every slice's name.
class TakenNames {
 public:
  explicit TakenNames(const Program& main);
  // A name that a slice of the parameter would have and a variable has; `own` as in PieceNames.
  std::optional<std::string> Find(const PlacementPlan& plan, const ParamPlacement& param,
                                  const std::set<std::string>& own) const;
  // From now on these are taken too.
  void Add(const PlacementPlan& plan, const ParamPlacement& param, const std::set<std::string>& own);

 private:
  bool AnyBeginsWith(const std::string& prefix) const;
  std::set<std::string> names_;
};

// Gives each parameter whose slices would be called like a variable of the program a mark that tells them
// apart. Not in compat: Fluid raises. Needs pservers, params with their slices, in the order of the analysis.
void MarkTakenNames(const Program& main, const Analysis& analysis, PlacementPlan& plan);

}  // namespace penstock::plan
