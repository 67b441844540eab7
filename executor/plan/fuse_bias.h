// A pass: lets the op that computes a product or a convolution add the bias, while its results are in
// registers.
//
//   mul(x, w) -> t                              fc(Input=x, W=w, Bias=b) -> a
//   elementwise_add(t, b) -> a
//   relu(a) -> r
//   ...
//   relu_grad(r, dr) -> da
//   elementwise_add_grad(t, b, da) -> dt, db    elementwise_add_grad(a, b, da) -> dt, db
//
// The same holds for matmul if its right factor is a single matrix, and for conv2d and depthwise_conv2d,
// which then read Bias. t is a temporary that only the sum reads, and gradients that use its type alone
// (SlotDef::shape_only): they read a, which has this type, and whose memory may be in use for other values by
// then. b is a vector with one element for each column of the product, or for each channel.
// The new op stands where elementwise_add stood, if no op in between writes what it reads or touches a, and a
// names no input of the product. The results have the bytes of the chain.
//
// An activation that follows keeps a step of its own: oneDNN's relu turns NaN into 0, and a step in place
// costs as much as a second loop of the kernel.
#pragma once

#include <memory>
#include <span>

#include "executor/graph/compiled_block.h"
#include "framework/op/tensor_desc.h"

namespace penstock::exec {

// `known`: the type of each slot before the run, as for Specialise. Returns `block` itself if nothing is
// fused. Slots keep their numbers.
std::shared_ptr<const CompiledBlock> FuseBias(const OpRegistry& ops,
                                              const std::shared_ptr<const CompiledBlock>& block,
                                              std::span<const TensorDesc> known);

}  // namespace penstock::exec
