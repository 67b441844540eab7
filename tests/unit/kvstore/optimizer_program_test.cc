// Optimizers of a key-value store that are programs: their text, and the program for a key.
#include "executor/kvstore/optimizer_program.h"

#include <gtest/gtest.h>

#include "framework/base/strings.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"

namespace penstock::kvstore {
namespace {

constexpr char kUpdate[] = R"(program
block 0 {
  persist w : f32[2, 3]
  var g : f32[2, 3]
  persist v : f32[2, 3]
  persist rate : f32[1]
  persist step : i64[1]
  var t : f32[1]
  var r : f32[1]
  step = increment(X=step) {step=1.0}
  t = cast(X=step) {in_dtype=3, out_dtype=5}
  r = elementwise_div(X=rate, Y=t) {axis=-1}
  (ParamOut=w, VelocityOut=v) = momentum(Param=w, Grad=g, Velocity=v, LearningRate=r) {mu=0.5}
}
)";
constexpr char kStart[] = R"(program
block 0 {
  persist w : f32[2, 3]
  persist v : f32[2, 3]
  persist rate : f32[1]
  persist step : i64[1]
  w = uniform_random() {shape=[2l, 3l], dtype=5}
  step = fill_constant() {shape=[1l], dtype=3, value=0.0}
  v = fill_constant() {shape=[2l, 3l], dtype=5, value=0.0}
  rate = fill_constant() {shape=[1l], dtype=5, value=0.25}
}
)";

Program Read(std::string_view text) { return ParseText(text, "test").value(); }

Result<KeyOptimizer> Made(std::string_view update = kUpdate, std::string_view start = kStart) {
  return ProgramOptimizer({.update = Read(update), .start = Read(start), .param = "w", .grad = "g"},
                          AllOps());
}

TEST(OptimizerProgram, KeepsTheStartOfItsStatesOnly) {
  const KeyOptimizer made = Made().value();
  EXPECT_EQ(made.program->states, (std::vector<std::string>{"step", "v", "rate"}));
  EXPECT_EQ(made.program->start.main().ops().size(), 3u);
  EXPECT_FALSE(NeedsWhole(made));
}

TEST(OptimizerProgram, TextReadsBack) {
  const KeyOptimizer made = Made().value();
  const Result<KeyOptimizer> read = ParseOptimizer(made.ToString(), &AllOps());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, made);
  EXPECT_TRUE(KeepSameStates(*read, made));
  EXPECT_EQ(ParseOptimizer(made.ToString()).status().id(), "E-kv-program");
}

// The text comes from a peer: whatever it is, reading it and making a key's program of it end.
TEST(OptimizerProgram, DamagedTextsAreRefusedOrRead) {
  const std::string text = Made().value().ToString();
  int refused = 0;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    for (const char c : {'{', '}', '"', '9', '-', '\0', 'w'}) {
      std::string other = text;
      other[i] = c;
      const Result<KeyOptimizer> read = ParseOptimizer(other, &AllOps());
      refused += read.ok() ? 0 : 1;
      if (read.ok()) (void)UpdateProgram(*read, {.key = "k", .shape = {5}, .rows = i % 3 == 0});
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(OptimizerProgram, AKeyHasItsOwnShapeTypeAndNames) {
  const KeyUpdate update =
      UpdateProgram(Made().value(), {.key = "a key", .dtype = DType::kFp64, .shape = {7}, .variable = "k"})
          .value();
  EXPECT_EQ(update.param, "k");
  EXPECT_EQ(update.grad, "k@GRAD");
  EXPECT_EQ(update.states, (std::vector<std::string>{"k@step", "k@v", "k@rate"}));
  EXPECT_EQ(update.rate, "");  // a program takes no numbers
  EXPECT_EQ(PrintProgram(update.program), R"(program
block 0 {
  persist k@v : f64[7]
  persist k@rate : f64[1]
  persist k@step : i64[1]
  persist k : f64[7]
  data k@GRAD : f64[7]
  k@step = fill_constant() {shape=[1l], dtype=3, value=0.0}
  k@v = fill_constant() {shape=[7l], dtype=6, value=0.0}
  k@rate = fill_constant() {shape=[1l], dtype=6, value=0.25}
}
block 1 in 0 {
  k@step = increment(X=k@step) {step=1.0}
  k@t : f64[1] = cast(X=k@step) {in_dtype=3, out_dtype=6}
  k@r : f64[1] = elementwise_div(X=k@rate, Y=k@t) {axis=-1}
  (ParamOut=k, VelocityOut=k@v) = momentum(Param=k, Grad=k@GRAD, Velocity=k@v, LearningRate=k@r) {mu=0.5}
}
)");
}

TEST(OptimizerProgram, AnErrorNamesTheOpAndTheRule) {
  std::string update = kUpdate;
  update.replace(update.find("(ParamOut"),
                 update.find("}\n", update.find("(ParamOut")) - update.find("(ParamOut"),
                 "w = softmax(X=g) {axis=-1");
  EXPECT_EQ(
      Made(update).status().ToString(),
      "the optimizer's program: softmax depends on how the elements of the parameter lie; only ops that "
      "work element by element, or on all elements at once, do not   [E-kv-program]\n"
      "  op 3 of block 0:  w = softmax(X=g) {axis=-1}\n"
      "    X = g : f32[2, 3]");
}

}  // namespace
}  // namespace penstock::kvstore
