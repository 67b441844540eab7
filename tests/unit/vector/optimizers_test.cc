#include "framework/vector/optimizers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

constexpr std::size_t kCount = 77;

// The arrays of a step: the parameter and up to three states, before and after it.
struct State {
  std::vector<float> param = Random(kCount, 1), grad = Random(kCount, 1, 0.1f);
  std::vector<float> square = Positive(), moment = Random(kCount, 0.1f), mean = Random(kCount, 0.01f);
  std::vector<float> param_out = std::vector<float>(kCount), square_out = param_out, moment_out = param_out,
                     mean_out = param_out;

  static std::vector<float> Positive() {
    std::vector<float> all = Random(kCount, 1);
    for (float& each : all) each = std::abs(each) + 0.01f;
    return all;
  }
  Moments moments() {
    return {0.9f, 0.99f, moment.data(), square.data(), moment_out.data(), square_out.data()};
  }
  AdamStep adam() { return {moments(), 0.01f, 1e-6f, param.data(), param_out.data()}; }
  LambStep lamb() { return {moments(), 1e-6f, 0.02f, param.data(), param_out.data()}; }
  AdamMissedSteps missed() {
    return {
        0.5f, 0.7f, 0.1f, {0.3f, 0.2f, 0.1f, 0.05f}, param_out.data(), moment_out.data(), square_out.data()};
  }
  AdagradStep adagrad() {
    return {0.8f, 0.2f, 0.01f, 1e-6f, param.data(), square.data(), param_out.data(), square_out.data()};
  }
  RmspropStep rmsprop(bool centered) {
    return {0.9f,
            1e-2f,
            0.8f,
            0.01f,
            param.data(),
            square.data(),
            moment.data(),
            centered ? mean.data() : nullptr,
            param_out.data(),
            square_out.data(),
            moment_out.data(),
            mean_out.data()};
  }
  // Each step, its outputs one after the other; in parts of `part` elements.
  std::vector<float> All(std::size_t part, const float* gradients) {
    std::vector<float> all;
    const auto run = [&](const auto& step) {
      for (std::size_t i = 0; i < kCount; i += part)
        Update(step, i, std::min(part, kCount - i), gradients == nullptr ? nullptr : gradients + i);
      for (const std::vector<float>* out : {&param_out, &square_out, &moment_out, &mean_out})
        all.insert(all.end(), out->begin(), out->end());
    };
    run(adam());
    run(lamb());
    run(adagrad());
    run(rmsprop(false));
    run(rmsprop(true));
    return all;
  }
};

TEST(Optimizers, MatchTheirDefinitions) {
  OnEachIsa([](Isa) {
    State s;
    Update(s.adam(), 0, kCount, s.grad.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      const float g = s.grad[i];
      const float m1 = Times(0.9f, s.moment[i]) + Times(1 - 0.9f, g);
      const float m2 = Times(0.99f, s.square[i]) + Times(Times(1 - 0.99f, g), g);
      EXPECT_EQ(s.moment_out[i], m1);
      EXPECT_EQ(s.square_out[i], m2);
      EXPECT_EQ(s.param_out[i], s.param[i] - Times(0.01f, m1 / (std::sqrt(m2) + 1e-6f)));
    }
    Update(s.lamb(), 0, kCount, s.grad.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      const float direction = s.moment_out[i] / (std::sqrt(s.square_out[i]) + 1e-6f);
      EXPECT_EQ(s.param_out[i], direction + Times(0.02f, s.param[i]));
    }
    Update(s.adagrad(), 0, kCount, s.grad.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      const float m = Times(0.8f, s.square[i]) + Times(Times(0.2f, s.grad[i]), s.grad[i]);
      EXPECT_EQ(s.square_out[i], m);
      EXPECT_EQ(s.param_out[i], s.param[i] - Times(0.01f, s.grad[i]) / (std::sqrt(m) + 1e-6f));
    }
    for (const bool centered : {false, true}) {
      Update(s.rmsprop(centered), 0, kCount, s.grad.data());
      for (std::size_t i = 0; i < kCount; ++i) {
        const float g = s.grad[i], a = Times(0.9f, s.mean[i]) + Times(1 - 0.9f, g);
        const float square = Times(0.9f, s.square[i]) + Times(Times(1 - 0.9f, g), g);
        const float spread = centered ? square - Times(a, a) : square;
        const float m = Times(0.8f, s.moment[i]) + Times(0.01f, g) / std::sqrt(spread + 1e-2f);
        EXPECT_EQ(s.square_out[i], square);
        EXPECT_EQ(s.moment_out[i], m);
        EXPECT_EQ(s.param_out[i], s.param[i] - m);
        if (centered) {
          EXPECT_EQ(s.mean_out[i], a);
        }
      }
    }
  });
}

TEST(Optimizers, ResultsDoNotDependOnSplitOrInstructionSet) {
  CapIsa(Isa::kBase);
  const std::vector<float> base = State().All(kCount, State().grad.data());
  const std::vector<float> none = State().All(kCount, nullptr), zeros(kCount, 0.0f);
  OnEachIsa([&](Isa) {
    for (std::size_t part = 1; part <= 40; ++part)
      EXPECT_TRUE(SameBytes(State().All(part, State().grad.data()), base));
    EXPECT_TRUE(SameBytes(State().All(kCount, nullptr), none));
    EXPECT_TRUE(SameBytes(State().All(7, zeros.data()), none));
  });
}

TEST(Optimizers, MissedStepsOfAdamFollowTheirFormula) {
  const auto run = [](State& s) {
    s.param_out = s.param, s.moment_out = s.moment, s.square_out = s.square;
    Update(s.missed(), kCount);
  };
  CapIsa(Isa::kBase);
  State base;
  run(base);
  for (std::size_t i = 0; i < kCount; ++i) {
    const float divisor = std::sqrt(base.square[i]) + 0.1f, u = 0.1f / divisor;
    const float sum = 0.3f - u * (0.2f - u * (0.1f - u * 0.05f));
    EXPECT_EQ(base.param_out[i], base.param[i] - base.moment[i] / divisor * sum);
    EXPECT_EQ(base.moment_out[i], base.moment[i] * 0.5f);
    EXPECT_EQ(base.square_out[i], base.square[i] * 0.7f);
  }
  OnEachIsa([&](Isa) {
    State each;
    run(each);
    EXPECT_TRUE(SameBytes(each.param_out, base.param_out) && SameBytes(each.moment_out, base.moment_out) &&
                SameBytes(each.square_out, base.square_out));
  });
}

TEST(Optimizers, WorkInPlaceAndPropagateNaN) {
  OnEachIsa([](Isa) {
    State apart, self;
    apart.grad[3] = self.grad[3] = std::numeric_limits<float>::quiet_NaN();
    Update(apart.adam(), 0, kCount, apart.grad.data());
    AdamStep step = self.adam();
    step.param_out = self.param.data();
    step.moments.moment1_out = self.moment.data();
    step.moments.moment2_out = self.square.data();
    Update(step, 0, kCount, self.grad.data());
    EXPECT_TRUE(SameBytes(apart.param_out, self.param));
    EXPECT_TRUE(SameBytes(apart.square_out, self.square));
    EXPECT_TRUE(std::isnan(self.param[3]) && std::isnan(self.moment[3]));
    EXPECT_EQ(std::count_if(self.param.begin(), self.param.end(), [](float p) { return std::isnan(p); }), 1);
  });
}

}  // namespace
}  // namespace penstock::vec
