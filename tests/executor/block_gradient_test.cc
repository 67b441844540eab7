// Gradients through blocks and arrays for which the corpus has no program, compared with finite differences.
#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "tests/executor/control_gradients.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

// A program in text form; the test differentiates its variable `loss`.
ControlCase TextCase(const std::string& text, const Arrays& feeds) {
  Result<Program> program = ParseText(text, "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  ControlCase c;
  c.name = text;
  c.json = {{"outputs", {"loss"}}, {"params", nlohmann::json::array()}, {"feeds", 1}};
  c.arrays = feeds;
  c.main = *std::move(program);
  return c;
}

void ExpectTextDifferences(const std::string& text, const Arrays& feeds, const std::vector<std::string>& of) {
  const ControlCase c = TextCase(text, feeds);
  ExpectDifferences(c, Differentiated(c, std::nullopt), 0, of);
}

TEST(BlockGradient, RestoresTheOrderOfReorderedSequences) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[?, 2] lod=1
  data y : f32[?, 2]
  var t : rank_table
  t = lod_rank_table(X=x)
  r : f32[?, 2] = reorder_lod_tensor_by_rank(X=x, RankTable=t)
  p : f32[?, 2] = elementwise_mul(X=r, Y=y)
  loss : f32[1] = mean(X=p)
}
)";
  ExpectTextDifferences(kText,
                        {{"f0:x", Ramp(DType::kFp32, {6, 2}, 1, 0.5)},
                         {"f0_lens:x", TensorOf<std::int64_t>({3}, {1, 3, 2})},
                         {"f0:y", Ramp(DType::kFp32, {6, 2}, -2, 0.7)}},
                        {"x", "y"});
}

TEST(BlockGradient, SplitsStackedElements) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[2, 3]
  data y : f32[2, 3]
  data w : f32[2, 3, 2]
  i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  j : i64[1] = fill_constant() {shape=[1l], value=1.0, dtype=3}
  a : array<f32[2, 3]> = write_to_array(X=x, I=i)
  a = write_to_array(X=y, I=j)
  (Out=[z : f32[2, 3, ?]], OutIndex=[n : i32[?]]) = tensor_array_to_tensor(X=a) {axis=2, use_stack=true}
  p : f32[2, 3, ?] = elementwise_mul(X=z, Y=w)
  loss : f32[1] = mean(X=p)
}
)";
  ExpectTextDifferences(kText,
                        {{"f0:x", Ramp(DType::kFp32, {2, 3}, 1, 0.5)},
                         {"f0:y", Ramp(DType::kFp32, {2, 3}, -1, 0.3)},
                         {"f0:w", Ramp(DType::kFp32, {2, 3, 2}, 0, 0.4)}},
                        {"x", "y"});
}

// Each iteration reads the single element and overwrites it: its gradients before and after the write differ.
TEST(BlockGradient, AnOverwrittenElementHasAGradientPerValue) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[2]
  var s : step_scopes
  zero : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  n : i64[1] = fill_constant() {shape=[1l], value=2.0, dtype=3}
  a : array<f32[2]> = write_to_array(X=x, I=zero)
  more : bool[1] = less_than(X=i, Y=n)
  (Out=[a, i, more], StepScopes=[s]) = while(X=[a, i, n, zero], Condition=[more]) {sub_block=^1}
  z : f32[2] = read_from_array(X=a, I=zero)
  loss : f32[1] = mean(X=z)
}
block 1 in 0 {
  r : f32[2] = read_from_array(X=a, I=zero)
  q : f32[2] = square(X=r)
  a = write_to_array(X=q, I=zero)
  i = increment(X=i) {step=1.0}
  more = less_than(X=i, Y=n)
}
)";
  ExpectTextDifferences(kText, {{"f0:x", TensorOf<float>({2}, {0.5, -1.25})}}, {"x"});
}

