#include "framework/vector/channel_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

constexpr float kBatchEpsilon = 1e-5f;

// A batch, and what the kernels make of it.
struct Batch {
  explicit Batch(const Planes& planes)
      : planes(planes),
        x(Random(Count(), 2, 3)),
        dy(Random(Count() + 1, 1)),
        scale(Random(planes.channels, 1, 1)),
        bias(Random(planes.channels, 1)) {
    dy.pop_back();
    for (std::vector<float>* each : {&mean, &variance, &deviation, &dscale, &dbias})
      each->resize(planes.channels);
    y.resize(Count());
    dx.resize(Count());
  }
  std::size_t Count() const { return planes.images * planes.channels * planes.points; }
  ChannelNorm Norm() const { return {scale.data(), bias.data(), kBatchEpsilon}; }
  void Forward(std::size_t first, std::size_t count) {
    BatchNorm(planes, first, count, x.data(), Norm(), mean.data(), variance.data(), y.data());
    for (std::size_t c = first; c < first + count; ++c)
      deviation[c] = 1 / std::sqrt(variance[c] + kBatchEpsilon);
  }
  void Backward(std::size_t first, std::size_t count, bool moments_of_x = true) {
    BatchNormGrad(planes, first, count,
                  {x.data(), dy.data(), scale.data(), mean.data(), deviation.data(), moments_of_x, dx.data(),
                   dscale.data(), dbias.data()});
  }
  std::vector<float> All() const {
    std::vector<float> all;
    for (const std::vector<float>* each : {&mean, &variance, &dscale, &dbias, &y, &dx})
      all.insert(all.end(), each->begin(), each->end());
    return all;
  }
  // Calls visit(element) for each element of channel c.
  template <typename Visit>
  void Each(std::size_t c, Visit visit) const {
    for (std::size_t image = 0; image < planes.images; ++image) {
      for (std::size_t p = 0; p < planes.points; ++p)
        visit((image * planes.channels + c) * planes.points + p);
    }
  }

  Planes planes;
  std::vector<float> x, dy, scale, bias, mean, variance, deviation, y, dx, dscale, dbias;
};

const std::vector<Planes>& BatchSizes() {
  static const std::vector<Planes> sizes = {{1, 1, 1},   {3, 2, 5},    {2, 20, 16}, {4, 17, 49},
                                            {8, 3, 100}, {2, 5, 1000}, {1, 2, 33},  {5, 40, 1}};
  return sizes;
}

void ExpectDefinition(const Batch& b, std::size_t c) {
  const double size = static_cast<double>(b.planes.images * b.planes.points);
  double mean = 0, variance = 0, sum = 0, along = 0;
  b.Each(c, [&](std::size_t at) { mean += b.x[at] / size; });
  b.Each(c, [&](std::size_t at) { variance += (b.x[at] - mean) * (b.x[at] - mean) / size; });
  EXPECT_NEAR(b.mean[c], mean, 2e-6);
  EXPECT_NEAR(b.variance[c], variance, 4e-6 * (1 + variance));
  const double r = 1 / std::sqrt(variance + kBatchEpsilon);
  b.Each(c, [&](std::size_t at) {
    sum += b.dy[at];
    along += b.dy[at] * (b.x[at] - mean) * r;
    EXPECT_NEAR(b.y[at], (b.x[at] - mean) * r * b.scale[c] + b.bias[c], 1e-5);
  });
  EXPECT_NEAR(b.dbias[c], sum, 1e-6 * size + 1e-6);
  EXPECT_NEAR(b.dscale[c], along, 1e-6 * size + 1e-6);
  if (size == 1) return;
  b.Each(c, [&](std::size_t at) {
    const double n = (b.x[at] - mean) * r;
    EXPECT_NEAR(b.dx[at], b.scale[c] * r * (b.dy[at] - (sum + n * along) / size), 2e-5);
  });
}

TEST(ChannelNorm, MatchesTheDefinitionAndItsGradient) {
  OnEachIsa([](Isa) {
    for (const Planes& planes : BatchSizes()) {
      Batch b(planes);
      b.Forward(0, planes.channels);
      b.Backward(0, planes.channels);
      for (std::size_t c = 0; c < planes.channels; ++c) ExpectDefinition(b, c);
    }
  });
}

