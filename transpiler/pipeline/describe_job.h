// Describes in sentences what all processes of one job must have in common (text/job_facts.h). Each process
// transpiles separately, and no message shows that one of them has a different hyperparameter.
//
//   DescribeJob(AllOps(), main, startup, plan)
//       works in mode sync with backup_trainers 1
//       has random seed 0
//       updates fc_0.b_0, fc_0.w_0 with sgd, learning rate 0.1
//       compresses fc_0.w_0 with two_bit 0.5
//       starts fc_0.b_0 with fill_constant
//       starts fc_0.w_0 with uniform_random {max=0.5, min=-0.5}
//       starts 1 other variable, digest 0b9c6cf1a9d3a0f2
//       trains by 11 ops, digest 52c0ffbe31a1c5d6
//       follows the plan of 2 trainers and 2 pservers, digest 9d2f1c55b7e08a43
//
// The text depends only on what is trained and how, so that it is the same in every process:
//
//  * Of the main program, only the ops that contribute to updates count. Ops that measure, print or are
//    fetched may be present or absent, because a trainer may prune its program.
//  * Names of parameters count. Other variables are numbered in the order of mention, because unique_name
//    depends on everything else that a process has built.
//  * The user's source lines, name scopes, numbers of Python functions, trainer ids and the requested roles
//    do not count.
#pragma once

#include <map>
#include <string>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/plan.h"

namespace penstock {

// The text has at most about 100 lines for any number of parameters. Cost: linear in the ops of both
// programs.
std::string DescribeJob(const OpRegistry& ops, const Program& main, const Program& startup,
                        const plan::PlacementPlan& plan,
                        const std::map<std::string, std::string>& policies = {});

}  // namespace penstock
