#include "framework/vector/group_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

constexpr float kGroupEpsilon = 1e-5f;

// Images, and what the kernels make of them.
struct Images {
  explicit Images(const ChannelGroups& groups, bool affine = true)
      : groups(groups), x(Random(Count(), 2, 3)), dy(Random(Count() + 1, 1)) {
    dy.pop_back();
    if (affine) scale = Random(groups.channels, 1, 1), bias = Random(groups.channels, 1);
    for (std::vector<float>* each : {&mean, &variance, &deviation})
      each->resize(groups.images * groups.groups);
    for (std::vector<float>* each : {&y, &dx, &dx_of_y}) each->resize(Count());
    for (std::vector<float>* each : {&dscale, &dbias, &dscale_of_y}) each->assign(groups.channels, 7);
  }
  std::size_t Count() const { return groups.images * groups.channels * groups.points; }
  static const float* OrNull(const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); }
  void Run(std::size_t first, std::size_t count) {
    NormalizeGroups(groups, first, count, x.data(), {OrNull(scale), OrNull(bias), kGroupEpsilon}, mean.data(),
                    variance.data(), y.data());
    for (std::size_t i = 0; i < deviation.size(); ++i)
      deviation[i] = 1 / std::sqrt(variance[i] + kGroupEpsilon);
    DifferentiateGroups(groups, first, count,
                        {x.data(), dy.data(), OrNull(scale), OrNull(bias), mean.data(), deviation.data(),
                         dx.data(), dscale.data(), dbias.data()});
    DifferentiateGroups(groups, first, count,
                        {y.data(), dy.data(), OrNull(scale), OrNull(bias), nullptr, deviation.data(),
                         dx_of_y.data(), dscale_of_y.data(), nullptr});
  }
  std::vector<float> All() const {
    std::vector<float> all;
    for (const std::vector<float>* each :
         {&mean, &variance, &y, &dx, &dx_of_y, &dscale, &dbias, &dscale_of_y})
      all.insert(all.end(), each->begin(), each->end());
    return all;
  }
  // Calls visit(element, channel) for each element of a group of an image.
  template <typename Visit>
  void Each(std::size_t image, std::size_t group, Visit visit) const {
    for (std::size_t c = group * groups.size; c < std::min((group + 1) * groups.size, groups.channels); ++c) {
      for (std::size_t p = 0; p < groups.points; ++p)
        visit((image * groups.channels + c) * groups.points + p, c);
    }
  }

  ChannelGroups groups;
  std::vector<float> x, dy, scale, bias, mean, variance, deviation, y, dx, dx_of_y, dscale, dbias,
      dscale_of_y;
};

const std::vector<ChannelGroups>& GroupSizes() {
  static const std::vector<ChannelGroups> sizes = {{2, 6, 35, 3, 2}, {3, 7, 20, 3, 3}, {2, 5, 100, 5, 1},
                                                   {1, 4, 7, 1, 4},  {2, 3, 33, 2, 2}, {2, 3, 5, 3, 1}};
  return sizes;
}

