#include "framework/vector/channel_norm.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/channel_norm.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// Small planes of adjacent channels are visited together: images are far apart in memory.
constexpr std::size_t kElementsTogether = 1024, kChannelsTogether = 16;

// Calls visit(first, count) for parts of the channels, whose elements are visited several times from the
// cache.
template <typename Visit>
HWY_INLINE void EachBlock(const Planes& planes, std::size_t first, std::size_t count, Visit visit) {
  const std::size_t most = std::clamp<std::size_t>(
      kElementsTogether / std::max<std::size_t>(planes.points, 1), 1, kChannelsTogether);
  for (std::size_t done = 0; done < count; done += most) visit(first + done, std::min(most, count - done));
}

// Calls visit(i, offset) for the plane of each image and each channel first + i.
template <typename Visit>
HWY_INLINE void EachPlane(const Planes& planes, std::size_t first, std::size_t count, Visit visit) {
  for (std::size_t image = 0; image < planes.images; ++image) {
    const std::size_t at = (image * planes.channels + first) * planes.points;
    for (std::size_t i = 0; i < count; ++i) visit(i, at + i * planes.points);
  }
}

HWY_INLINE void Clear(Lanes* sums, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sums[i] = Lanes(0);
}
HWY_INLINE void AddTo(Lanes& total, const Lanes& plane) {
#pragma GCC unroll 8
  for (std::size_t part = 0; part < kParts; ++part)
    total.parts[part] = hn::Add(total.parts[part], plane.parts[part]);
}

HWY_INLINE void MomentsOfBlock(const Planes& planes, std::size_t first, std::size_t count, const float* x,
                               float* mean, float* variance) {
  const float size = static_cast<float>(planes.images * planes.points);
  Lanes totals[kChannelsTogether];
  Clear(totals, count);
  EachPlane(planes, first, count, [&](std::size_t c, std::size_t at) {
    Lanes sum(0);
    EachPart(planes.points, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      sum.parts[part] = hn::Add(sum.parts[part], Load(d, x + at + i, n));
    });
    AddTo(totals[c], sum);
  });
  for (std::size_t c = 0; c < count; ++c) mean[first + c] = Sum(totals[c]) / size;
  Clear(totals, count);
  EachPlane(planes, first, count, [&](std::size_t c, std::size_t at) {
    Lanes sum(0);
    const Vector middle = hn::Set(Floats(), mean[first + c]);
    EachPart(planes.points, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      Vector distance = hn::Sub(Load(d, x + at + i, n), middle);
      if (n < kWidth) distance = hn::IfThenElseZero(hn::FirstN(d, n), distance);
      sum.parts[part] = hn::MulAdd(distance, distance, sum.parts[part]);
    });
    AddTo(totals[c], sum);
  });
  for (std::size_t c = 0; c < count; ++c) variance[first + c] = Sum(totals[c]) / size;
}

HWY_INLINE void NormalizeBlock(const Planes& planes, std::size_t first, std::size_t count, const float* x,
                               const float* mean, const float* variance, const ChannelNorm& norm, float* y) {
  float factors[kChannelsTogether];
  for (std::size_t i = 0; i < count; ++i)
    factors[i] = norm.scale[first + i] / std::sqrt(variance[first + i] + norm.epsilon);
  EachPlane(planes, first, count, [&](std::size_t i, std::size_t at) {
    const Vector middle = hn::Set(Floats(), mean[first + i]), factor = hn::Set(Floats(), factors[i]),
                 offset = hn::Set(Floats(), norm.bias[first + i]);
    EachVector(planes.points, [&](Floats d, std::size_t p, std::size_t n) {
      Store(d, hn::MulAdd(hn::Sub(Load(d, x + at + p, n), middle), factor, offset), y + at + p, n);
    });
  });
}

void ChannelMoments(const Planes& planes, std::size_t first, std::size_t count, const float* x, float* mean,
                    float* variance) {
  EachBlock(planes, first, count,
            [&](std::size_t c, std::size_t n) { MomentsOfBlock(planes, c, n, x, mean, variance); });
}
void NormalizeChannels(const Planes& planes, std::size_t first, std::size_t count, const float* x,
                       const float* mean, const float* variance, const ChannelNorm& norm, float* y) {
  EachBlock(planes, first, count,
            [&](std::size_t c, std::size_t n) { NormalizeBlock(planes, c, n, x, mean, variance, norm, y); });
}
void BatchNorm(const Planes& planes, std::size_t first, std::size_t count, const float* x,
               const ChannelNorm& norm, float* mean, float* variance, float* y) {
  EachBlock(planes, first, count, [&](std::size_t c, std::size_t n) {
    MomentsOfBlock(planes, c, n, x, mean, variance);
    NormalizeBlock(planes, c, n, x, mean, variance, norm, y);
  });
}

