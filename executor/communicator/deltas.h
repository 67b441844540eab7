// The arithmetic of geo-SGD: what a trainer has changed since the last exchange, and what others have.
//
//   TakeDelta(now, 1.0 / trainers, old, delta);   // delta = (now - old) * share;  old += delta
//   ... the servers add delta to theirs, and answer with `value` ...
//   LandValue(value, old, now);                   // now += value - old;  old = value
//
// `old` is what the servers would hold if nobody else had sent anything: it gets the delta by the same sum as
// theirs does. So a trainer that is alone, whose share is 1, gets what it has, and `now` keeps its bytes.
//
// Tensors of one element, f32 or f64 (CanExchange), and of one shape; rows are within it.
#pragma once

#include <cstdint>
#include <span>

#include "framework/tensor/variable.h"

namespace penstock::communicator {

bool CanExchange(DType type);

void TakeDelta(const Tensor& now, double share, Tensor& old, Tensor& delta);
void LandValue(const Tensor& value, Tensor& old, Tensor& now);

// The same of single rows, each once.
void TakeDelta(const Tensor& now, std::span<const std::int64_t> rows, double share, Tensor& old,
               SelectedRows& delta);
// `value`: rows of the tensor's rows from `begin` on.
void LandValue(const SelectedRows& value, Dim begin, Tensor& old, Tensor& now);

}  // namespace penstock::communicator
