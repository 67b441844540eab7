// Lets gradient ops read values that are computed again between checkpoints, so that the forward pass does
// not have to keep them (Chen et al., Training Deep Nets with Sublinear Memory Cost).
//
//   checkpoints  a
//   forward      h = relu(X=x); a = mul(X=h, Y=w); loss = mean(X=a)
//   before       (X@GRAD=[], Y@GRAD=w@GRAD) = mul_grad(X=h, Y=w, Out@GRAD=a@GRAD)
//   after        h.subprog_0 = relu(X=x) @backward
//                (X@GRAD=[], Y@GRAD=w@GRAD) = mul_grad(X=h.subprog_0, Y=w, Out@GRAD=a@GRAD)
//
// The ops up to a checkpoint, since the one before it, are a segment. What a segment makes for itself alone
// is computed again, just before the first gradient op that reads it; the rest is kept: checkpoints, what
// other segments read, and what ops make that would not give the same again: they draw random numbers, have
// an effect outside, run blocks, or read what is written over.
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
  std::vector<Op> grads;  // with the ops that compute values again among them
  // Variables to be declared in block 0: each holds again what the other one held.
  std::map<std::string, std::string> copy_of;
};

// `grads`: the gradient ops that will follow the ops of block 0, in their order.
//
// kInvalidArgument E-backward-checkpoint: a checkpoint is no variable of block 0. One that no op writes, such
// as what is fed, ends no segment.
Result<Recomputed> RecomputeBetween(const OpRegistry& ops, const Program& program,
                                    const std::vector<std::string>& checkpoints, std::vector<Op> grads);

}  // namespace penstock