TEST(BlockGradient, AnElementReadTwiceSumsTwoGradients) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[2]
  data y : f32[2]
  i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  j : i64[1] = fill_constant() {shape=[1l], value=1.0, dtype=3}
  a : array<f32[2]> = write_to_array(X=x, I=i)
  a = write_to_array(X=y, I=j)
  r : f32[2] = read_from_array(X=a, I=i)
  q : f32[2] = read_from_array(X=a, I=i)
  s : f32[2] = read_from_array(X=a, I=j)
  p : f32[2] = elementwise_mul(X=r, Y=q)
  o : f32[2] = elementwise_mul(X=p, Y=s)
  loss : f32[1] = mean(X=o)
}
)";
  ExpectTextDifferences(
      kText, {{"f0:x", TensorOf<float>({2}, {0.5, -1.25})}, {"f0:y", TensorOf<float>({2}, {2, 3})}},
      {"x", "y"});
}

TEST(BlockGradient, StatesPropagateInBothDirections) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[3, 2]
  data h : f32[2]
  var s : step_scopes
  var o : f32[3, 2]
  (outputs=[o], step_scopes=[s]) = recurrent(inputs=[x], initial_states=[h]) {
    sub_block=^1, has_states=true, ex_states=["m"], states=["n"], reverse=false}
  q : f32[3, 2] = square(X=o)
  loss : f32[1] = mean(X=q)
}
block 1 in 0 {
  var x : f32[2]
  var m : f32[2]
  t : f32[2] = elementwise_mul(X=x, Y=m)
  u : f32[2] = elementwise_add(X=t, Y=x)
  n : f32[2] = rnn_memory_helper(X=u)
  o : f32[2] = rnn_memory_helper(X=u)
}
)";
  for (const char* reverse : {"false", "true"}) {
    std::string text = kText;
    text.replace(text.find("reverse=false"), 13, StrCat("reverse=", reverse));
    ExpectTextDifferences(
        text,
        {{"f0:x", Scattered(DType::kFp32, {3, 2}, -1, 1)}, {"f0:h", TensorOf<float>({2}, {0.5, -0.75})}},
        {"x", "h"});
  }
}

// The incoming gradient, which is one summand if there is a use before the block, belongs to the value after
// it.
TEST(BlockGradient, VariablesReadAndOverwrittenByABlockAreSupported) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[2]
  data b : bool[1]
  var s : step_scopes
  y : f32[2] = scale(X=x) {scale=1.0}
  before : f32[2] = scale(X=y) {scale=2.0}
  (Out=[y], Scope=[s]) = conditional_block(Cond=[b], Input=[y]) {sub_block=^1, is_scalar_condition=true}
  both : f32[2] = elementwise_add(X=y, Y=before)
  loss : f32[1] = mean(X=$)
}
block 1 in 0 {
  q : f32[2] = square(X=y)
  r : f32[2] = scale(X=y) {scale=3.0}
  z : f32[2] = elementwise_add(X=q, Y=r)
  y = assign(X=z)
}
)";
  for (const char* of : {"y", "both"}) {
    std::string text = kText;
    text.replace(text.find('$'), 1, of);
    for (const bool holds : {true, false}) {
      ExpectTextDifferences(
          text, {{"f0:x", TensorOf<float>({2}, {0.5, -1.25})}, {"f0:b", TensorOf<bool>({1}, {holds})}},
          {"x"});
    }
  }
}

TEST(BlockGradient, VariablesOverwrittenByALoopAreSupported) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[2]
  data n : i64[1]
  var s : step_scopes
  i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  y : f32[2] = scale(X=x) {scale=1.0}
  before : f32[2] = scale(X=y) {scale=2.0}
  c : bool[1] = less_than(X=i, Y=n)
  (Out=[c, i, y], StepScopes=s) = while(X=[i, y, n], Condition=c) {sub_block=^1}
  both : f32[2] = elementwise_add(X=y, Y=before)
  loss : f32[1] = mean(X=both)
}
block 1 in 0 {
  z : f32[2] = tanh(X=y)
  y = assign(X=z)
  i = increment(X=i) {step=1.0}
  c = less_than(X=i, Y=n)
}
)";
  const Tensor x = TensorOf<float>({2}, {0.5, -1.25});
  for (const std::int64_t rounds : {0, 1, 3})
    ExpectTextDifferences(kText, {{"f0:x", x}, {"f0:n", TensorOf<std::int64_t>({1}, {rounds})}}, {"x"});
}

}  // namespace
}  // namespace penstock::test
