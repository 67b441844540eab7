// A pass: puts one op in the place of a chain of ops whose temporaries nobody else reads, so that the data
// travels through memory once. Forward and gradient, whole or not at all:
//
//   batch_norm(x, ...) -> t         batch_norm_relu(x, ..., Addend=s) -> r
//   elementwise_add(t, s) -> a
//   relu(a) -> r
//   ...
//   sum(g, h) -> dr                 batch_norm_relu_grad(x, r, Y@GRAD=g, MoreGrad=h, ...) -> dx, ds, ...
//   relu_grad(r, dr) -> da
//   elementwise_add_grad(t, s, da) -> dt, ds
//   batch_norm_grad(x, dt, ...) -> dx, ...
//
// elementwise_add and sum may be absent, and so may the gradient. The images are f32 and stored channels
// last. t, a, dr, da and dt are temporaries that only these ops name: a fetch of one of them, or another
// reader, stops the fusion. They are not made. The forward op stands where relu stood and the gradient where
// relu_grad stood, if no op in between writes what they read or touches what they write. The results have the
// bytes of the chain.
#pragma once

#include <memory>
#include <span>

#include "executor/graph/compiled_block.h"
#include "framework/op/tensor_desc.h"

namespace penstock::exec {

// `known`: the type of each slot before the run, as for Specialise. Returns `block` itself if nothing is
// fused. Slots keep their numbers.
std::shared_ptr<const CompiledBlock> FuseOps(const OpRegistry& ops,
                                             const std::shared_ptr<const CompiledBlock>& block,
                                             std::span<const TensorDesc> known);

}  // namespace penstock::exec
