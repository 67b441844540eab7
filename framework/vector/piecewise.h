// Functions of one element that consist of linear pieces, and their gradients, over arrays of floats. The
// compiler's loops choose between pieces by branches, or by several instructions of narrow vectors.
//
// No product is fused with a sum, so bytes are the same on every instruction set and for every split of an
// array. An x that is NaN gives this NaN, also in gradients. Bounds are numbers, not NaN. Arrays may be the
// same, but not overlap otherwise.
#pragma once

#include <cstddef>

namespace penstock::vec {

// x, or 0 up to 0
void Relu(const float* x, float* y, std::size_t count);
// x above 0, alpha * x elsewhere
void LeakyRelu(float alpha, const float* x, float* y, std::size_t count);
// min(max(x, least), most); a zero that equals a bound keeps its sign
void Clip(float least, float most, const float* x, float* y, std::size_t count);
// min(max(slope * x + offset, 0), 1)
void HardSigmoid(float slope, float offset, const float* x, float* y, std::size_t count);
// x * min(max(x + offset, 0), most) / scale
void HardSwish(float offset, float most, float scale, const float* x, float* y, std::size_t count);
// x - distance above distance, x + distance below -distance, 0 elsewhere
void SoftShrink(float distance, const float* x, float* y, std::size_t count);
// The largest integer that is not above x, the smallest that is not below it, and the nearest one, halves to
// even. A zero has the sign of x.
void Floor(const float* x, float* y, std::size_t count);
void Ceil(const float* x, float* y, std::size_t count);
void Round(const float* x, float* y, std::size_t count);

// dy where x > bound, 0 elsewhere
void AboveGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count);
// dy where x > bound or x < -bound, 0 elsewhere
void OutsideGrad(float bound, const float* x, const float* dy, float* dx, std::size_t count);
// dy where x equals y, 0 elsewhere: the gradient of a choice among elements. A y that is NaN gives NaN too.
// In the second form, all elements have one y.
void EqualGrad(const float* x, const float* y, const float* dy, float* dx, std::size_t count);
void EqualGrad(const float* x, float y, float dy, float* dx, std::size_t count);
// dy where x > 0, -dy where x < 0, 0 elsewhere
void AbsGrad(const float* x, const float* dy, float* dx, std::size_t count);
// dy where x > 0, alpha * dy elsewhere
void LeakyReluGrad(float alpha, const float* x, const float* dy, float* dx, std::size_t count);
// The sum of x * dy where x is not above 0, in 32 lanes (lanes_inl.h): the gradient of alpha.
float LeakyReluAlphaGrad(const float* x, const float* dy, std::size_t count);
// slope * dy where least < x < most, 0 elsewhere
void BetweenGrad(float least, float most, float slope, const float* x, const float* dy, float* dx,
                 std::size_t count);
void HardSwishGrad(float offset, float most, float scale, const float* x, const float* dy, float* dx,
                   std::size_t count);

}  // namespace penstock::vec
