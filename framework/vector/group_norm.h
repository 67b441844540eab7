// Normalisation of groups of adjacent channels of each image of [images, channels, points] floats, and its
// gradient.
//
// Functions compute groups [first, first + count) of each image, of arrays that begin with image 0. Group g
// has channels [g * size, min((g + 1) * size, channels)); its moments are element image * groups + g. Sums
// have 32 lanes; errors are at most elements / 32 + 6 roundings of the mean of magnitudes. Bytes are the same
// with AVX2 and AVX-512, and for any split of the groups; with less, products are not fused, and results
// differ by roundings. A NaN or an infinity makes its group NaN.
#pragma once

#include <cstddef>

namespace penstock::vec {

struct ChannelGroups {
  std::size_t images, channels, points, groups, size;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias. `scale` and `bias` have a number for each
// channel, or are null: 1 and 0. Writes the mean and the biased variance of each group. y may be x.
struct GroupNorm {
  const float *scale, *bias;
  float epsilon;
};
void NormalizeGroups(const ChannelGroups& groups, std::size_t first, std::size_t count, const float* x,
                     const GroupNorm& norm, float* mean, float* variance, float* y);

// With g = dy * scale and r = inverse_deviation of the group, sums being over images and points:
//   dbias = sum(dy), dscale = sum(dy * n), dx = r * (g - mean of g - n * mean of g * n)
// n = (x - mean) * r if `mean` is given. Otherwise x is what NormalizeGroups wrote, and n is
// (x - bias) / scale, or 0 where scale is 0. A gradient that is null is not written. dx may be dy or x.
struct GroupNormGrad {
  const float *x, *dy, *scale, *bias, *mean, *inverse_deviation;
  float *dx, *dscale, *dbias;
};
void DifferentiateGroups(const ChannelGroups& groups, std::size_t first, std::size_t count,
                         const GroupNormGrad& grad);

}  // namespace penstock::vec
