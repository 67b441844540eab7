// Errors in programs with blocks, arrays and rank tables have a message and never crash; and the state that
// blocks leave behind.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock {
namespace {

using test::TensorOf;

Program Parsed(const std::string& text) {
  Result<Program> program = ParseText(text, "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString() + "\n" + text);
  return *std::move(program);
}

Result<std::vector<Variable>> RunText(const std::string& text, const std::vector<exec::Feed>& feeds,
                                      const std::vector<std::string>& fetches) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  return executor.Run(Parsed(text), scope, feeds, fetches);
}

std::string ErrorOf(const std::string& text, const std::vector<exec::Feed>& feeds,
                    const std::vector<std::string>& fetches) {
  const auto result = RunText(text, feeds, fetches);
  return result.ok() ? "no error" : result.status().message();
}

const Tensor& TensorAt(const std::vector<Variable>& values, std::size_t i) { return *values[i].If<Tensor>(); }

exec::Feed Bool(const std::string& name, std::initializer_list<bool> values) {
  return {name, TensorOf<bool>({static_cast<Dim>(values.size())}, values)};
}
exec::Feed Int(const std::string& name, std::int64_t value) {
  return {name, TensorOf<std::int64_t>({1}, {value})};
}
exec::Feed Float(const std::string& name, std::initializer_list<float> values) {
  return {name, TensorOf<float>({static_cast<Dim>(values.size())}, values)};
}
exec::Feed Sequences(const std::string& name, std::initializer_list<float> rows, LoDLevel offsets) {
  Tensor tensor = TensorOf<float>({static_cast<Dim>(rows.size()), 1}, rows);
  tensor.set_lod({std::move(offsets)});
  return {name, std::move(tensor)};
}

// y = 2 x if c holds.
constexpr char kConditional[] = R"(program
block 0 {
  data c : bool[?]
  data x : f32[?]
  var y : f32[?]
  var s : step_scopes
  (Out=[y], Scope=[s]) = conditional_block(Cond=[c], Input=[x]) {sub_block=^1, is_scalar_condition=true}
  z : f32[?] = scale(X=y) {scale=10.0}
}
block 1 in 0 {
  y = scale(X=x) {scale=2.0}
}
)";

TEST(ConditionalBlock, RunsIfItsConditionHolds) {
  const auto got = RunText(kConditional, {Bool("c", {true}), Float("x", {1, 2})}, {"z"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(TensorAt(*got, 0).Data<float>()[1], 40);
}

TEST(ConditionalBlock, ReadingOutputsOfASkippedBlockIsAnError) {
  EXPECT_EQ(ErrorOf(kConditional, {Bool("c", {false}), Float("x", {1, 2})}, {"z"}),
            "y : f32[?] has no value: the op that should have made it did not");
}

TEST(ConditionalBlock, ValuesOfAnEarlierRunAreNotReused) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const Program program = Parsed(kConditional);
  const std::vector<exec::Feed> yes = {Bool("c", {true}), Float("x", {1, 2})};
  const std::vector<exec::Feed> no = {Bool("c", {false}), Float("x", {1, 2})};
  const std::vector<std::string> fetches = {"z"};
  ASSERT_TRUE(executor.Run(program, scope, yes, fetches).ok());
  EXPECT_FALSE(executor.Run(program, scope, no, fetches).ok());
  EXPECT_TRUE(executor.Run(program, scope, yes, fetches).ok());
}

TEST(ConditionalBlock, ConditionMustBeOneBool) {
  EXPECT_EQ(ErrorOf(kConditional, {Bool("c", {true, false}), Float("x", {1})}, {"z"}),
            "conditional_block: the condition c is bool[2]; it must be one bool");
  std::string text = kConditional;
  text.replace(text.find("c : bool"), 8, "c : f32 ");
  EXPECT_EQ(ErrorOf(text, {Float("c", {1}), Float("x", {1})}, {"z"}),
            "conditional_block: the condition c is f32[1]; it must be one bool");
}

// The ops after the block were prepared for y as it was before the block, which does not declare a change.
TEST(ConditionalBlock, MayChangeTheTypeOfAVariable) {
  constexpr char kText[] = R"(program
block 0 {
  data c : bool[1]
  data x : f32[2]
  var s : step_scopes
  y : f32[2] = scale(X=x) {scale=2.0}
  (Out=[], Scope=[s]) = conditional_block(Cond=[c], Input=[x]) {sub_block=^1, is_scalar_condition=true}
  z : f32[2] = scale(X=y) {scale=10.0}
}
block 1 in 0 {
  w : i64[2] = cast(X=x) {in_dtype=5, out_dtype=3}
  y = assign(X=w)
}
)";
  const auto changed = RunText(kText, {Bool("c", {true}), Float("x", {1, 2})}, {"z"});
  ASSERT_TRUE(changed.ok()) << changed.status().ToString();
  EXPECT_EQ(TensorAt(*changed, 0).Data<std::int64_t>()[1], 20);
  const auto kept = RunText(kText, {Bool("c", {false}), Float("x", {1, 2})}, {"z"});
  ASSERT_TRUE(kept.ok()) << kept.status().ToString();
  EXPECT_EQ(TensorAt(*kept, 0).Data<float>()[1], 40);
}

