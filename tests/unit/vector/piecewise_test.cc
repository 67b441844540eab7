#include "framework/vector/piecewise.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

struct Forward {
  const char* name;
  std::function<void(const float*, float*, std::size_t)> function;
  float (*definition)(float);
};
struct Gradient {
  const char* name;
  std::function<void(const float*, const float*, float*, std::size_t)> function;
  float (*definition)(float x, float dy);  // of an x that is a number
};

float Bounded(float x, float least, float most) { return std::min(std::max(x, least), most); }

const std::vector<Forward>& Forwards() {
  static const std::vector<Forward> all = {
      {"relu", Relu, [](float x) { return x <= 0 ? 0 : x; }},
      {"leaky_relu", [](auto x, auto y, auto n) { LeakyRelu(0.1f, x, y, n); },
       [](float x) { return x > 0 ? x : Times(0.1f, x); }},
      {"clip", [](auto x, auto y, auto n) { Clip(-0.5f, 0.7f, x, y, n); },
       [](float x) { return Bounded(x, -0.5f, 0.7f); }},
      {"hard_sigmoid", [](auto x, auto y, auto n) { HardSigmoid(0.2f, 0.5f, x, y, n); },
       [](float x) { return Bounded(Times(0.2f, x) + 0.5f, 0, 1); }},
      {"hard_swish", [](auto x, auto y, auto n) { HardSwish(0.3f, 0.6f, 0.7f, x, y, n); },
       [](float x) { return Times(x, Bounded(x + 0.3f, 0, 0.6f)) / 0.7f; }},
      {"softshrink", [](auto x, auto y, auto n) { SoftShrink(0.25f, x, y, n); },
       [](float x) { return x > 0.25f    ? x - 0.25f
                            : x < -0.25f ? x + 0.25f
                                         : 0; }},
      {"floor", Floor, [](float x) { return std::floor(x); }},
      {"ceil", Ceil, [](float x) { return std::ceil(x); }},
      {"round", Round, [](float x) { return std::nearbyint(x); }},
  };
  return all;
}

float HardSwishSlope(float x, float dy) {
  const float ramp = x + 0.3f;
  if (ramp <= 0) return 0;
  return Times(dy, ramp < 0.6f ? x + ramp : 0.6f) / 0.7f;
}

const std::vector<Gradient>& Gradients() {
  static const std::vector<Gradient> all = {
      {"above", [](auto x, auto dy, auto dx, auto n) { AboveGrad(0.25f, x, dy, dx, n); },
       [](float x, float dy) { return x > 0.25f ? dy : 0; }},
      {"leaky_relu", [](auto x, auto dy, auto dx, auto n) { LeakyReluGrad(0.1f, x, dy, dx, n); },
       [](float x, float dy) { return x > 0 ? dy : Times(0.1f, dy); }},
      {"between", [](auto x, auto dy, auto dx, auto n) { BetweenGrad(-0.5f, 0.7f, 0.2f, x, dy, dx, n); },
       [](float x, float dy) { return x > -0.5f && x < 0.7f ? Times(0.2f, dy) : 0; }},
      {"hard_swish", [](auto x, auto dy, auto dx, auto n) { HardSwishGrad(0.3f, 0.6f, 0.7f, x, dy, dx, n); },
       HardSwishSlope},
      {"outside", [](auto x, auto dy, auto dx, auto n) { OutsideGrad(0.25f, x, dy, dx, n); },
       [](float x, float dy) { return x > 0.25f || x < -0.25f ? dy : 0; }},
      {"abs", AbsGrad, [](float x, float dy) { return x > 0   ? dy
                                                      : x < 0 ? -dy
                                                              : 0; }},
  };
  return all;
}

// Numbers of all pieces, their ends, infinities, and NaN at the end.
std::vector<float> AroundBounds() {
  std::vector<float> x = Random(101, 0.6f);
  for (const float end : {0.0f, -0.0f, -0.5f, 0.7f, 0.25f, -0.3f, 0.3f, -0.25f, 0.5f, 1.5f, -2.5f, 1e-40f,
                          -1e-40f, 8388607.5f, -8388609.0f, 3e38f, kInfinity, -kInfinity, kNaN})
    x.push_back(end);
  return x;
}

