// The parts of a training program that matter for its distribution: the parameters that an optimizer updates,
// the inputs of each update, the learning-rate schedule, and the tables from which single rows may be
// requested. Block 0 of the main program is analysed once; every pass and every pserver program is made from
// the result and does not search again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/conventions.h"

namespace penstock::plan {

struct TrainedParam {
  std::string param;
  std::string grad;          // computed by trainers and merged by pservers: clipped, not yet regularized
  bool sparse = false;       // grad is selected rows
  bool prefetched = false;   // see SparseTable
  bool distributed = false;  // see SparseTable
  // kNone: only in compat, which silently drops an optimizer that Fluid does not know.
  OpId optimizer = OpId::kNone;
  bool by_hand = false;  // no optimizer op: `optimizer` is the last op that writes the parameter
  // Another op that writes the parameter, such as a weight decay after the optimizer; kNone: there is none.
  OpId also_updated = OpId::kNone;
  // All ops of the update, in program order; clipping on servers first: regularizers, the optimizer, other
  // ops that write the parameter or its averages, and what these read (update_sources.h).
  std::vector<OpId> server_ops;
  // Clipping on servers (server_clip.h): ops that compute `measures` of the merged gradient before any
  // update, and whether server_ops read values that depend on the measures of all gradients.
  std::vector<OpId> measure_ops;
  std::vector<std::string> measures;
  bool reads_shared = false;
  bool whole_gradient = false;      // clipping on servers needs the gradient unsliced
  bool elementwise = true;          // the update may be cut at any row
  bool chunkable = true;            // no op of server_ops and measure_ops needs all rows of a slice at once
  std::set<std::string> row_state;  // optimizer state shaped like the parameter, sliced with it
  // Written by server_ops and measure_ops, except the parameter and the gradient; and persistable variables
  // of the parameter's shape that these ops only read.
  std::set<std::string> written;
};

// An op of any block.
struct BlockOp {
  int block = 0;
  OpId op = OpId::kNone;
};

// A sparse table. Trainers do not hold it, but request the rows of each batch from pservers. A table with
// remote_prefetch is range-sliced like any parameter; a table with is_distributed is sharded by id, unless a
// block that an op runs looks rows up: then it is range-sliced too.
struct SparseTable {
  std::string param;
  bool distributed = false;
  std::vector<OpId> lookups;   // ops that look up ids, in program order; compat: all of one op type
  std::vector<OpId> samplers;  // ops that choose ids themselves and request their rows (nce and its gradient)
  // The same ops in the blocks that ops of block 0 run. Each makes a request of its own, whenever it runs.
  std::vector<BlockOp> inner;
};

// The step counter of a learning-rate schedule: `op` adds `step` to `var` each time the schedule runs.
struct StepCounter {
  OpId op = OpId::kNone;
  std::string var;
  float step = 1.0f;
};
// Returns the counter that an op advances: the only variable that it reads and writes, to which it adds a
// step or, with counts_by_bias, a bias. The result's `op` is not set. nullopt if the op is not a counter.
std::optional<StepCounter> CountedBy(const Op& op, const Conventions& conventions);

// A value that an update reads and that the schedule computes although it is no learning rate.
struct ScheduleInput {
  std::string name;
  std::string param;  // of the update
};

// A variable that is not trained and gets an initial value from the startup program (start_values.h).
struct StartedVar {
  std::string name;
  bool written = false;  // by ops of the main program: a running statistic, not a frozen parameter
};

struct Analysis {
  std::vector<TrainedParam> params;  // in the order of the first optimize-role op for each
  std::vector<int> update_order;     // positions in params, in the order of their optimizer ops
  std::vector<OpId> lr_ops;          // learning-rate schedule, per-parameter factors, and their counters
  std::vector<OpId> trainer_lr_ops;  // members of lr_ops that trainers run too (rates.h)
  std::vector<StepCounter> step_counters;
  std::vector<ScheduleInput> schedule_inputs;
  std::vector<OpId> server_ops;          // other ops that leave the trainer
  std::vector<OpId> clip_ops;            // optimize-role ops on gradients alone: they stay, before the send
  std::vector<OpId> shared_clip_ops;     // clipping on servers: ops that all servers compute alike
  std::vector<std::string> server_vars;  // variables that only server_ops use
  std::vector<SparseTable> tables;       // in the order of params
  // Compat: tables whose lookups assume that pservers have the rows, while no pserver has them because the
  // table is frozen or has a dense gradient. Fluid's trainers start without their values. Sorted by name.
  std::vector<std::string> forgotten_tables;
  std::vector<StartedVar> start_values;  // from FindStartValues; sorted by name
};

// In compat, params is empty for a program that updates nothing: trainers wait for each other, and nothing is
// sent.
//
// kInvalidArgument: E-plan-no-params (such a program in the default dialect), E-plan-optimizer (an unknown op
// updates a parameter, or no op does), E-plan-updated-twice (two optimizers update one),
// E-plan-optimizer-shape (state is not shaped like its parameter), E-plan-undeclared, E-plan-rate (a learning
// rate depends on values that only trainers have), the errors of CompleteUpdates, FindTables and, with
// Clip::kGlobal, of MoveClipping. Cost: linear in the ops of block 0.
Result<Analysis> Analyse(const OpRegistry& ops, const Program& main, Dialect dialect,
                         Clip clip = Clip::kLocal);

// Leaves the named parameters to the trainers: removes from the analysis their updates and all optimize-role
// ops that belong to no remaining parameter. Trainers then run the schedule too.
void LeaveToTrainers(const Program& main, const std::set<std::string>& params, Analysis& analysis);

// Whether Fluid keeps the op on the trainer as clipping. It does so only for the deprecated clipping API,
// which it recognises by the op's name scope.
bool FluidKeepsClip(const Op& op);

}  // namespace penstock::plan
