// Values of losses at the limits of their range, for which the corpus has no case.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

// As softmax followed by cross_entropy.
TEST(SoftmaxWithCrossEntropy, ClampsScoresTo64BelowTheLargest) {
  const Tensors inputs = {{"Logits", TensorOf<float>({3, 2}, {0, -1000, -70, 0, 5, -59})},
                          {"Label", TensorOf<std::int64_t>({3, 1}, {1, 0, 1})}};
  const Op op = WithSlots("softmax_with_cross_entropy", {"Logits", "Label"}, {"Softmax", "Loss"});
  ExpectValues(RunOne(op, inputs, "Loss"), {64, 64, 64});
  EXPECT_GT(ElementAt(RunOne(op, inputs, "Softmax"), 1), 0);
  const Tensors soft = {{"Logits", TensorOf<double>({1, 2}, {0, -1000})},
                        {"Label", TensorOf<double>({1, 2}, {0.5, 0.5})}};
  ExpectValues(RunOne(Op(op).Set("soft_label", true), soft, "Loss"), {32});
}

}  // namespace
}  // namespace penstock::test
