// The arithmetic of geo-SGD: deltas since the last exchange, and landing the servers' answers.
//
//   TakeDelta(now, 1.0 / trainers, old, delta);   // delta = (now - old) * share;  old += delta
//   ... the servers add delta to theirs, and answer with `value` ...
//   LandValue(value, old, now);                   // now += value - old;  old = value
//
// `old` is the value that the servers would hold if no other trainer had sent anything: the delta is added
// to it as on the servers. A single trainer, with share 1, thus gets its own value back, and `now` does not
// change.
//
// Tensors must have one element type, f32 or f64 (CanExchange), and one shape; rows must be in range.
#pragma once

#include <cstdint>
#include <span>

#include "framework/tensor/variable.h"

namespace penstock::communicator {

bool CanExchange(DType type);

void TakeDelta(const Tensor& now, double share, Tensor& old, Tensor& delta);
void LandValue(const Tensor& value, Tensor& old, Tensor& now);

// The same for single rows, each at most once.
void TakeDelta(const Tensor& now, std::span<const std::int64_t> rows, double share, Tensor& old,
               SelectedRows& delta);
// `value`: selected rows, numbered from row `begin` of the tensor.
void LandValue(const SelectedRows& value, Dim begin, Tensor& old, Tensor& now);

}  // namespace penstock::communicator
