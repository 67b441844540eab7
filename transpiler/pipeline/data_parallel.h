// Makes the data-parallel form of a program for ParallelExecutor, CompiledProgram.with_data_parallel and
// hvd.DistributedOptimizer: several ranks run it, and each gradient is reduced over all ranks. (The passes of
// mode nccl2 only join the ranks.)
//
//   PENSTOCK_ASSIGN_OR_RETURN(const DataParallel made,
//                             MakeDataParallel(AllOps(), main, {.addresses = {"a:1", "b:1"}, .rank = 1}));
//   run made.begin once in the scope, then made.main each step
//
// A pure function, like Transpile. The programs of all ranks differ only in the rank; places have one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

enum class GradientReduction {
  kMean,    // the mean over ranks: the loss's gradient is divided by the number of ranks
  kShares,  // the mean over all ranks' examples: in each step, ranks exchange the sizes of their batches
  kSum,     // the plain sum of gradients (GradientScaleStrategy.One)
  kAdasum,  // framework/runtime/adasum.h; for 2, 4, 8, ... ranks and dense gradients
};

struct DataParallelConfig {
  std::vector<std::string> addresses;  // of all ranks; with only one, nothing is exchanged
  int rank = 0;
  int rings = 1;  // used in turn
  GradientReduction reduction = GradientReduction::kMean;
  bool halved = false;  // dense gradients travel as f16 and are summed in f32
  // Batch normalisation computes its moments over the batches of all ranks, on a separate ring.
  bool sync_batch_norm = false;
  int group_ranks = 0;  // ranks per group that reduces among itself first; 0: the runtime chooses
  // Above 1, sums the gradients of that many runs, and exchanges and applies the sum in the last of them;
  // also for a single rank. A learning-rate schedule advances in each run.
  int runs_per_update = 1;
  // The ranks are places of one process, which share the persistable variables that updates write and run one
  // program: the first place alone runs the updates (roles::IsOfFirstPlace), after the backward passes of all
  // places. `rank` then changes nothing, and `begin` is empty.
  bool places = false;
  // If given, the result's `begin` is this program followed by the ops of `begin` that concern variables it
  // declares, except those that it contains already.
  std::optional<Program> startup = {};
};

struct DataParallel {
  Program main;
  // With kShares main reads plan::kRankLive, which begin sets to 1; 0 excludes this rank's batch from the
  // mean.
  Program begin;  // joins the ranks and gives all of them rank 0's persistable variables that main reads
};

// With a startup program, a program that exchanges gradients already is rewritten for those of its gradients
// that no rank exchanges yet, so a program with several optimizers is rewritten after each of them.
//
// kInvalidArgument: E-parallel-twice (the program already exchanges its gradients), E-parallel-adasum (the
// number of ranks, or a sparse gradient), E-parallel-accumulate (an update with a block of its own),
// E-parallel-sync (sync_batch_norm with inplace_abn), E-plan-*, E-pass-no-loss, E-pass-uneven-loss (a loss
// that is not a mean). Groups that do not divide the ranks fail only when the rings are made
// (E-rendezvous-groups).
Result<DataParallel> MakeDataParallel(const OpRegistry& ops, const Program& main,
                                      const DataParallelConfig& config);

}  // namespace penstock
