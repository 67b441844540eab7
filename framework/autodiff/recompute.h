// Recomputes values between checkpoints for the gradient ops, so that the forward pass need not keep them
// (Chen et al., Training Deep Nets with Sublinear Memory Cost).
//
//   checkpoints  a
//   forward      h = relu(X=x); a = mul(X=h, Y=w); loss = mean(X=a)
//   before       (X@GRAD=[], Y@GRAD=w@GRAD) = mul_grad(X=h, Y=w, Out@GRAD=a@GRAD)
//   after        h.subprog_0 = relu(X=x) @backward
//                (X@GRAD=[], Y@GRAD=w@GRAD) = mul_grad(X=h.subprog_0, Y=w, Out@GRAD=a@GRAD)
//
// The ops between two checkpoints form a segment. A value that only its own segment reads is recomputed just
// before the first gradient op that reads it. Not recomputed are the checkpoints, values that other segments
// read, and outputs of ops that would not give the same values again: ops that draw random numbers, have side
// effects, run blocks, or read variables that are overwritten later.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

struct Recomputed {
  std::vector<Op> grads;  // including the recomputing ops
  // Variables to declare in block 0, each with the variable whose value it recomputes.
  std::map<std::string, std::string> copy_of;
};

// `grads`: the gradient ops that will follow the ops of block 0, in order.
//
// kInvalidArgument E-backward-checkpoint: a checkpoint is not a variable of block 0. A checkpoint that no op
// writes, such as a fed variable, ends no segment.
Result<Recomputed> RecomputeBetween(const OpRegistry& ops, const Program& program,
                                    const std::vector<std::string>& checkpoints, std::vector<Op> grads);

}  // namespace penstock
