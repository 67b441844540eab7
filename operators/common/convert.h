// Converts elements to another element type, by C++'s conversions.
#pragma once

#include "framework/tensor/tensor.h"

namespace penstock {

// Writes the elements of `from` into `to`, which must have as many. Both must have the types given to
// ConverterOf.
using Converter = void (*)(const Tensor& from, Tensor& to);
Converter ConverterOf(DType from, DType to);  // null if there is none

}  // namespace penstock