TEST(Piecewise, FunctionsEqualTheirDefinitions) {
  const std::vector<float> x = AroundBounds();
  OnEachIsa([&](Isa) {
    for (const Forward& each : Forwards()) {
      std::vector<float> wanted(x.size()), whole(x.size()), parts(x.size()), self = x;
      std::ranges::transform(x, wanted.begin(), each.definition);
      each.function(x.data(), whole.data(), x.size());
      EXPECT_TRUE(std::isnan(whole.back())) << each.name;
      wanted.back() = whole.back();
      EXPECT_TRUE(SameBytes(whole, wanted)) << each.name;
      for (std::size_t i = 0; i < x.size(); i += 7)
        each.function(x.data() + i, parts.data() + i, std::min<std::size_t>(7, x.size() - i));
      EXPECT_TRUE(SameBytes(whole, parts)) << each.name << " in parts";
      each.function(self.data(), self.data(), self.size());
      EXPECT_TRUE(SameBytes(whole, self)) << each.name << " in place";
    }
  });
}

TEST(Piecewise, GradientsEqualTheirDefinitions) {
  const std::vector<float> x = AroundBounds();
  std::vector<float> dy = Random(x.size(), 2);
  dy[3] = kInfinity;  // times 0 it would be NaN
  OnEachIsa([&](Isa) {
    for (const Gradient& each : Gradients()) {
      std::vector<float> wanted(x.size()), whole(x.size()), self = dy;
      std::ranges::transform(x, dy, wanted.begin(), each.definition);
      each.function(x.data(), dy.data(), whole.data(), x.size());
      EXPECT_TRUE(std::isnan(whole.back())) << each.name;
      wanted.back() = whole.back();
      EXPECT_TRUE(SameBytes(whole, wanted)) << each.name;
      each.function(x.data(), self.data(), self.data(), x.size());
      EXPECT_TRUE(SameBytes(whole, self)) << each.name << " in place";
    }
  });
}

TEST(Piecewise, GradientOfMaximumGoesToEqualElements) {
  std::vector<float> x = Random(101, 1), y = Random(102, 1), dx(101), same(101);
  y.resize(x.size());
  const std::vector<float> dy = Random(x.size(), 2);
  for (std::size_t i = 0; i < x.size(); i += 3) y[i] = x[i];
  x[0] = 0.0f, y[0] = -0.0f;  // equal
  x[3] = y[3] = kInfinity;
  x[4] = kNaN, y[7] = kNaN, x[9] = y[9] = kNaN;
  OnEachIsa([&](Isa) {
    EqualGrad(x.data(), y.data(), dy.data(), dx.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) || std::isnan(y[i])) {
        EXPECT_TRUE(std::isnan(dx[i])) << i;
      } else {
        EXPECT_EQ(dx[i], x[i] == y[i] ? dy[i] : 0) << i;
      }
    }
    for (const float all : {x[5], kNaN}) {
      EqualGrad(x.data(), all, 2, dx.data(), x.size());
      const std::vector<float> each(x.size(), all), two(x.size(), 2);
      EqualGrad(x.data(), each.data(), two.data(), same.data(), x.size());
      EXPECT_TRUE(SameBytes(dx, same)) << all;
    }
  });
}

TEST(Piecewise, GradientOfAlphaIsSummedInLanes) {
  for (const std::size_t count : {0, 1, 31, 32, 33, 100, 1000}) {
    std::vector<float> x = Random(count, 1);
    const std::vector<float> dy = Random(count + 1, 1);
    float lanes[32] = {};
    for (std::size_t i = 0; i < count; ++i) lanes[i % 32] += x[i] > 0 ? 0 : Times(x[i], dy[i]);
    for (std::size_t width = 16; width > 0; width /= 2) {
      for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    OnEachIsa([&](Isa) { EXPECT_EQ(LeakyReluAlphaGrad(x.data(), dy.data(), count), lanes[0]) << count; });
    if (count == 0) continue;
    x.back() = kNaN;
    OnEachIsa([&](Isa) { EXPECT_TRUE(std::isnan(LeakyReluAlphaGrad(x.data(), dy.data(), count))); });
  }
}

}  // namespace
}  // namespace penstock::vec
