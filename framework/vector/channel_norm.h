// Normalisation of the channels of images, and its gradient: batch_norm of [images, channels, points] floats.
//
// Functions compute channels [first, first + count) of arrays that begin with channel 0. A channel's sum adds
// element p of a plane to lane p % 32, and then the planes in order. Bytes are the same with AVX2 and
// AVX-512, and for any split of the channels; with less, products are not fused, and results differ by
// roundings. A NaN or an infinity makes its channel NaN. Nothing is allocated.
#pragma once

#include <cstddef>

namespace penstock::vec {

struct Planes {
  std::size_t images, channels, points;
};

// The mean and the biased variance of each channel. Errors are at most points / 32 + images + 6 roundings of
// the mean of |x| (of the squared distances from the mean), and about the square root of that in practice.
void ChannelMoments(const Planes& planes, std::size_t first, std::size_t count, const float* x, float* mean,
                    float* variance);

// y = (x - mean) * factor + bias, factor = scale / sqrt(variance + epsilon). y may be x.
struct ChannelNorm {
  const float *scale, *bias;
  float epsilon;
};
void NormalizeChannels(const Planes& planes, std::size_t first, std::size_t count, const float* x,
                       const float* mean, const float* variance, const ChannelNorm& norm, float* y);
// Both: writes the moments of x, and y, which may be x.
void BatchNorm(const Planes& planes, std::size_t first, std::size_t count, const float* x,
               const ChannelNorm& norm, float* mean, float* variance, float* y);

// With r = inverse_deviation = 1 / sqrt(variance + epsilon) and n = (x - mean) * r:
//   dbias = sum(dy), dscale = sum(dy * n),
//   dx = scale * r * (dy - (dbias + n * dscale) / (images * points))
// or, if x does not determine the moments, dx = scale * r * dy. A gradient that is null is not written. dx
// may be dy or x; dscale and dbias may be any two of scale, mean and inverse_deviation.
struct ChannelNormGrad {
  const float *x, *dy, *scale, *mean, *inverse_deviation;
  bool moments_of_x;
  float *dx, *dscale, *dbias;
};
void BatchNormGrad(const Planes& planes, std::size_t first, std::size_t count, const ChannelNormGrad& grad);

}  // namespace penstock::vec
