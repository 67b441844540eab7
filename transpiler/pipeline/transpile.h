// Makes the programs of all roles from one program. A pure function: it reads only its arguments, does not
// change the given programs, and returns the same bytes for the same arguments in every process.
//
//   PENSTOCK_ASSIGN_OR_RETURN(RoleSet roles, Transpile(AllOps(), main, startup,
//       {.trainers = 2, .trainer_ids = {0, 1}, .pservers = {"10.0.0.1:6174", "10.0.0.2:6174"}}));
//   roles.pservers[1].main      for the process at 10.0.0.2:6174
//   PrintPlan(roles.plan)       the placement as text
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/pipeline/pass_manager.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/plan.h"

namespace penstock {

struct TrainerPrograms {
  int trainer_id = 0;
  Program main;
  Program startup;
};

struct PserverPrograms {
  std::string address;
  Program main;
  Program startup;
};

struct RoleSet {
  plan::PlacementPlan plan;
  std::vector<TrainerPrograms> trainers;  // one for each of config.trainer_ids, in that order
  std::vector<PserverPrograms> pservers;  // one for each of plan.pservers, in that order
  std::vector<std::string> server_vars;   // the user's variables that only pservers need
  std::vector<PassTiming> timings;        // if PassOptions gave a clock
};

// Errors: those of ValidateConfig, Analyse, MakePlan and the passes. Cost: linear in the size of the results.
Result<RoleSet> Transpile(const OpRegistry& ops, const Program& main, const Program& startup,
                          const plan::TranspileConfig& config, const PassOptions& options = {});

}  // namespace penstock
