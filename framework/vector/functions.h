// Functions of one element and their gradients over arrays of floats: those that need an exponential or a
// logarithm. Others are as fast in plain loops.
//
// Errors are at most 4 ulp, unless a function says more. NaN gives NaN; infinities and zeros give the limits.
// Bytes are the same with AVX2 and AVX-512, and for every split of an array; with less, they differ within
// the errors. Arrays may be the same, but not overlap otherwise.
#pragma once

#include <cstddef>

namespace penstock::vec {

void Exp(const float* x, float* y, std::size_t count);
void Log(const float* x, float* y, std::size_t count);
void Tanh(const float* x, float* y, std::size_t count);
void Sigmoid(const float* x, float* y, std::size_t count);
void Erf(const float* x, float* y, std::size_t count);  // the error function
// dy * 2 / sqrt(pi) * exp(-x^2). An error of half an ulp in x^2 is one of x^2 / 2 ulp in the result.
void ErfGrad(const float* x, const float* dy, float* dx, std::size_t count);
void Log1p(const float* x, float* y, std::size_t count);  // log(1 + x); NaN below -1

// sign * log(1 + exp(sign * x)) for sign 1 or -1: softplus, or the logarithm of the sigmoid.
void Softplus(float sign, const float* x, float* y, std::size_t count);
// dy / (1 + exp(-sign * x))
void SoftplusGrad(float sign, const float* x, const float* dy, float* dx, std::size_t count);

// x / (1 + exp(-beta * x)). An error of an ulp in beta * x is one of |beta * x| ulp in the result. Where beta
// * x is below -87, the exponential is subnormal, and the error is up to |x| / 2^149.
void Swish(float beta, const float* x, float* y, std::size_t count);
// dy * s * (1 + beta * x * (1 - s)),  s = 1 / (1 + exp(-beta * x))
void SwishGrad(float beta, const float* x, const float* dy, float* dx, std::size_t count);

// x, or alpha * (exp(x) - 1) below 0
void Elu(float alpha, const float* x, float* y, std::size_t count);
// dy above 0, dy * alpha * exp(x) elsewhere
void EluGrad(float alpha, const float* x, const float* dy, float* dx, std::size_t count);

// x / 2 * (1 + erf(x / sqrt(2))), and with tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) in place of erf. Far
// below 0 the sum cancels: the error is 4 ulp above -1, and up to 2e-7 * |x| below.
void Gelu(const float* x, float* y, std::size_t count);
void GeluByTanh(const float* x, float* y, std::size_t count);
// Their derivatives times dy, with errors up to 1e-6 * |dy| and 3e-6 * |dy|. At infinities they are NaN.
void GeluGrad(const float* x, const float* dy, float* dx, std::size_t count);
void GeluByTanhGrad(const float* x, const float* dy, float* dx, std::size_t count);

}  // namespace penstock::vec
