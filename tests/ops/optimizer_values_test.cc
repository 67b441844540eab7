// Values of updates that the corpus has no case for.
#include <gtest/gtest.h>

#include <cmath>

#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

// AvgSquaredGradOut 4; a step of 2 by the old average of 16, and a new average of 10.
TEST(Adadelta, StepsByTheAverageThatStandsThereWhenItIsTaken) {
  const auto op = [](const std::string& average_out) {
    return Op("adadelta")
        .AddInput("Param", {"p"})
        .AddInput("Grad", {"g"})
        .AddInput("AvgSquaredGrad", {"grads"})
        .AddInput("AvgSquaredUpdate", {"steps"})
        .AddOutput("ParamOut", {"p"})
        .AddOutput("AvgSquaredGradOut", {"grads"})
        .AddOutput("AvgSquaredUpdateOut", {average_out})
        .Set("rho", 0.5f)
        .Set("epsilon", 0.0f);
  };
  const auto one = [](float value) { return TensorOf<float>({1}, {value}); };
  const Tensors inputs = {{"p", one(5)}, {"g", one(1)}, {"grads", one(7)}, {"steps", one(16)}};
  for (const char* average_out : {"steps", "apart"}) {
    const Result<Tensors> made = RunOp(AllOps(), op(average_out), inputs);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    EXPECT_FLOAT_EQ(made->at("grads").Span<float>()[0], 4);
    EXPECT_FLOAT_EQ(made->at(average_out).Span<float>()[0], 10);
    const float step = std::string(average_out) == "apart" ? 2.0f : std::sqrt(10.0f / 4.0f);
    EXPECT_FLOAT_EQ(made->at("p").Span<float>()[0], 5 - step) << average_out;
  }
}

}  // namespace
}  // namespace penstock::test
