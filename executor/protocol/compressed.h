// Compresses and expands gradients, as framework/text/compression.h defines for each kind.
//
//   PENSTOCK_RETURN_IF_ERROR(CheckCompressible(how, gradient, residual));          // trainer
//   std::vector<std::byte> bytes(how.Bytes(count));
//   Compress(how, gradient, residual, bytes.data());
//   PENSTOCK_RETURN_IF_ERROR(Expand(how, {payload}, sum.Span<float>()));           // server
//
// The bytes, all little-endian:
//
//   fp16, bf16  16 bits for each element
//   two_bit     2 bits for each element, 11 for +threshold and 10 for -threshold, four in a byte from its
//               high bits down; zeros up to a multiple of 4 bytes. As MXNet's gradient_compression.
//   top_k       the positions of the elements, 32 bits each, ascending; then their values, f32
//
// A message is one chunk: consecutive rows that the server updates together, at most 2^32 elements.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"
#include "framework/text/compression.h"

namespace penstock::protocol {

// kFailedPrecondition E-compression-finite: two_bit has no code for an infinite or NaN element, and would
// hide it.
Status CheckCompressible(const Compression& how, std::span<const float> gradient,
                         std::span<const float> residual);
// Fills `out`, how.Bytes(gradient.size()) bytes. If how.HasResidual(), `residual` has as many elements as the
// gradient and is updated; else it is not used. Equal inputs give equal bytes on every machine: of elements
// of equal magnitude, top_k takes the first.
void Compress(const Compression& how, std::span<const float> gradient, std::span<float> residual,
              std::byte* out);

// Fills `out` with the transmitted part of the gradient. `parts`, concatenated, are its bytes.
// kDataLoss E-rpc-compressed: the bytes cannot come from Compress.
Status Expand(const Compression& how, const std::vector<Payload>& parts, std::span<float> out);

}  // namespace penstock::protocol