TEST(Blocks, NonTensorsAreNotAccessedAsTensors) {
  static constexpr char kText[] = R"(program
block 0 {
  data x : f32[2]
  var s : step_scopes
  var t : rank_table
  var a : array<f32[2]>
  y : f32[2] = scale(X=x) {scale=1.0}
  $
}
)";
  const auto error_of = [](const std::string& op) {
    std::string text = kText;
    text.replace(text.find('$'), 1, op);
    return ErrorOf(text, {Float("x", {1, 2})}, {});
  };
  EXPECT_EQ(error_of("s = fill_constant() {shape=[1l], value=2.0, dtype=5}"),
            "fill_constant: Out (s) is what a block has left; it must be a dense tensor or selected rows");
  EXPECT_EQ(error_of("s = scale(X=y) {scale=2.0}"),
            "scale: Out (s) is what a block has left; it must be a dense tensor or selected rows");
  EXPECT_EQ(error_of("a = scale(X=y) {scale=2.0}"),
            "scale: Out (a) is an array of tensors; it must be a dense tensor or selected rows");
  EXPECT_EQ(error_of("i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}\n"
                     "  a = write_to_array(X=y, I=i)\n  z : array<f32[2]> = increment(X=a) {step=1.0}"),
            "increment: X (a) is an array of tensors; it must be a dense tensor");
  EXPECT_EQ(error_of("i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}\n"
                     "  z : f32[2] = read_from_array(X=y, I=i)"),
            "read_from_array: X (y) is a dense tensor; it must be an array of tensors");
  EXPECT_EQ(error_of("t = lod_rank_table(X=y)\n  y = scale(X=t) {scale=2.0}"),
            "scale: X (t) is a rank table; it must be a dense tensor or selected rows");
}

TEST(ConditionalBlock, TypeChangesThatLaterOpsRejectAreErrors) {
  constexpr char kText[] = R"(program
block 0 {
  data c : bool[1]
  data x : f32[2]
  var s : step_scopes
  i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  y : f32[2] = scale(X=x) {scale=2.0}
  (Out=[], Scope=[s]) = conditional_block(Cond=[c], Input=[x]) {sub_block=^1, is_scalar_condition=true}
  z : f32[2] = scale(X=y) {scale=10.0}
}
block 1 in 0 {
  y = write_to_array(X=x, I=i)
}
)";
  EXPECT_EQ(ErrorOf(kText, {Bool("c", {true}), Float("x", {1, 2})}, {"z"}),
            "scale: X (y) is an array of tensors; it must be a dense tensor or selected rows");
  EXPECT_TRUE(RunText(kText, {Bool("c", {false}), Float("x", {1, 2})}, {"z"}).ok());
}

TEST(Blocks, ReadingAnUntypedVariableWithoutValueIsAnError) {
  constexpr char kText[] = R"(program
block 0 {
  var x : control
  y : f32[1] = increment(X=x) {step=1.0}
}
)";
  EXPECT_EQ(ErrorOf(kText, {}, {"y"}), "x : control has no value: the op that should have made it did not");
}

