// What all processes of one job must have in common, in words (text/job_facts.h): each process transpiles by
// itself, and a hyperparameter that one of them has otherwise shows in no message.
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
// The text depends on what is trained and how alone, so that it is the same in every process:
//
//  * of the main program on the ops that make updates. Ops that only measure, print or are fetched may be
//    there or not, as they are where a trainer prunes its program;
//  * on the names of parameters. Other variables are numbered by mention, for unique_name counts what else a
//    process has built;
//  * not on the user's lines, name scopes, numbers of Python functions, trainer ids or which roles are asked
//    for.
#pragma once

#include <map>
#include <string>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/plan.h"

namespace penstock {

// Cost: linear in the ops of both programs. At most about 100 lines, however many parameters there are.
std::string DescribeJob(const OpRegistry& ops, const Program& main, const Program& startup,
                        const plan::PlacementPlan& plan,
                        const std::map<std::string, std::string>& policies = {});

}  // namespace penstock
