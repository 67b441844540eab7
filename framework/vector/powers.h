// Powers of floats with one exponent, and their gradient.
//
// Computed in double precision and rounded once: the error is at most 0.51 ulp, and 0.5 for exponents 1 and
// 2. NaN, infinities and zeros are as in std::pow: an exponent of 0 gives 1, also for NaN; a negative number
// to an exponent that is no integer gives NaN. Infinite exponents and NaN take the C library's function.
// Bytes are the same on every instruction set, and for every split of an array. Arrays may be the same, but
// not overlap otherwise.
#pragma once

#include <cstddef>

namespace penstock::vec {

// x ^ exponent
void Power(float exponent, const float* x, float* y, std::size_t count);
// dy * exponent * x ^ (exponent - 1), each operation rounded
void PowerGrad(float exponent, const float* x, const float* dy, float* dx, std::size_t count);
// The square root, and 1 divided by it, each operation rounded.
void Root(const float* x, float* y, std::size_t count);
void InverseRoot(const float* x, float* y, std::size_t count);

}  // namespace penstock::vec
