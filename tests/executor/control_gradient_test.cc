// Gradients through blocks and arrays: the ops that Fluid 1.8.5 appends, its numbers, and finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "framework/autodiff/backward.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tests/executor/control_case.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

// Where Fluid is wrong: an output of cond that no gradient op but `scale` reads loses its gradient.
const std::set<std::string> kWrongThere = {"cond_tuple"};
// Where it raises: an array of which only some elements have a gradient cannot be joined.
const std::set<std::string> kRaisesThere = {"lod_rank_table"};

Program WithGradient(const ControlCase& c) { return ProgramOf(ControlFolder() + c.name + ".grad.pb"); }

// The block that holds the gradients of forward block `block`.
int GradBlockOf(const Program& program, int block) {
  for (int b = 1; b < program.block_count(); ++b) {
    if (program.block(b).forward_block() == block) return b;
  }
  return 0;
}

bool Mentions(const Block& block, const std::string& name) {
  for (const OpEntry& entry : block.ops()) {
    for (const auto& names : {entry.op->InputNames(), entry.op->OutputNames()}) {
      if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    }
  }
  return false;
}

// The file does not say what needs no gradient: it is what has none in `whole`.
void MarkStops(Program& forward, const Program& whole) {
  for (int b = 0; b < forward.block_count(); ++b) {
    const Block& grads = whole.block(b == 0 ? 0 : GradBlockOf(whole, b));
    const std::vector<VarRef> vars = forward.block(b).vars();
    for (const VarRef& var : vars) {
      Var marked = *var;
      marked.facts.stop_gradient = !Mentions(grads, GradName(var->name));
      forward.MutableBlock(b).SetVar(std::move(marked));
    }
  }
}

// Where Fluid's own gradients do not tell: all floats need one.
void MarkIntegers(Program& program) {
  for (int b = 0; b < program.block_count(); ++b) {
    const std::vector<VarRef> vars = program.block(b).vars();
    for (const VarRef& var : vars) {
      Var marked = *var;
      marked.facts.stop_gradient = !var->type || var->type->dtype != DType::kFp32;
      program.MutableBlock(b).SetVar(std::move(marked));
    }
  }
}

Program Differentiated(const ControlCase& c, const std::optional<Program>& whole) {
  Program made = c.main;
  if (whole) {
    MarkStops(made, *whole);
  } else {
    MarkIntegers(made);
  }
  UniqueNames names;
  const auto result = AppendBackward(AllOps(), made, names,
                                     {.loss = c.json["outputs"][0].get<std::string>(),
                                      .parameters = c.json["params"].get<std::vector<std::string>>()});
  EXPECT_TRUE(result.ok()) << c.name << ": " << result.status().ToString();
  return made;
}

void ExpectSameBlocks(const ControlCase& c, const Program& made, const Program& expected) {
  SCOPED_TRACE(c.name);
  ASSERT_EQ(made.block_count(), expected.block_count());
  for (int b = 0; b < made.block_count(); ++b) {
    const Block &ours = made.block(b), &theirs = expected.block(b);
    EXPECT_EQ(ours.parent(), theirs.parent()) << "block " << b;
    EXPECT_EQ(ours.forward_block(), theirs.forward_block()) << "block " << b;
    for (std::size_t i = 0; i < std::min(ours.ops().size(), theirs.ops().size()); ++i) {
      ASSERT_TRUE(ours.ops()[i].op->SameAs(*theirs.ops()[i].op))
          << "block " << b << " op " << i << "\n  made     "
          << PrintOp(*ours.ops()[i].op, PrintOptions::Everything()) << "\n  expected "
          << PrintOp(*theirs.ops()[i].op, PrintOptions::Everything());
    }
    EXPECT_EQ(ours.ops().size(), theirs.ops().size()) << "block " << b;
    for (const VarRef& var : theirs.vars()) {
      const Var* own = ours.FindVar(var->name);
      ASSERT_NE(own, nullptr) << "block " << b << ": " << var->name << " is missing";
      EXPECT_TRUE(own->SameAs(*var)) << "block " << b << ": made " << PrintVar(*own) << ", expected "
                                     << PrintVar(*var);
    }
    for (const VarRef& var : ours.vars())
      EXPECT_NE(theirs.FindVar(var->name), nullptr)
          << "block " << b << ": " << var->name << " is not in Fluid's";
  }
}

