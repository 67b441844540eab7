// Clipping on pservers, applied to the mean of all trainers' gradients: assigns each clip op to one parameter
// or to all.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Moves the clip ops of the analysis from the trainers to the servers. Trainers then send unclipped
// gradients.
//
//   before  clip_ops: square, reduce_sum, sqrt, elementwise_div, elementwise_mul   grad: w@CLIPPED
//   after   of w: measure_ops square, reduce_sum; measures w.norm
//           shared_clip_ops: sqrt, elementwise_div
//           of w: server_ops elementwise_mul, sgd                                  grad: w@GRAD
//
// An op that reads one gradient, or values computed from one gradient, belongs to that parameter; other ops
// are shared. A value that shared ops read and that is computed from one gradient is a measure; every pserver
// receives it. Ops are classified by their result on slices (framework/op/slices.h). A gradient that an op
// needs whole is not sliced.
//
// kInvalidArgument E-plan-clip: an op mixes elements of several gradients, measures a value that depends on
// measures, or reads a variable that is not a gradient.
Status MoveClipping(const OpRegistry& ops, const Program& main, Analysis& analysis);

// kUnimplemented E-plan-clip-table: the norm of a distributed table is measured. Call after FindTables.
Status RequireNoNormsOfTables(const Analysis& analysis);

}  // namespace penstock::plan