void ExpectDefinition(const Images& images) {
  const ChannelGroups& all = images.groups;
  std::vector<double> dscale(all.channels, 0), dbias(all.channels, 0);
  const auto scale = [&](std::size_t c) { return images.scale.empty() ? 1.0 : images.scale[c]; };
  const auto bias = [&](std::size_t c) { return images.bias.empty() ? 0.0 : images.bias[c]; };
  for (std::size_t image = 0; image < all.images; ++image) {
    for (std::size_t g = 0; g < all.groups; ++g) {
      double size = 0, mean = 0, variance = 0, sum = 0, along = 0;
      images.Each(image, g, [&](std::size_t at, std::size_t) { size += 1, mean += images.x[at]; });
      mean /= size;
      images.Each(image, g, [&](std::size_t at, std::size_t) {
        variance += (images.x[at] - mean) * (images.x[at] - mean) / size;
      });
      const double r = 1 / std::sqrt(variance + kGroupEpsilon);
      EXPECT_NEAR(images.mean[image * all.groups + g], mean, 2e-6);
      EXPECT_NEAR(images.variance[image * all.groups + g], variance, 4e-6 * (1 + variance));
      images.Each(image, g, [&](std::size_t at, std::size_t c) {
        const double n = (images.x[at] - mean) * r;
        EXPECT_NEAR(images.y[at], n * scale(c) + bias(c), 1e-5);
        sum += images.dy[at] * scale(c);
        along += images.dy[at] * scale(c) * n;
        dscale[c] += images.dy[at] * n;
        dbias[c] += images.dy[at];
      });
      images.Each(image, g, [&](std::size_t at, std::size_t c) {
        const double n = (images.x[at] - mean) * r;
        const double wanted = r * (images.dy[at] * scale(c) - (sum + n * along) / size);
        EXPECT_NEAR(images.dx[at], wanted, 2e-5);
        EXPECT_NEAR(images.dx_of_y[at], wanted, 1e-4);
      });
    }
  }
  for (std::size_t c = 0; c < all.channels; ++c) {
    EXPECT_NEAR(images.dscale[c], dscale[c], 1e-4);
    EXPECT_NEAR(images.dscale_of_y[c], dscale[c], 5e-4);
    EXPECT_NEAR(images.dbias[c], dbias[c], 1e-4);
  }
}

TEST(GroupNorm, MatchesTheDefinitionAndItsGradients) {
  OnEachIsa([](Isa) {
    for (const ChannelGroups& groups : GroupSizes()) {
      for (const bool affine : {false, true}) {
        Images images(groups, affine);
        images.Run(0, groups.groups);
        ExpectDefinition(images);
      }
    }
  });
}

TEST(GroupNorm, UsesZeroWhereTheScaleIsZero) {
  OnEachIsa([](Isa) {
    Images images({1, 2, 9, 1, 2});
    images.scale = {0, 1};
    images.Run(0, 1);
    EXPECT_EQ(images.dscale_of_y[0], 0);
    for (const float each : images.dx_of_y) EXPECT_TRUE(std::isfinite(each));
  });
}

TEST(GroupNorm, ResultsDoNotDependOnTheSplitOrInPlace) {
  OnEachIsa([](Isa) {
    for (const ChannelGroups& groups : GroupSizes()) {
      Images whole(groups), parts(groups), self(groups);
      whole.Run(0, groups.groups);
      for (std::size_t g = 0; g < groups.groups; g += 2)
        parts.Run(g, std::min<std::size_t>(2, groups.groups - g));
      EXPECT_TRUE(SameBytes(whole.All(), parts.All()));
      DifferentiateGroups(groups, 0, groups.groups,
                          {self.x.data(), self.dy.data(), self.scale.data(), self.bias.data(),
                           whole.mean.data(), whole.deviation.data(), self.dy.data(), nullptr, nullptr});
      EXPECT_TRUE(SameBytes(whole.dx, self.dy));
      NormalizeGroups(groups, 0, groups.groups, self.x.data(),
                      {self.scale.data(), self.bias.data(), kGroupEpsilon}, self.mean.data(),
                      self.variance.data(), self.x.data());
      EXPECT_TRUE(SameBytes(whole.y, self.x));
    }
  });
}

TEST(GroupNorm, NaNAndInfinityStayInTheirGroup) {
  OnEachIsa([](Isa) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Images images({2, 4, 19, 2, 2});
      images.x[2 * 19 + 3] = bad;  // in group 1 of image 0
      images.Run(0, 2);
      for (std::size_t i = 0; i < images.x.size(); ++i)
        EXPECT_EQ(std::isnan(images.y[i]) && std::isnan(images.dx[i]), i / (2 * 19) == 1) << i;
    }
  });
}

TEST(GroupNorm, Avx2AndAvx512GiveTheSameBytes) {
  ExpectSameBytesWithFusedProducts([] {
    std::vector<float> all;
    for (const ChannelGroups& groups : GroupSizes()) {
      Images images(groups);
      images.Run(0, groups.groups);
      const std::vector<float> some = images.All();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  });
}

}  // namespace
}  // namespace penstock::vec
