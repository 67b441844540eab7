// The same numbers as another element type, by C++'s conversions.
#pragma once

#include "framework/tensor/tensor.h"

namespace penstock {

// Writes the elements of `from` into `to`, which has as many. Both of the types it was asked for.
using Converter = void (*)(const Tensor& from, Tensor& to);
Converter ConverterOf(DType from, DType to);  // null if there is none

}  // namespace penstock
