// The activations of recurrent ops, on contiguous elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/vector/gates.h"
#include "operators/common/nan.h"

namespace penstock {

using GateActivation = vec::GateFunction;

inline AttrCheck GateActivationNames() { return OneOf({"sigmoid", "tanh", "relu", "identity"}); }

inline GateActivation GateActivationOf(std::string_view name) {
  if (name == "sigmoid") return GateActivation::kSigmoid;
  if (name == "tanh") return GateActivation::kTanh;
  if (name == "relu") return GateActivation::kRelu;
  return GateActivation::kIdentity;
}

// x = f(x). If `bounds`, the argument of a sigmoid is clipped as in Fluid's gru and lstm; the result is
// therefore at most 1 - 2.3e-6.
template <typename T>
void Activate(GateActivation f, bool bounds, T* x, Dim count) {
  if constexpr (std::is_same_v<T, float>) {
    vec::Activate(f, bounds, x, static_cast<std::size_t>(count));
  } else {
    constexpr T kLow = -40, kHigh = 13;
    for (Dim i = 0; i < count; ++i) {
      switch (f) {
        case GateActivation::kIdentity:
          break;
        case GateActivation::kSigmoid:
          if (bounds) x[i] = std::clamp(x[i], kLow, kHigh);
          x[i] = T{1} / (T{1} + std::exp(-x[i]));
          break;
        case GateActivation::kTanh:
          x[i] = std::tanh(x[i]);
          break;
        case GateActivation::kRelu:
          x[i] = std::max(x[i], T{0});
          break;
      }
    }
  }
}
template <typename T>
void ActivateClipped(GateActivation f, T* x, Dim count) {
  Activate(f, true, x, count);
}

// d *= f'(x), given y = f(x)
template <typename T>
void ActivateGrad(GateActivation f, const T* y, T* d, Dim count) {
  if constexpr (std::is_same_v<T, float>) {
    vec::ActivateGrad(f, y, d, static_cast<std::size_t>(count));
  } else {
    for (Dim i = 0; i < count; ++i) {
      switch (f) {
        case GateActivation::kIdentity:
          break;
        case GateActivation::kSigmoid:
          d[i] *= y[i] * (T{1} - y[i]);
          break;
        case GateActivation::kTanh:
          d[i] *= T{1} - y[i] * y[i];
          break;
        case GateActivation::kRelu:
          d[i] = Choose(y[i] > T{0}, d[i], T{0}, y[i]);
          break;
      }
    }
  }
}

}  // namespace penstock
