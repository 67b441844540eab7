// Decides which jobs allow the settings that Fluid does not have (staleness, backup trainers, on_uneven,
// compression), and which gradients are compressed. framework/text/policies.h documents what each setting
// promises.
//
//   setting          allowed with
//   staleness        async by ops of the program: mode async
//   backup_trainers  sync by ops of the program: mode sync, clip=local
//   on_uneven        modes sync, hybrid, nccl2, grad_allreduce, local_sgd (with any number of steps, or an
//                    adaptive one); no backup trainers
//   compression      every mode in which trainers push gradients to pservers; dense gradients of f32
//
// Compat allows none of them.
#pragma once

#include <span>

#include "framework/base/status.h"
#include "framework/text/policies.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// Checks the settings of a configuration, or of a plan from any source. kInvalidArgument E-plan-staleness,
// E-plan-backup-trainers, E-plan-on-uneven, E-plan-compression, E-compression-value; the message gives the
// values and what to do.
Status ValidatePolicies(const TranspileConfig& config, Mode mode);
Status ValidatePolicies(const PlacementPlan& plan);

// Sets the compression of each parameter's gradient in the plan: by the parameter's own rule, or else, if the
// gradient is dense and f32, by the rule for all and the gradient's size. kInvalidArgument
// E-plan-compression: a rule names a variable that is not a parameter of the plan, or whose gradient cannot
// be compressed.
Status ChooseCompression(const CompressionRules& rules, PlacementPlan& plan);

// The policies in the programs of trainer `index`, or of a pserver that holds the slices `held`. Their
// compression rules list only the gradients that this trainer pushes or this pserver receives.
JobPolicies TrainerPolicies(const PlacementPlan& plan, int index);
JobPolicies PserverPolicies(const PlacementPlan& plan, std::span<const SliceRef> held);

}  // namespace penstock::plan
