#include "framework/vector/group_norm.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/group_norm.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// A group of an image: its channels, its first element and the number of its elements.
struct Group {
  std::size_t moment, channel, channels, at, elements;
};
template <typename Visit>
HWY_INLINE void EachGroup(const ChannelGroups& all, std::size_t first, std::size_t count, Visit visit) {
  for (std::size_t image = 0; image < all.images; ++image) {
    for (std::size_t g = first; g < first + count; ++g) {
      const std::size_t begin = std::min(g * all.size, all.channels),
                        end = std::min(begin + all.size, all.channels);
      visit(Group{image * all.groups + g, begin, end - begin, (image * all.channels + begin) * all.points,
                  (end - begin) * all.points});
    }
  }
}

HWY_INLINE float SizeOf(const Group& group) {
  return static_cast<float>(std::max<std::size_t>(group.elements, 1));
}

void NormalizeGroups(const ChannelGroups& groups, std::size_t first, std::size_t count, const float* x,
                     const GroupNorm& norm, float* mean, float* variance, float* y) {
  EachGroup(groups, first, count, [&](const Group& group) {
    Lanes sum(0), squares(0);
    EachPart(group.elements, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      sum.parts[part] = hn::Add(sum.parts[part], Load(d, x + group.at + i, n));
    });
    mean[group.moment] = Sum(sum) / SizeOf(group);
    const Vector middle = hn::Set(Floats(), mean[group.moment]);
    EachPart(group.elements, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
      Vector distance = hn::Sub(Load(d, x + group.at + i, n), middle);
      if (n < kWidth) distance = hn::IfThenElseZero(hn::FirstN(d, n), distance);
      squares.parts[part] = hn::MulAdd(distance, distance, squares.parts[part]);
    });
    variance[group.moment] = Sum(squares) / SizeOf(group);
    const float r = 1 / std::sqrt(variance[group.moment] + norm.epsilon);
    for (std::size_t c = 0; c < group.channels; ++c) {
      const std::size_t channel = group.channel + c, at = group.at + c * groups.points;
      const Vector factor = hn::Set(Floats(), norm.scale == nullptr ? r : r * norm.scale[channel]);
      const Vector offset = hn::Set(Floats(), norm.bias == nullptr ? 0 : norm.bias[channel]);
      EachVector(groups.points, [&](Floats d, std::size_t i, std::size_t n) {
        Store(d, hn::MulAdd(hn::Sub(Load(d, x + at + i, n), middle), factor, offset), y + at + i, n);
      });
    }
  });
}

// n = (x - middle) * factor for the elements of a plane, or 0.
struct Normal {
  float middle, factor;
};
HWY_INLINE Normal NormalOf(const GroupNormGrad& grad, std::size_t moment, std::size_t channel) {
  if (grad.mean != nullptr) return {grad.mean[moment], grad.inverse_deviation[moment]};
  const float scale = grad.scale == nullptr ? 1 : grad.scale[channel];
  return {grad.bias == nullptr ? 0 : grad.bias[channel], scale == 0 ? 0 : 1 / scale};
}

// The sums of dy and of dy * n over a plane.
struct PlaneSums {
  float dy, along;
};
HWY_INLINE PlaneSums SumPlane(const float* x, const float* dy, std::size_t points, const Normal& normal) {
  Lanes sum(0), along(0);
  const Vector middle = hn::Set(Floats(), normal.middle);
  EachPart(points, [&](Floats d, std::size_t i, std::size_t n, std::size_t part) {
    const Vector slope = Load(d, dy + i, n);
    Vector distance = hn::Sub(Load(d, x + i, n), middle);
    if (n < kWidth) distance = hn::IfThenElseZero(hn::FirstN(d, n), distance);
    sum.parts[part] = hn::Add(sum.parts[part], slope);
    along.parts[part] = hn::MulAdd(slope, distance, along.parts[part]);
  });
  return {Sum(sum), normal.factor == 0 ? 0 : Sum(along) * normal.factor};
}

void DifferentiateGroups(const ChannelGroups& groups, std::size_t first, std::size_t count,
                         const GroupNormGrad& grad) {
  const std::size_t begin = std::min(first * groups.size, groups.channels),
                    end = std::min((first + count) * groups.size, groups.channels);
  if (grad.dscale != nullptr) std::fill(grad.dscale + begin, grad.dscale + end, 0.0f);
  if (grad.dbias != nullptr) std::fill(grad.dbias + begin, grad.dbias + end, 0.0f);
  EachGroup(groups, first, count, [&](const Group& group) {
    float sum = 0, along = 0;
    const auto scale = [&](std::size_t channel) { return grad.scale == nullptr ? 1 : grad.scale[channel]; };
    for (std::size_t c = 0; c < group.channels; ++c) {
      const std::size_t channel = group.channel + c, at = group.at + c * groups.points;
      const PlaneSums sums =
          SumPlane(grad.x + at, grad.dy + at, groups.points, NormalOf(grad, group.moment, channel));
      sum += scale(channel) * sums.dy;
      along += scale(channel) * sums.along;
      if (grad.dscale != nullptr) grad.dscale[channel] += sums.along;
      if (grad.dbias != nullptr) grad.dbias[channel] += sums.dy;
    }
    if (grad.dx == nullptr) return;
    const float r = grad.inverse_deviation[group.moment], size = SizeOf(group);
    const Vector constant = hn::Set(Floats(), -r * (sum / size));
    for (std::size_t c = 0; c < group.channels; ++c) {
      const std::size_t channel = group.channel + c, at = group.at + c * groups.points;
      const Normal normal = NormalOf(grad, group.moment, channel);
      const Vector steep = hn::Set(Floats(), r * scale(channel)), middle = hn::Set(Floats(), normal.middle);
      const Vector slope = hn::Set(Floats(), -r * (along / size) * normal.factor);
      EachVector(groups.points, [&](Floats d, std::size_t i, std::size_t n) {
        const Vector distance = hn::Sub(Load(d, grad.x + at + i, n), middle);
        const Vector rest = normal.factor == 0 ? constant : hn::MulAdd(slope, distance, constant);
        Store(d, hn::MulAdd(steep, Load(d, grad.dy + at + i, n), rest), grad.dx + at + i, n);
      });
    }
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(NormalizeGroups);
HWY_EXPORT(DifferentiateGroups);

void NormalizeGroups(const ChannelGroups& groups, std::size_t first, std::size_t count, const float* x,
                     const GroupNorm& norm, float* mean, float* variance, float* y) {
  HWY_DYNAMIC_DISPATCH(NormalizeGroups)(groups, first, count, x, norm, mean, variance, y);
}
void DifferentiateGroups(const ChannelGroups& groups, std::size_t first, std::size_t count,
                         const GroupNormGrad& grad) {
  HWY_DYNAMIC_DISPATCH(DifferentiateGroups)(groups, first, count, grad);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
