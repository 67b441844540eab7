// Each pserver's part of a plan, computed once for all role programs. A pass that asks for one pserver's part
// takes time proportional to that part, not to the whole job.
//
//   const Shares shares(plan, analysis, startup);
//   for (const SliceRef ref : shares.SlicesOn(pserver)) ...
//
// The plan, the analysis and the program must outlive it.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/def_use.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

// One update that a pserver runs: of a slice that it holds and whose parameter has an optimizer. Updates are
// in the order of the optimizer ops, then of rows; their blocks are the last ones of the pserver's program,
// in this order. In compat only the first slice of a parameter is updated, because Fluid forgets others on
// the same pserver.
struct ServerUpdate {
  plan::SliceRef at;
  const plan::ParamPlacement* placement = nullptr;
  const plan::TrainedParam* trained = nullptr;
  bool again = false;  // an earlier slice of the parameter is here too: this update has its own state
};

class Shares {
 public:
  Shares(const plan::PlacementPlan& plan, const plan::Analysis& analysis, const Program& startup);

  // In the order in which they were placed; slices of one parameter are adjacent.
  const std::vector<plan::SliceRef>& SlicesOn(int pserver) const { return slices_[Index(pserver)]; }
  const std::vector<ServerUpdate>& UpdatesOn(int pserver) const { return updates_[Index(pserver)]; }
  // Parameters of which every pserver holds a shard.
  const std::vector<const plan::TrainedParam*>& distributed() const { return distributed_; }
  // Null if the plan has no parameter with this gradient.
  const plan::ParamPlacement* OfGrad(std::string_view grad) const;
  // The writers of each variable in the user's startup program.
  const DefUse& started() const { return started_; }

 private:
  static std::size_t Index(int pserver) { return static_cast<std::size_t>(pserver); }

  std::vector<std::vector<plan::SliceRef>> slices_;
  std::vector<std::vector<ServerUpdate>> updates_;
  std::vector<const plan::TrainedParam*> distributed_;
  ViewMap<const plan::ParamPlacement*> by_grad_;
  DefUse started_;
};

}  // namespace penstock::passes