TEST(ChannelNorm, UsesGivenMoments) {
  OnEachIsa([](Isa) {
    Batch b({3, 4, 21});
    b.mean = {0.5f, -1, 0, 2};
    b.variance = {1, 0.25f, 9, 2};
    NormalizeChannels(b.planes, 0, 4, b.x.data(), b.mean.data(), b.variance.data(), b.Norm(), b.y.data());
    for (std::size_t c = 0; c < 4; ++c) b.deviation[c] = 1 / std::sqrt(b.variance[c] + kBatchEpsilon);
    b.Backward(0, 4, /*moments_of_x=*/false);
    for (std::size_t c = 0; c < 4; ++c) {
      double along = 0;
      b.Each(c, [&](std::size_t at) {
        const double n = (static_cast<double>(b.x[at]) - b.mean[c]) * b.deviation[c];
        along += b.dy[at] * n;
        EXPECT_NEAR(b.y[at], n * b.scale[c] + b.bias[c], 4e-6 * (1 + std::abs(b.y[at])));
        EXPECT_EQ(b.dx[at], b.scale[c] * b.deviation[c] * b.dy[at]);
      });
      EXPECT_NEAR(b.dscale[c], along, 1e-4);
    }
  });
}

TEST(ChannelNorm, ResultsDoNotDependOnTheSplitOrInPlace) {
  OnEachIsa([](Isa) {
    for (const Planes& planes : BatchSizes()) {
      Batch whole(planes), parts(planes), self(planes);
      whole.Forward(0, planes.channels);
      whole.Backward(0, planes.channels);
      for (std::size_t c = 0; c < planes.channels; c += 3) {
        const std::size_t count = std::min<std::size_t>(3, planes.channels - c);
        parts.Forward(c, count);
        ChannelMoments(planes, c, count, parts.x.data(), parts.mean.data(), parts.variance.data());
        parts.Backward(c, count);
      }
      EXPECT_TRUE(SameBytes(whole.All(), parts.All()));
      BatchNormGrad(planes, 0, planes.channels,
                    {self.x.data(), self.dy.data(), self.scale.data(), whole.mean.data(),
                     whole.deviation.data(), true, self.dy.data(), nullptr, nullptr});
      EXPECT_TRUE(SameBytes(whole.dx, self.dy));
      BatchNorm(planes, 0, planes.channels, self.x.data(), self.Norm(), self.mean.data(),
                self.variance.data(), self.x.data());
      EXPECT_TRUE(SameBytes(whole.y, self.x));
    }
  });
}

TEST(ChannelNorm, GradientsMayOverwriteTheirInputs) {
  OnEachIsa([](Isa) {
    Batch apart({3, 40, 21}), over({3, 40, 21});
    apart.Forward(0, 40);
    over.Forward(0, 40);
    apart.Backward(0, 40);
    BatchNormGrad(over.planes, 0, 40,
                  {over.x.data(), over.dy.data(), over.scale.data(), over.mean.data(), over.deviation.data(),
                   true, over.dx.data(), over.mean.data(), over.deviation.data()});
    EXPECT_TRUE(SameBytes(apart.dx, over.dx));
    EXPECT_TRUE(SameBytes(apart.dscale, over.mean));
    EXPECT_TRUE(SameBytes(apart.dbias, over.deviation));
  });
}

TEST(ChannelNorm, NaNAndInfinityStayInTheirChannel) {
  OnEachIsa([](Isa) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Batch b({2, 3, 35});
      b.x[35 + 34] = bad;  // in channel 1
      b.Forward(0, 3);
      b.Backward(0, 3);
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(std::isnan(b.variance[c]), c == 1);
        b.Each(c, [&](std::size_t at) { EXPECT_EQ(std::isnan(b.y[at]) && std::isnan(b.dx[at]), c == 1); });
      }
    }
  });
}

TEST(ChannelNorm, Avx2AndAvx512GiveTheSameBytes) {
  ExpectSameBytesWithFusedProducts([] {
    std::vector<float> all;
    for (const Planes& planes : BatchSizes()) {
      Batch b(planes);
      b.Forward(0, planes.channels);
      b.Backward(0, planes.channels);
      const std::vector<float> some = b.All();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  });
}

}  // namespace
}  // namespace penstock::vec