// Of dy, and of dy * (x - mean), for each channel.
HWY_INLINE void SumBlock(const Planes& planes, std::size_t first, std::size_t count,
                         const ChannelNormGrad& grad, Lanes* sums, Lanes* alongs) {
  Clear(sums, count);
  Clear(alongs, count);
  EachPlane(planes, first, count, [&](std::size_t c, std::size_t at) {
    Lanes sum(0), along(0);
    const Vector middle = hn::Set(Floats(), grad.mean[first + c]);
    EachPart(planes.points, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      const Vector dy = Load(d, grad.dy + at + i, n);
      Vector distance = hn::Sub(Load(d, grad.x + at + i, n), middle);
      if (n < kWidth) distance = hn::IfThenElseZero(hn::FirstN(d, n), distance);
      sum.parts[part] = hn::Add(sum.parts[part], dy);
      along.parts[part] = hn::MulAdd(dy, distance, along.parts[part]);
    });
    AddTo(sums[c], sum);
    AddTo(alongs[c], along);
  });
}

// dx = steep * dy, or steep * dy + (along * (x - mean) + constant)
struct Slopes {
  float steep, along, constant, mean;
};

HWY_INLINE void DifferentiateBlock(const Planes& planes, std::size_t first, std::size_t count,
                                   const ChannelNormGrad& grad, const Slopes* slopes) {
  EachPlane(planes, first, count, [&](std::size_t c, std::size_t at) {
    const Vector steep = hn::Set(Floats(), slopes[c].steep);
    if (!grad.moments_of_x) {
      EachVector(planes.points, [&](Floats d, std::size_t i, std::size_t n) {
        Store(d, hn::Mul(steep, Load(d, grad.dy + at + i, n)), grad.dx + at + i, n);
      });
      return;
    }
    const Vector middle = hn::Set(Floats(), slopes[c].mean), along = hn::Set(Floats(), slopes[c].along),
                 constant = hn::Set(Floats(), slopes[c].constant);
    EachVector(planes.points, [&](Floats d, std::size_t i, std::size_t n) {
      const Vector distance = hn::Sub(Load(d, grad.x + at + i, n), middle);
      const Vector rest = hn::MulAdd(along, distance, constant);
      Store(d, hn::MulAdd(steep, Load(d, grad.dy + at + i, n), rest), grad.dx + at + i, n);
    });
  });
}

void BatchNormGrad(const Planes& planes, std::size_t first, std::size_t count, const ChannelNormGrad& grad) {
  const float size = static_cast<float>(planes.images * planes.points);
  EachBlock(planes, first, count, [&](std::size_t block, std::size_t channels) {
    Lanes sums[kChannelsTogether], alongs[kChannelsTogether];
    Slopes slopes[kChannelsTogether];
    SumBlock(planes, block, channels, grad, sums, alongs);
    for (std::size_t i = 0; i < channels; ++i) {
      const std::size_t c = block + i;
      // All of the channel's numbers are read here, before gradients that may have their memory are written.
      const float r = grad.inverse_deviation[c], steep = grad.scale[c] * r, mean = grad.mean[c];
      const float sum = Sum(sums[i]), weighted = Sum(alongs[i]) * r;
      if (grad.dbias != nullptr) grad.dbias[c] = sum;
      if (grad.dscale != nullptr) grad.dscale[c] = weighted;
      slopes[i] = {steep, -steep * (weighted / size) * r, -steep * (sum / size), mean};
    }
    if (grad.dx != nullptr) DifferentiateBlock(planes, block, channels, grad, slopes);
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(ChannelMoments);
HWY_EXPORT(NormalizeChannels);
HWY_EXPORT(BatchNorm);
HWY_EXPORT(BatchNormGrad);

void ChannelMoments(const Planes& planes, std::size_t first, std::size_t count, const float* x, float* mean,
                    float* variance) {
  HWY_DYNAMIC_DISPATCH(ChannelMoments)(planes, first, count, x, mean, variance);
}
void NormalizeChannels(const Planes& planes, std::size_t first, std::size_t count, const float* x,
                       const float* mean, const float* variance, const ChannelNorm& norm, float* y) {
  HWY_DYNAMIC_DISPATCH(NormalizeChannels)(planes, first, count, x, mean, variance, norm, y);
}
void BatchNorm(const Planes& planes, std::size_t first, std::size_t count, const float* x,
               const ChannelNorm& norm, float* mean, float* variance, float* y) {
  HWY_DYNAMIC_DISPATCH(BatchNorm)(planes, first, count, x, norm, mean, variance, y);
}
void BatchNormGrad(const Planes& planes, std::size_t first, std::size_t count, const ChannelNormGrad& grad) {
  HWY_DYNAMIC_DISPATCH(BatchNormGrad)(planes, first, count, grad);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
