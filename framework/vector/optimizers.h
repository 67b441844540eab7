// Steps of optimizers that take roots and quotients. The others are as fast in plain loops.
//
// Update changes elements [begin, begin + count) of the arrays; `grad` holds their gradients, or is null, and
// they are 0. Results may be written in place. Operations are those of the formulas, each rounded once and
// none fused: bytes are the same on every instruction set and for any split. NaN and infinities take their
// course.
#pragma once

#include <cstddef>

namespace penstock::vec {

// m1 = beta1 * moment1 + (1 - beta1) * g,  m2 = beta2 * moment2 + (1 - beta2) * g * g
struct Moments {
  float beta1, beta2;
  const float *moment1, *moment2;
  float *moment1_out, *moment2_out;
};

// param - rate * (m1 / (sqrt(m2) + epsilon))
struct AdamStep {
  Moments moments;
  float rate, epsilon;
  const float* param;
  float* param_out;
};
// Several such steps with gradients of 0 at once, in place, from sums of StepHistory (framework/op):
// d = sqrt(moment2) + epsilon,  u = epsilon / d
// param - moment1 / d * (sums[0] - u * (sums[1] - u * (sums[2] - u * sums[3])))
// moment1 * kept1,  moment2 * kept2
struct AdamMissedSteps {
  float kept1, kept2, epsilon;
  float sums[4];
  float *param, *moment1, *moment2;
};
// step = m1 / (sqrt(m2) + epsilon) + decay * param
struct LambStep {
  Moments moments;
  float epsilon, decay;
  const float* param;
  float* step;
};

// m = kept * moment + added * g * g,  param - rate * g / (sqrt(m) + epsilon)
struct AdagradStep {
  float kept, added, rate, epsilon;
  const float *param, *moment;
  float *param_out, *moment_out;
};

// s = decay * square + (1 - decay) * g * g
// a = decay * mean + (1 - decay) * g if `mean` is given, else 0
// m = momentum * moment + rate * g / sqrt(s - a * a + epsilon),  param - m
struct RmspropStep {
  float decay, epsilon, momentum, rate;
  const float *param, *square, *moment, *mean;
  float *param_out, *square_out, *moment_out, *mean_out;
};

void Update(const AdamStep& step, std::size_t begin, std::size_t count, const float* grad);
void Update(const AdamMissedSteps& steps, std::size_t count);
void Update(const LambStep& step, std::size_t begin, std::size_t count, const float* grad);
void Update(const AdagradStep& step, std::size_t begin, std::size_t count, const float* grad);
void Update(const RmspropStep& step, std::size_t begin, std::size_t count, const float* grad);

}  // namespace penstock::vec
