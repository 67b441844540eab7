// What ParallelExecutor, CompiledProgram.with_data_parallel and hvd.DistributedOptimizer make of a program
// that several ranks run: each gradient is reduced over all ranks. (Mode nccl2's own passes only join them.)
//
//   PENSTOCK_ASSIGN_OR_RETURN(const DataParallel made,
//                             MakeDataParallel(AllOps(), main, {.addresses = {"a:1", "b:1"}, .rank = 1}));
//   run made.begin once in the scope, then made.main each step
//
// A pure function, as Transpile; all ranks get programs that differ in the rank alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

enum class GradientReduction {
  kMean,    // by the loss's gradient, which is divided by the number of ranks
  kShares,  // of all ranks' examples, however many each has: by shares that ranks agree on in each step
  kSum,     // gradients are added as they are (GradientScaleStrategy.One)
  kAdasum,  // framework/runtime/adasum.h; of 2, 4, 8, ... ranks and of dense gradients
};

struct DataParallelConfig {
  std::vector<std::string> addresses;  // of all ranks; one: nothing is exchanged
  int rank = 0;
  int rings = 1;  // used in turn
  GradientReduction reduction = GradientReduction::kMean;
  bool halved = false;  // dense gradients travel as f16, and are added in f32
  // Batch normalisation takes its moments over the batches of all ranks, on a ring of its own.
  bool sync_batch_norm = false;
  int group_ranks = 0;  // ranks that add up among themselves first; 0: whatever is fastest
  // Above 1 the gradients of so many runs are added up, and exchanged and applied in the last of them; also
  // of a single rank. A schedule of learning rates goes on in each run.
  int runs_per_update = 1;
  // The ranks are places of one process, which share the persistable variables that updates write: rank 0
  // alone runs the updates, after all ranks' backward passes. Then `begin` has nothing to do.
  bool places = false;
  // What `begin` does is appended to it, for the variables that it declares, instead of being a program.
  std::optional<Program> startup = {};
};

struct DataParallel {
  Program main;
  // With kShares main reads plan::kRankLive, which begin makes 1: 0 takes this rank's batch out of the mean.
  Program begin;  // joins the ranks and gives all of them rank 0's persistable variables that main reads
};

// kInvalidArgument: E-parallel-twice (the program exchanges gradients itself), E-parallel-adasum (the number
// of ranks, or a sparse gradient), E-parallel-accumulate (a sparse gradient, or an update with a block of its
// own), E-parallel-sync (sync_batch_norm with inplace_abn), E-plan-*, E-pass-no-loss, E-pass-uneven-loss (a
// loss that is no mean).
// Groups that the ranks do not fill are found when the rings are made (E-rendezvous-groups).
Result<DataParallel> MakeDataParallel(const OpRegistry& ops, const Program& main,
                                      const DataParallelConfig& config);

}  // namespace penstock
