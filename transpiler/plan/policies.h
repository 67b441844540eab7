// Which of the settings that Fluid does not have (staleness, backup trainers, on_uneven, compression) go with
// which job, and which gradients are compressed. framework/text/policies.h says what each of them promises.
//
//   setting          goes with
//   staleness        async by ops of the program: mode async
//   backup_trainers  sync by ops of the program: mode sync, clip=local
//   on_uneven        modes sync, hybrid, nccl2, grad_allreduce, local_sgd (with any number of steps, or an
//                    adaptive one); no backup trainers
//   compression      every mode in which trainers push gradients to pservers; dense gradients of f32
//
// None goes with compat.
#pragma once

#include <span>

#include "framework/base/status.h"
#include "framework/text/policies.h"
#include "transpiler/plan/plan.h"

namespace penstock::plan {

// kInvalidArgument E-plan-staleness, E-plan-backup-trainers, E-plan-on-uneven, E-plan-compression,
// E-compression-value: with the values and what to do. The second asks the same of a plan, whoever made it.
Status ValidatePolicies(const TranspileConfig& config, Mode mode);
Status ValidatePolicies(const PlacementPlan& plan);

// Gives each parameter of the plan the compression of its gradient: its own rule's, or, if the gradient is
// dense and f32, what the rule for all says of its size. kInvalidArgument E-plan-compression: a rule names
// what is no parameter of the plan, or one whose gradient cannot be compressed.
Status ChooseCompression(const CompressionRules& rules, PlacementPlan& plan);

// What the role programs of trainer `index` say, and of a pserver that holds these slices: of compression,
// the gradients that this trainer pushes, or that this pserver receives.
JobPolicies TrainerPolicies(const PlacementPlan& plan, int index);
JobPolicies PserverPolicies(const PlacementPlan& plan, std::span<const SliceRef> held);

}  // namespace penstock::plan
