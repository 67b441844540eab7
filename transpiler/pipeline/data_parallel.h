// What ParallelExecutor and CompiledProgram.with_data_parallel make of a program that several ranks run: each
// gradient is added up over all ranks (mode nccl2, whose own passes only join the ranks).
//
//   PENSTOCK_ASSIGN_OR_RETURN(const DataParallel made,
//                             MakeDataParallel(AllOps(), main, {.addresses = {"a:1", "b:1"}, .rank = 1}));
//   run made.begin once in the scope, then made.main each step
//
// A pure function, as Transpile; all ranks get programs that differ in the rank alone.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

struct DataParallelConfig {
  std::vector<std::string> addresses;  // of all ranks, at least 2
  int rank = 0;
  int rings = 1;          // used in turn
  bool mean_loss = true;  // false: gradients are added as they are (GradientScaleStrategy.One)
  // Batch normalisation takes its moments over the batches of all ranks, on a ring of its own.
  bool sync_batch_norm = false;
  int group_ranks = 0;  // ranks that add up among themselves first; 0: whatever is fastest
};

struct DataParallel {
  Program main;
  Program begin;  // joins the ranks and gives all of them rank 0's persistable variables that main reads
};

// kInvalidArgument: E-parallel-twice (the program exchanges gradients itself), E-plan-*, E-pass-no-loss.
// Groups that the ranks do not fill are found when the rings are made (E-rendezvous-groups).
Result<DataParallel> MakeDataParallel(const OpRegistry& ops, const Program& main,
                                      const DataParallelConfig& config);

}  // namespace penstock
