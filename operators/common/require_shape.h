// What a kernel asks of its arguments before it runs. Shape inference of a gradient follows the forward
// values; that the rest fits them is checked here, because a program need not come from append_backward.
#pragma once

#include "framework/op/kernel.h"

namespace penstock {

inline Status RequireShape(const KernelSetup& k, std::string_view input, const Shape& expected) {
  if (k.Input(input).shape == expected) return OkStatus();
  return k.Error("shape of ", input, " (", k.Input(input).shape, ") must be ", expected);
}

inline Status RequireType(const KernelSetup& k, std::string_view input, DType expected) {
  if (k.Input(input).dtype == expected) return OkStatus();
  return k.Error("element type of ", input, " (", DTypeName(k.Input(input).dtype), ") must be ",
                 DTypeName(expected));
}

inline Status RequireCount(const KernelSetup& k, std::string_view input, Dim expected) {
  if (k.Input(input).shape.Count() == expected) return OkStatus();
  return k.Error(input, " (", k.Input(input).shape, ") must hold ", expected, " elements");
}

// An output that is kept for the gradient alone, and that the kernel writes all the same.
inline Status RequireOutput(const KernelSetup& k, std::string_view slot) {
  return k.Output(slot) ? OkStatus() : k.Error("output ", slot, " is missing");
}

// For a kernel that reads its inputs while it writes: kInvalidArgument if an input is the variable in `slot`.
inline Status RequireApart(const KernelSetup& k, std::string_view slot) {
  const Operand& output = k.Output(slot);
  for (const Slot& input : k.op().inputs()) {
    for (const std::string& name : input.args) {
      if (output && name == output.name)
        return k.Error(slot, " must be another variable than ", input.name, " (", name, ")");
    }
  }
  return OkStatus();
}

}  // namespace penstock
