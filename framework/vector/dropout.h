// Dropout of floats by the numbers of std::minstd_rand, and its gradient.
//
// Results have the same bytes on every instruction set, and for every split that starts each part with its
// draws.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::vec {

// mask[i] = 0 if draw i is below `probability`, else 1;  y[i] = x[i] * factor if mask[i], else 0. y may be x.
// Draw i is (s - 1) / 2^31, rounded to a float, with s = 48271^(i + 1) * state mod (2^31 - 1). `state` is
// above 0 and below 2^31 - 1.
void Dropout(std::uint32_t state, float probability, float factor, const float* x, std::uint8_t* mask,
             float* y, std::size_t count);

// dx[i] = dy[i] * factor if mask[i], else 0. dx may be dy.
void DropoutGrad(const std::uint8_t* mask, float factor, const float* dy, float* dx, std::size_t count);

}  // namespace penstock::vec
