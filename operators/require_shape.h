// What a gradient kernel asks of its inputs before it runs. Shape inference of a gradient follows the forward
// values; that the rest fits them is checked here, because a program need not come from append_backward.
#pragma once

#include "framework/op/kernel.h"

namespace penstock {

inline Status RequireShape(const KernelSetup& k, std::string_view input, const Shape& expected) {
  if (k.Input(input).shape == expected) return OkStatus();
  return k.Error("shape of ", input, " (", k.Input(input).shape, ") must be ", expected);
}

inline Status RequireCount(const KernelSetup& k, std::string_view input, Dim expected) {
  if (k.Input(input).shape.Count() == expected) return OkStatus();
  return k.Error(input, " (", k.Input(input).shape, ") must hold ", expected, " elements");
}

}  // namespace penstock
