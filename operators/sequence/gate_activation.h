// The activations of recurrent ops, on contiguous elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/op_def.h"
#include "operators/common/nan.h"

namespace penstock {

enum class GateActivation { kIdentity = 0, kSigmoid = 1, kTanh = 2, kRelu = 3 };

inline AttrCheck GateActivationNames() { return OneOf({"sigmoid", "tanh", "relu", "identity"}); }

inline GateActivation GateActivationOf(std::string_view name) {
  if (name == "sigmoid") return GateActivation::kSigmoid;
  if (name == "tanh") return GateActivation::kTanh;
  if (name == "relu") return GateActivation::kRelu;
  return GateActivation::kIdentity;
}

// x = f(x)
template <typename T>
void Activate(GateActivation f, T* x, Dim count) {
  switch (f) {
    case GateActivation::kIdentity:
      return;
    case GateActivation::kSigmoid:
      for (Dim i = 0; i < count; ++i) x[i] = T{1} / (T{1} + std::exp(-x[i]));
      return;
    case GateActivation::kTanh:
      for (Dim i = 0; i < count; ++i) x[i] = std::tanh(x[i]);
      return;
    case GateActivation::kRelu:
      for (Dim i = 0; i < count; ++i) x[i] = std::max(x[i], T{0});
      return;
  }
}

// x = f(x) as in Fluid's gru and lstm, which clip the argument of a sigmoid; its result is therefore at most
// 1 - 2.3e-6.
template <typename T>
void ActivateClipped(GateActivation f, T* x, Dim count) {
  constexpr T kLow = -40, kHigh = 13;
  if (f == GateActivation::kSigmoid) {
    for (Dim i = 0; i < count; ++i) x[i] = std::clamp(x[i], kLow, kHigh);
  }
  Activate(f, x, count);
}

// d *= f'(x), given y = f(x)
template <typename T>
void ActivateGrad(GateActivation f, const T* y, T* d, Dim count) {
  switch (f) {
    case GateActivation::kIdentity:
      return;
    case GateActivation::kSigmoid:
      for (Dim i = 0; i < count; ++i) d[i] *= y[i] * (T{1} - y[i]);
      return;
    case GateActivation::kTanh:
      for (Dim i = 0; i < count; ++i) d[i] *= T{1} - y[i] * y[i];
      return;
    case GateActivation::kRelu:
      for (Dim i = 0; i < count; ++i) d[i] = Choose(y[i] > T{0}, d[i], T{0}, y[i]);
      return;
  }
}

}  // namespace penstock
