// Clipping on pservers, of the mean of all trainers' gradients: what it is of each gradient and of all.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/plan/analyse.h"

namespace penstock::plan {

// Takes the clip ops of the analysis from the trainers. Trainers then send gradients as they are.
//
//   before  clip_ops: square, reduce_sum, sqrt, elementwise_div, elementwise_mul   grad: w@CLIPPED
//   after   of w: measure_ops square, reduce_sum; measures w.norm
//           shared_clip_ops: sqrt, elementwise_div
//           of w: server_ops elementwise_mul, sgd                                  grad: w@GRAD
//
// An op that reads one gradient, or what was made of one, belongs to its parameter; the others belong to all.
// What is read by those and made of one gradient is a measure: every pserver gets to know it. Ops are told
// apart by what they do to slices (framework/op/slices.h); a gradient that has to be whole is not sliced.
//
// kInvalidArgument E-plan-clip: an op mixes elements of several gradients, measures what measures have made,
// or reads what is no gradient.
Status MoveClipping(const OpRegistry& ops, const Program& main, Analysis& analysis);

// Once it is known which tables are distributed. kUnimplemented E-plan-clip-table.
Status RequireNoNormsOfTables(const Analysis& analysis);

}  // namespace penstock::plan
