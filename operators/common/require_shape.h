// Checks of a kernel's arguments before it runs. Shape inference of a gradient op uses only the forward
// values. These functions check that the other arguments match them, because a program need not come from
// append_backward.
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

// kInvalidArgument unless `slot` has an output. For outputs that only the gradient reads but the kernel
// always writes.
inline Status RequireOutput(const KernelSetup& k, std::string_view slot) {
  return k.Output(slot) ? OkStatus() : k.Error("output ", slot, " is missing");
}

// kInvalidArgument if an input is the variable in output `slot`. For kernels that read inputs while they
// write.
inline Status RequireApart(const KernelSetup& k, std::string_view slot) {
  const Argument& output = k.Output(slot);
  for (const Slot& input : k.op().inputs()) {
    for (const std::string& name : input.args) {
      if (output && name == output.name)
        return k.Error(slot, " must be another variable than ", input.name, " (", name, ")");
    }
  }
  return OkStatus();
}

}  // namespace penstock