std::string WithBlock(const std::string& block) {
  std::string text = kConditional;
  return text.replace(text.find("^1"), 2, block);
}

TEST(Blocks, AnUnknownBlockIsAnError) {
  EXPECT_EQ(ErrorOf(WithBlock("^7"), {Bool("c", {true}), Float("x", {1})}, {"z"}),
            "conditional_block: an attribute names block 7; the program has 2 blocks");
}

TEST(Blocks, ARecursiveBlockIsAnError) {
  EXPECT_EQ(ErrorOf(WithBlock("^0"), {Bool("c", {true}), Float("x", {1})}, {"z"}), "block 0 starts itself");
  std::string text = kConditional;
  text.replace(text.find("  y = scale"), 2,
               "  conditional_block(Cond=[c]) {sub_block=^2, is_scalar_condition=true}\n  ");
  text += "block 2 in 0 {\n  conditional_block(Cond=[c]) {sub_block=^1, is_scalar_condition=true}\n}\n";
  EXPECT_EQ(ErrorOf(text, {Bool("c", {true}), Float("x", {1})}, {"z"}), "block 1 starts itself");
}

// Counts i up to n.
constexpr char kLoop[] = R"(program
block 0 {
  data n : i64[1]
  data i : i64[1]
  var s : step_scopes
  more : bool[1] = less_than(X=i, Y=n)
  (Out=[i, more], StepScopes=[s]) = while(X=[i, n], Condition=[more]) {sub_block=^1}
}
block 1 in 0 {
  i = increment(X=i) {step=1.0}
  more = less_than(X=i, Y=n)
}
)";

