// Activations that need an exponential or tanh, with gradients, over arrays of floats: selu, soft_relu, mish,
// stanh and tanh_shrink.
//
// Errors are at most 4 ulp, unless a function says more. NaN gives NaN; infinities and zeros give the limits.
// Bytes are the same with AVX2 and AVX-512, and for every split of an array; with less, they differ within
// the errors. Arrays may be the same, but not overlap otherwise.
#pragma once

#include <cstddef>

namespace penstock::vec {

// scale * x above 0, scale * alpha * (exp(x) - 1) elsewhere. Each product may add half an ulp.
void Selu(float scale, float alpha, const float* x, float* y, std::size_t count);
// dy * scale where y > 0, dy * (y + scale * alpha) elsewhere; each operation rounded
void SeluGrad(float scale, float alpha, const float* y, const float* dy, float* dx, std::size_t count);

// log(1 + exp(min(max(x, -bound), bound)))
void SoftRelu(float bound, const float* x, float* y, std::size_t count);
// dy * (1 - exp(-y)) where y is between the values that SoftRelu has at its bounds, 0 elsewhere
void SoftReluGrad(float bound, const float* y, const float* dy, float* dx, std::size_t count);

// x * tanh(p), p = log(1 + exp(x)), or x above `bound` and exp(x) below -bound. The error is at most 6 ulp.
// Below -87, exp(x) is subnormal, and the error is up to |x| / 2^149.
void Mish(float bound, const float* x, float* y, std::size_t count);
// dy * (tanh(p) + x * (1 - tanh(p)^2) * (1 - exp(-p))), with an error of up to 1e-6 * |dy|; NaN at infinities
void MishGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count);

// outer * tanh(inner * x), the argument rounded
void ScaledTanh(float inner, float outer, const float* x, float* y, std::size_t count);
// dy * inner * outer * (1 - tanh(inner * x)^2), with an error of up to 1e-6 * |dy * inner * outer|
void ScaledTanhGrad(float inner, float outer, const float* x, const float* dy, float* dx, std::size_t count);

// x - tanh(x), computed in double precision and rounded once
void TanhShrink(const float* x, float* y, std::size_t count);
// dy * tanh(x)^2; the error is at most 8 ulp
void TanhShrinkGrad(const float* x, const float* dy, float* dx, std::size_t count);

}  // namespace penstock::vec
