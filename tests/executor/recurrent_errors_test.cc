// recurrent with mismatched inputs, and without inputs.
#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock {
namespace {

using test::Ramp;

// o[t] = x[t] * y[t] + the sum so far, which starts at h.
constexpr char kText[] = R"(program
block 0 {
  data x : f32[?, 2]
  data y : f32[?, 2]
  data h : f32[2]
  var s : step_scopes
  var o : f32[?, 2]
  (outputs=[o], step_scopes=[s]) = recurrent(inputs=[x, y], initial_states=[h]) {
    sub_block=^1, has_states=true, ex_states=["m"], states=["n"], reverse=false}
}
block 1 in 0 {
  var x : f32[2]
  var y : f32[2]
  var m : f32[2]
  t : f32[2] = elementwise_mul(X=x, Y=y)
  n : f32[2] = elementwise_add(X=t, Y=m)
  o : f32[2] = rnn_memory_helper(X=n)
}
)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

Result<std::vector<Variable>> RunSteps(const std::string& text, Dim x_rows, Dim y_rows) {
  const Result<Program> program = ParseText(text, "steps");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  const std::vector<exec::Feed> feeds = {{"x", Ramp(DType::kFp32, {x_rows, 2}, 1, 1)},
                                         {"y", Ramp(DType::kFp32, {y_rows, 2}, 1, 0)},
                                         {"h", Ramp(DType::kFp32, {2}, 0, 0)}};
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  return executor.Run(*program, scope, feeds, std::vector<std::string>{"o"});
}

std::string ErrorOf(const std::string& text, Dim x_rows, Dim y_rows) {
  const auto result = RunSteps(text, x_rows, y_rows);
  return result.ok() ? "no error" : result.status().message();
}

TEST(Recurrent, AccumulatesOverSteps) {
  const auto result = RunSteps(kText, 3, 3);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  const Tensor expected = test::TensorOf<float>({3, 2}, {1, 2, 4, 6, 9, 12});
  EXPECT_EQ(test::Near(*(*result)[0].If<Tensor>(), expected, 0, 0).ToString(), "ok");
}

TEST(Recurrent, ZeroStepsProduceNoRows) {
  const auto result = RunSteps(kText, 0, 0);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ((*result)[0].If<Tensor>()->shape(), (Shape{0, 2}));
  EXPECT_EQ(ErrorOf(Replaced(kText, "var o : f32[?, 2]", "var o : f32[?, ?]"), 0, 0),
            "recurrent: the inputs have no rows, so no step determines the shape of o, which is declared as "
            "[?, ?]");
}

TEST(Recurrent, InputsMustHaveEqualStepCounts) {
  EXPECT_EQ(ErrorOf(kText, 3, 2), "recurrent: input y has 2 rows; input x has 3");
}

TEST(Recurrent, AStepMustProduceItsState) {
  EXPECT_EQ(ErrorOf(Replaced(kText, "  o : f32[2] = rnn_memory_helper(X=n)\n", "  var o : f32[2]\n"), 2, 2),
            "recurrent: the block did not compute o in step 0");
  EXPECT_EQ(ErrorOf(Replaced(kText, R"(states=["n"])", R"(states=["none"])"), 2, 2),
            "recurrent: none has no value to begin step 1 with");
}

TEST(Recurrent, StatesMustCorrespond) {
  EXPECT_EQ(ErrorOf(Replaced(kText, R"(states=["n"])", R"(states=["n", "m"])"), 2, 2),
            "recurrent: there are 2 states, 1 ex_states and 1 initial_states; the numbers must be equal");
}

}  // namespace
}  // namespace penstock