TEST(While, RunsAsLongAsItsConditionHolds) {
  for (const std::int64_t n : {0, 1, 5}) {
    const auto got = RunText(kLoop, {Int("n", n), Int("i", 0)}, {"i"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ(*TensorAt(*got, 0).Data<std::int64_t>(), n);
  }
}

TEST(While, AnEndlessLoopCanBeCancelled) {
  for (const char* body : {"  more = less_than(X=i, Y=n)\n", ""}) {
    std::string text = kLoop;
    const std::size_t at = text.find("  i = increment");
    text = text.substr(0, at) + body + "}\n";
    exec::Executor executor(AllOps(), {.threads = 1});
    Scope scope;
    const Program program = Parsed(text);
    std::atomic<bool> done{false};
    Status status;
    std::thread runner([&] {
      const std::vector<exec::Feed> feeds = {Int("n", 5), Int("i", 0)};
      status = executor.Run(program, scope, feeds, {}).status();
      done = true;
    });
    while (!done) {
      executor.Cancel();
      std::this_thread::yield();
    }
    runner.join();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.ToString();
  }
}

// Writes x at index i, reads at index j.
constexpr char kArray[] = R"(program
block 0 {
  data x : f32[?]
  data i : i64[1]
  data j : i64[1]
  a : array<f32[?]> = write_to_array(X=x, I=i)
  y : f32[?] = read_from_array(X=a, I=j)
  n : i64[1] = lod_array_length(X=a)
}
)";

TEST(TensorArray, HoldsWhatWasWritten) {
  const auto got = RunText(kArray, {Float("x", {3, 4}), Int("i", 2), Int("j", 2)}, {"y", "n"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(TensorAt(*got, 0).Data<float>()[1], 4);
  EXPECT_EQ(*TensorAt(*got, 1).Data<std::int64_t>(), 3);
}

TEST(TensorArray, AnIndexOutOfRangeIsAnError) {
  const auto error = [](std::int64_t i, std::int64_t j) {
    return ErrorOf(kArray, {Float("x", {3}), Int("i", i), Int("j", j)}, {"y"});
  };
  EXPECT_EQ(error(-1, 0), "write_to_array: the index i is -1; it must be from 0 to 16777215");
  EXPECT_EQ(error(std::int64_t{1} << 40, 0),
            "write_to_array: the index i is 1099511627776; it must be from 0 to 16777215");
  EXPECT_EQ(error(0, 1), "read_from_array: the index j is 1; a has 1 elements");
  EXPECT_EQ(error(0, -3), "read_from_array: the index j is -3; it must be from 0 to 16777215");
  EXPECT_EQ(error(1, 0), "read_from_array: element 0 of a is empty: nothing was written to it");
}

TEST(TensorArray, ReadingAnEmptyArrayIsAnError) {
  constexpr char kText[] = R"(program
block 0 {
  data c : bool[1]
  data x : f32[?]
  data i : i64[1]
  var a : array<f32[?]>
  (Out=[a]) = conditional_block(Cond=[c], Input=[x, i]) {sub_block=^1, is_scalar_condition=true}
  n : i64[1] = lod_array_length(X=a)
}
block 1 in 0 {
  a = write_to_array(X=x, I=i)
}
)";
  const auto error = ErrorOf(kText, {Bool("c", {false}), Float("x", {1}), Int("i", 0)}, {"n"});
  EXPECT_NE(error.find("a : array<f32[?]> has no value"), std::string::npos) << error;
  EXPECT_EQ(ErrorOf(kText, {Bool("c", {true}), Float("x", {1}), Int("i", 0)}, {"n"}), "no error");
}

// Splits y by the lengths of x, and joins it again.
constexpr char kRanked[] = R"(program
block 0 {
  data x : f32[?, 1] lod=1
  data y : f32[?, 1] lod=1
  var t : rank_table
  t = lod_rank_table(X=x)
  a : array<f32[?, 1]> = lod_tensor_to_array(X=y, RankTable=t)
  z : f32[?, 1] = array_to_lod_tensor(X=a, RankTable=t)
}
)";

TEST(RankTable, SequencesRoundTripThroughSteps) {
  const exec::Feed x = Sequences("x", {1, 2, 3, 4, 5, 6}, {0, 1, 4, 4, 6});
  const auto got = RunText(kRanked, {x, {"y", x.tensor}}, {"z"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  const Tensor& z = TensorAt(*got, 0);
  ASSERT_EQ(z.shape(), x.tensor.shape());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(z.Data<float>()[i], static_cast<float>(i + 1));
  EXPECT_EQ(z.lod(), x.tensor.lod());
}

TEST(RankTable, SequencesOfOtherLengthsAreAnError) {
  EXPECT_EQ(
      ErrorOf(kRanked, {Sequences("x", {1, 2, 3}, {0, 1, 3}), Sequences("y", {1, 2, 3}, {0, 2, 3})}, {"z"}),
      "lod_tensor_to_array: the sequences of X (y) do not have the lengths of the rank table t");
}

TEST(RankTable, ATensorWithoutLoDIsAnError) {
  EXPECT_EQ(
      ErrorOf(kRanked, {{"x", TensorOf<float>({2, 1}, {1, 2})}, Sequences("y", {1, 2}, {0, 1, 2})}, {"z"}),
      "lod_rank_table: X (x) has 0 LoD levels; there is no level 0");
}

TEST(SplitLodTensor, AMaskOfAnotherLengthIsAnError) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[?]
  data m : bool[?]
  (OutTrue=[a : f32[?]], OutFalse=[b : f32[?]]) = split_lod_tensor(X=[x], Mask=[m])
  y : f32[?] = merge_lod_tensor(X=[x], Mask=[m], InTrue=[b], InFalse=[a])
}
)";
  EXPECT_EQ(ErrorOf(kText, {Float("x", {1, 2, 3}), Bool("m", {true, false})}, {"y"}),
            "split_lod_tensor: X (x) has 3 parts; Mask (m) has 2 values");
  EXPECT_EQ(ErrorOf(kText, {Float("x", {1, 2, 3}), Bool("m", {true, false, true})}, {"y"}),
            "merge_lod_tensor: InFalse (a) has 2 parts; Mask (m) asks for 1");
}

TEST(Select, AMaskOutOfRangeIsAnError) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[?]
  data m : i32[1]
  y : f32[?] = select_input(X=[x, x], Mask=[m])
}
)";
  EXPECT_EQ(ErrorOf(kText, {Float("x", {1}), {"m", TensorOf<std::int32_t>({1}, {2})}}, {"y"}),
            "select_input: Mask (m) is 2; there are 2 variables to choose from");
}

}  // namespace
}  // namespace penstock
