// What a training program consists of, as far as its distribution goes: the parameters that an optimizer
// updates, what each update needs, the learning-rate schedule, and the tables whose rows may be asked for one
// by one. Read once, from block 0 of the main program; every pass and every pserver program is made from this
// and does not search again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

struct TrainedParam {
  std::string param;
  std::string grad;          // what trainers compute and pservers merge: clipped, not yet regularized
  bool sparse = false;       // grad is selected rows
  bool prefetched = false;   // see SparseTable
  bool distributed = false;  // see SparseTable
  OpId optimizer =
      OpId::kNone;  // none: compat only, where an optimizer Fluid does not know is dropped silently
  std::vector<OpId> server_ops;  // regularizer and optimizer, in program order; clipping on servers first
  // Clipping on servers (server_clip.h): ops that make `measures` of the merged gradient before anything is
  // updated, and whether server_ops read what the measures of all gradients make.
  std::vector<OpId> measure_ops;
  std::vector<std::string> measures;
  bool reads_shared = false;
  bool whole_gradient = false;      // clipping on servers needs all of it in one place
  bool elementwise = true;          // its update may be cut at any row
  bool chunkable = true;            // no op of server_ops and measure_ops needs all rows of a slice at once
  std::set<std::string> row_state;  // optimizer state shaped like the parameter, cut where it is
  std::set<std::string> written;    // by server_ops and measure_ops, beside the parameter and the gradient
};

// A table whose rows trainers ask pservers for, a batch at a time, and never hold: one with remote_prefetch,
// which is sliced by rows like any parameter, or with is_distributed, whose rows are spread by id.
struct SparseTable {
  std::string param;
  bool distributed = false;
  std::vector<OpId> lookups;   // ops that look up ids, in program order; compat: all of one op type
  std::vector<OpId> samplers;  // ops that ask for rows they choose themselves (nce and its gradient)
};

// The step of a learning-rate schedule: what an op adds `step` to, each time the schedule runs.
struct StepCounter {
  OpId op = OpId::kNone;
  std::string var;
  float step = 1.0f;
};
// The counter that an op advances: the one variable that it reads and writes, to which it adds a step, or
// (not in Fluid) a bias. `op` is not set; nothing if it counts nothing.
std::optional<StepCounter> CountedBy(const Op& op, Dialect dialect);

// Not trained, and started by the startup program (start_values.h).
struct StartedVar {
  std::string name;
  bool written = false;  // by ops of the main program: a running statistic, not a frozen parameter
};

struct Analysis {
  std::vector<TrainedParam> params;  // in the order in which the program first works on them to optimize
  std::vector<int> update_order;     // positions in params, in the order of their optimizer ops
  std::vector<OpId> lr_ops;          // learning-rate schedule and per-parameter factors, what they count by
  std::vector<OpId> trainer_lr_ops;  // of lr_ops, those that trainers run too (rates.h)
  std::vector<StepCounter> step_counters;
  std::vector<OpId> server_ops;          // what leaves the trainer beside lr_ops
  std::vector<OpId> clip_ops;            // optimize-role ops on gradients alone: they stay, before the send
  std::vector<OpId> shared_clip_ops;     // clipping on servers: what all of them compute alike
  std::vector<std::string> server_vars;  // variables that only server_ops use
  std::vector<SparseTable> tables;       // in the order of params
  std::vector<StartedVar> start_values;  // of FindStartValues; by name
};

// A program that updates nothing has no parameters here: trainers wait for each other, and nothing is sent.
//
// kInvalidArgument: E-plan-optimizer (an op that updates a parameter is not declared as an
// optimizer), E-plan-optimizer-shape (state is not shaped like its parameter), E-plan-undeclared, E-plan-rate
// (a learning rate depends on what only trainers have), what FindTables refuses, and with Clip::kGlobal what
// MoveClipping does. Cost: linear in the ops of block 0.
Result<Analysis> Analyse(const OpRegistry& ops, const Program& main, Dialect dialect,
                         Clip clip = Clip::kLocal);

// Leaves to the trainers what is for the named parameters: their updates, all other optimize-role ops of no
// parameter that stays, and the schedule, which trainers then run beside the servers.
void LeaveToTrainers(const Program& main, const std::set<std::string>& params, Analysis& analysis);

// Fluid keeps clipping on the trainer if the deprecated API made it, whose scope has this text in its name.
bool FluidKeepsClip(const Op& op);

}  // namespace penstock::plan