TEST(ControlGradient, OpsAreAppendedAsByFluid) {
  const std::vector<std::string> names = ControlCases(".grad.pb");
  if (names.empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  for (const std::string& name : names) {
    if (kWrongThere.contains(name)) continue;
    const ControlCase c = LoadControlCase(name);
    const Program whole = WithGradient(c);
    ExpectSameBlocks(c, Differentiated(c, whole), whole);
  }
  EXPECT_GE(names.size(), 10u);
}

TEST(ControlGradient, NumbersAreFluids) {
  const std::vector<std::string> names = ControlCases(".grad.pb");
  if (names.empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  for (const std::string& name : names) {
    if (kWrongThere.contains(name) || kRaisesThere.contains(name)) continue;
    const ControlCase c = LoadControlCase(name);
    ExpectRuns(c, WithGradient(c), "g", c.json["grads"].get<std::vector<std::string>>());
  }
}

// The loss, for feeds of which one element of one variable was moved.
double Loss(const ControlCase& c, const std::vector<Feed>& feeds, const std::string& param,
            const Tensor& value) {
  Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  EXPECT_TRUE(executor.Run(c.startup, scope, {}, {}).ok());
  SetParams(c, scope);
  if (!param.empty()) SetTensor(scope, param, value);
  const std::vector<std::string> fetches = {c.json["outputs"][0].get<std::string>()};
  const auto got = executor.Run(c.main, scope, feeds, fetches);
  EXPECT_TRUE(got.ok()) << c.name << ": " << got.status().ToString();
  return got.ok() ? ElementAt(*(*got)[0].If<Tensor>(), 0) : 0;
}

void ExpectDifferences(const ControlCase& c, const Program& made, int k, const std::vector<std::string>& of) {
  Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  ASSERT_TRUE(executor.Run(c.startup, scope, {}, {}).ok());
  SetParams(c, scope);
  std::vector<std::string> fetches;
  for (const std::string& name : of) fetches.push_back(GradName(name));
  const auto grads = executor.Run(made, scope, FeedsOf(c, k), fetches);
  ASSERT_TRUE(grads.ok()) << c.name << ": " << grads.status().ToString();
  constexpr double kStep = 1e-2;
  for (std::size_t n = 0; n < of.size(); ++n) {
    const Tensor& grad = *(*grads)[n].If<Tensor>();
    for (std::int64_t i = 0; i < grad.count(); ++i) {
      double losses[2];
      for (const int side : {0, 1}) {
        std::vector<Feed> feeds = FeedsOf(c, k);
        const float moved = static_cast<float>(side == 0 ? -kStep : kStep);
        std::string param;
        Tensor value;
        const auto feed =
            std::find_if(feeds.begin(), feeds.end(), [&](const Feed& each) { return each.name == of[n]; });
        if (feed != feeds.end()) {
          feed->tensor.Data<float>()[i] += moved;
        } else {
          param = of[n];
          value = c.arrays.at("param:" + param).Clone();
          value.Data<float>()[i] += moved;
        }
        losses[side] = Loss(c, feeds, param, value);
      }
      EXPECT_NEAR(ElementAt(grad, i), (losses[1] - losses[0]) / (2 * kStep), 2e-3)
          << c.name << " feed set " << k << ": " << of[n] << "[" << i << "]";
    }
  }
}

TEST(ControlGradient, WhatFluidGetsWrongIsWhatDifferencesSay) {
  if (ControlCases().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  for (const char* name : {"cond_tuple", "lod_rank_table", "dynamic_rnn", "while_param"}) {
    const ControlCase c = LoadControlCase(name);
    const bool told = !kWrongThere.contains(name);
    const Program made = Differentiated(c, told ? std::optional(WithGradient(c)) : std::nullopt);
    std::vector<std::string> of;
    for (const auto& grad : c.json["grads"]) {
      const std::string text = grad.get<std::string>();
      of.push_back(text.substr(0, text.size() - std::string(kGradSuffix).size()));
    }
    if (of.empty()) of = {"x"};
    for (int k = 0; k < c.json["feeds"].get<int>(); ++k) ExpectDifferences(c, made, k, of);
  }
}

// Fluid's while_loop has no gradient: it passes what comes in.
TEST(ControlGradient, AVariableThatALoopHandsOnHasItsGradientHandedBack) {
  if (ControlCases().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  const ControlCase c = LoadControlCase("while_loop_fn");
  const Program made = Differentiated(c, std::nullopt);
  for (int k = 0; k < c.json["feeds"].get<int>(); ++k) ExpectDifferences(c, made, k, {"x"});
}

// A program in text form, of which `loss` is to be differentiated.
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

TEST(ControlGradient, ReorderedSequencesAreHandedBackInTheirOrder) {
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

TEST(ControlGradient, StackedElementsAreCutAgain) {
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

// Each round reads the one element and writes it again: its gradient before the write is not that after it.
TEST(ControlGradient, AnElementThatEachRoundWritesAgainHasOneGradientForEachValue) {
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

TEST(ControlGradient, AnElementThatIsReadTwiceHasTwoPartsOfAGradient) {
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

TEST(ControlGradient, StepsHandBackWhatTheyHandedOnInEitherDirection) {
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

// What comes in, itself a part where there is a use before the block, is for the value after it.
TEST(ControlGradient, AVariableThatABlockReadsAndWritesOver) {
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

TEST(ControlGradient, AVariableThatIsUsedBeforeALoopWritesOverIt) {
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
