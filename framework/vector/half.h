// Conversion of arrays between floats and IEEE halves (framework/tensor/half.h), with the same bytes as the
// functions of that header on every instruction set. Halves may be unaligned.
#pragma once

#include <cstddef>

namespace penstock::vec {

// Rounds to nearest, ties to even; a NaN becomes the quiet NaN of its sign.
void HalvesOf(const float* x, void* halves, std::size_t count);
// A NaN keeps its fraction.
void FloatsOf(const void* halves, float* x, std::size_t count);

}  // namespace penstock::vec
