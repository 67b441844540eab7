#include "framework/vector/pooling.h"

#include <cmath>
#include <limits>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

struct Pooled {
  std::vector<float> out, dx;
};

// By the definition, window by window.
Pooled Defined(std::size_t planes, std::size_t height, std::size_t width, const std::vector<float>& x,
               const std::vector<float>& dout) {
  Pooled p{{}, std::vector<float>(x.size(), 0.0f)};
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::size_t i = 0; i < height / 2; ++i) {
      for (std::size_t j = 0; j < width / 2; ++j) {
        const std::size_t corner = (plane * height + 2 * i) * width + 2 * j;
        std::size_t best = corner;
        for (const std::size_t at : {corner + 1, corner + width, corner + width + 1}) {
          if (!std::isnan(x[best]) && (x[at] > x[best] || std::isnan(x[at]))) best = at;
        }
        p.dx[best] = dout[p.out.size()];
        p.out.push_back(x[best]);
      }
    }
  }
  return p;
}

TEST(MaxPool2x2, MatchesTheDefinitionWithTiesAndNaN) {
  for (std::size_t height = 1; height < 6; ++height) {
    for (std::size_t width = 1; width < 75; ++width) {
      const std::size_t planes = 3, windows = planes * (height / 2) * (width / 2);
      std::vector<float> x = Random(planes * height * width, 2);
      for (float& each : x) each = std::round(each);  // ties
      for (std::size_t i = 3; i < x.size(); i += 11) x[i] = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t i = 5; i < x.size(); i += 13) x[i] = -std::numeric_limits<float>::infinity();
      const std::vector<float> dout = Random(windows, 1);
      const Pooled wanted = Defined(planes, height, width, x, dout);
      OnEachIsa([&](Isa) {
        std::vector<float> out(windows), dx(x.size(), 7);
        MaxPool2x2(planes, height, width, x.data(), out.data());
        for (std::size_t i = 0; i < windows; ++i)
          EXPECT_TRUE(out[i] == wanted.out[i] || (std::isnan(out[i]) && std::isnan(wanted.out[i])));
        MaxPool2x2Grad(planes, height, width, x.data(), out.data(), dout.data(), dx.data());
        EXPECT_EQ(dx, wanted.dx) << height << " x " << width;
      });
    }
  }
}

TEST(MaxPool2x2, GradientOutsideTheWindowIsZero) {
  const std::vector<float> x = {1, 2, 3, 4}, out = {5}, dout = {1};
  OnEachIsa([&](Isa) {
    std::vector<float> dx(4, 7);
    MaxPool2x2Grad(1, 2, 2, x.data(), out.data(), dout.data(), dx.data());
    EXPECT_EQ(dx, std::vector<float>(4, 0.0f));
  });
}

TEST(MaxOfWindow, MatchesTheDefinitionWithTiesAndNaN) {
  for (const std::size_t channels : {1, 5, 16, 20, 70}) {
    const ChannelsWindow window = {3, 2, 4 * channels, channels};
    std::vector<float> x = Random(3 * 4 * channels, 2);
    for (float& each : x) each = std::round(each);  // ties
    for (std::size_t i = 3; i < x.size(); i += 11) x[i] = kNaN;
    for (std::size_t i = 5; i < x.size(); i += 13) x[i] = -kInfinity;
    const std::vector<float> dout = Random(channels, 1), start = Random(x.size(), 1);
    std::vector<float> wanted(channels), slopes = start;
    for (std::size_t c = 0; c < channels; ++c) {
      std::size_t best = c;
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t i = 0; i < 2; ++i) {
          const std::size_t at = (row * 4 + i) * channels + c;
          if (!std::isnan(x[best]) && (x[at] > x[best] || std::isnan(x[at]))) best = at;
        }
      }
      wanted[c] = x[best];
      slopes[best] += dout[c];
    }
    OnEachIsa([&](Isa) {
      std::vector<float> out(channels), dx = start;
      MaxOfWindow(window, x.data(), out.data());
      for (std::size_t c = 0; c < channels; ++c)
        EXPECT_TRUE(out[c] == wanted[c] || (std::isnan(out[c]) && std::isnan(wanted[c])));
      AddMaxGradOfWindow(window, x.data(), out.data(), dout.data(), dx.data());
      EXPECT_EQ(dx, slopes) << channels;
    });
  }
}

// Of one plane, window by window.
Pooled Defined(const PoolAxis& rows, const PoolAxis& columns, const std::vector<float>& x,
               const std::vector<float>& dout) {
  Pooled p{{}, std::vector<float>(x.size(), 0.0f)};
  for (std::size_t o = 0; o < rows.windows; ++o) {
    for (std::size_t w = 0; w < columns.windows; ++w) {
      std::size_t best = x.size();
      for (std::size_t i = o * rows.stride; i < o * rows.stride + rows.kernel; ++i) {
        for (std::size_t j = w * columns.stride; j < w * columns.stride + columns.kernel; ++j) {
          if (i < rows.padding || i - rows.padding >= rows.extent) continue;
          if (j < columns.padding || j - columns.padding >= columns.extent) continue;
          const std::size_t at = (i - rows.padding) * columns.extent + j - columns.padding;
          if (best == x.size() || (!std::isnan(x[best]) && (x[at] > x[best] || std::isnan(x[at])))) best = at;
        }
      }
      p.dx[best] += dout[p.out.size()];
      p.out.push_back(x[best]);
    }
  }
  return p;
}

// The most windows that touch the axis.
std::size_t WindowsOf(const PoolAxis& axis) { return (axis.extent + axis.padding - 1) / axis.stride + 1; }

void ExpectAsDefined(PoolAxis rows, PoolAxis columns) {
  rows.windows = WindowsOf(rows);
  columns.windows = WindowsOf(columns);
  const std::size_t windows = rows.windows * columns.windows;
  std::vector<float> x = Random(rows.extent * columns.extent, 2);
  for (float& each : x) each = std::round(each);  // ties
  for (std::size_t i = 3; i < x.size(); i += 31) x[i] = kNaN;
  for (std::size_t i = 5; i < x.size(); i += 13) x[i] = -kInfinity;
  const std::vector<float> dout = Random(windows, 1);
  const Pooled wanted = Defined(rows, columns, x, dout);
  OnEachIsa([&](Isa) {
    std::vector<float> out(windows), dx(x.size(), 7);
    MaxPool(rows, columns, x.data(), out.data());
    for (std::size_t i = 0; i < windows; ++i)
      EXPECT_TRUE(out[i] == wanted.out[i] || (std::isnan(out[i]) && std::isnan(wanted.out[i])));
    MaxPoolGrad(rows, columns, x.data(), out.data(), dout.data(), dx.data());
    EXPECT_EQ(dx, wanted.dx) << rows.extent << " x " << columns.extent << ", stride " << columns.stride;
  });
}

TEST(MaxPool, MatchesTheDefinitionWithTiesAndNaN) {
  for (std::size_t width = 1; width < 80; width += 3) {
    for (std::size_t stride = 1; stride < 4; ++stride) {
      for (std::size_t kernel = 1; kernel < 6; ++kernel) {
        for (std::size_t padding = 0; padding < kernel; ++padding) {
          const PoolAxis rows = {width % 7 + 1, 0, kernel, 3 - stride / 2, kernel / 2};
          ExpectAsDefined(rows, {width, 0, kernel, stride, padding});
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::vec
