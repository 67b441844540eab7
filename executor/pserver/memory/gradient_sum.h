// Adds up gradients as they come, reading them where they were received. Gives the bytes that the ops `sum`
// and `scale` make of the same gradients (operators/math): element by element ((g0 + g1) + g2) * factor + 0.
//
//   AddGradient(g0, {.first = true}, sum);
//   AddGradient({}, {}, sum);                       // zeros, of a trainer that has completed
//   AddGradient(g2, {.factor = 1.0f / 3}, sum);     // the last: the mean
#pragma once

#include <optional>
#include <vector>

#include "framework/runtime/transport.h"
#include "framework/tensor/tensor.h"

namespace penstock::pserver {

struct Addition {
  bool first = false;  // `sum` holds nothing yet
  // The gradient that `parts` is added to, of which `sum` holds nothing yet; null: what `sum` holds.
  const std::vector<Payload>* to = nullptr;
  std::optional<float> factor = {};  // what the sum is multiplied by afterwards
};

// Whether AddGradient supports the type: f32 and f64.
bool CanAdd(DType type);
// `parts`, concatenated, are the gradient: as many bytes as the sum has, at any addresses, or none for zeros.
// A single pass. Thread-safe for different sums.
void AddGradient(const std::vector<Payload>& parts, const Addition& addition, Tensor& sum);

}  // namespace penstock::pserver
