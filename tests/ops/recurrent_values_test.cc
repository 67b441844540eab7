// Recurrent ops and the conditional random field compute as in Fluid in situations for which the corpus has
// no case.
#include <gtest/gtest.h>

#include <cmath>

#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

// A step from no state: the update gate times the candidate. The input of the gate, 20, counts as 13.
TEST(Gru, ClipsTheInputOfItsSigmoids) {
  const Op op = Op("gru")
                    .AddInput("Input", {"Input"})
                    .AddInput("Weight", {"Weight"})
                    .AddOutput("BatchGate", {"BatchGate"})
                    .AddOutput("BatchResetHiddenPrev", {"BatchResetHiddenPrev"})
                    .AddOutput("BatchHidden", {"BatchHidden"})
                    .AddOutput("Hidden", {"Hidden"});
  Tensor input = TensorOf<double>({1, 3}, {20, 0, 1});
  input.set_lod({{0, 1}});
  const Result<Tensors> out =
      RunOp(AllOps(), op, {{"Input", input}, {"Weight", TensorOf<double>({1, 3}, {0, 0, 0})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_NEAR(out->at("Hidden").Data<double>()[0], std::tanh(1.0) / (1 + std::exp(-13.0)), 1e-12);
}

TEST(LinearChainCrf, ComputesExponentialsOfPaddingRows) {
  Op op("linear_chain_crf");
  for (const char* slot : {"Emission", "Transition", "Label", "Length"}) op.AddInput(slot, {slot});
  for (const char* slot : {"Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"})
    op.AddOutput(slot, {slot});
  const Result<Tensors> out = RunOp(AllOps(), op,
                                    {{"Emission", TensorOf<double>({1, 2, 2}, {1, 2, 5, 3})},
                                     {"Transition", TensorOf<double>({4, 2}, {0, 0, 0, 0, 0, 0, 0, 0})},
                                     {"Label", TensorOf<std::int64_t>({1, 2, 1}, {0, 0})},
                                     {"Length", TensorOf<std::int64_t>({1, 1}, {1})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  const Tensor expected = TensorOf<double>({1, 2, 2}, {std::exp(-1.0), 1, 1, std::exp(-2.0)});
  EXPECT_TRUE(Near(out->at("EmissionExps"), expected, 1e-12, 0).ok());
  EXPECT_EQ(out->at("Alpha").Data<double>()[2], 0);
}

}  // namespace
}  // namespace penstock::test
