// Sine, cosine, their inverses and the inverse tangent of arrays of floats, with gradients.
//
// Sin and Cos are computed in double precision up to 2^21 in absolute value, and rounded once: the error is
// at most 0.51 ulp, and bytes are the same on every instruction set. Larger arguments, infinities and NaN
// take the C library's function, element by element. Errors of the others are at most 4 ulp; bytes are the
// same with AVX2 and AVX-512. Outside [-1, 1], Asin and Acos are NaN. NaN gives NaN; zeros keep their sign.
// Bytes are the same for every split of an array. Arrays may be the same, but not overlap otherwise.
#pragma once

#include <cstddef>

namespace penstock::vec {

void Sin(const float* x, float* y, std::size_t count);
void Cos(const float* x, float* y, std::size_t count);
void Asin(const float* x, float* y, std::size_t count);
void Acos(const float* x, float* y, std::size_t count);
void Atan(const float* x, float* y, std::size_t count);

// dy * cos(x)
void SinGrad(const float* x, const float* dy, float* dx, std::size_t count);
// -dy * sin(x)
void CosGrad(const float* x, const float* dy, float* dx, std::size_t count);
// dy / sqrt(1 - x^2), each operation rounded, and its negative
void AsinGrad(const float* x, const float* dy, float* dx, std::size_t count);
void AcosGrad(const float* x, const float* dy, float* dx, std::size_t count);

}  // namespace penstock::vec
