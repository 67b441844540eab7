// Variables that several ops write with other sizes, types or places than the next writer expects, and ops
// that name one variable twice.
#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

Program ParsedLines(const std::string& lines) {
  Result<Program> program = ParseText(StrCat("program\nblock 0 {\n", lines, "}\n"), "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

Tensor InSequences(Tensor tensor, LoDLevel offsets) {
  tensor.set_lod({std::move(offsets)});
  return tensor;
}

// `small` is first the result of relu with one row per sequence, and then has forty rows.
constexpr char kLateThenPrepared[] = R"(
  data x : f32[?, 2] lod=1
  data big : f32[40, 2]
  var small : f32[?, 2]
  pooled : f32[?, 2] = sequence_pool(X=x) {pooltype="SUM"}
  small = relu(X=pooled)
  before : f32[?, 2] = scale(X=small) {scale=1.0}
  small = assign(X=big)
  after : f32[40, 2] = scale(X=small) {scale=2.0}
)";

TEST(AVariableWrittenTwice, HasTheSizeOfItsSecondWriter) {
  const Program program = ParsedLines(kLateThenPrepared);
  const Tensor big = test::Scattered(DType::kFp32, {40, 2}, -1, 1);
  for (const std::vector<std::string>& fetches :
       {std::vector<std::string>{"before", "after"}, {"small", "after", "before"}}) {
    exec::Executor executor(AllOps(), {.threads = 1});
    Scope scope;
    std::vector<std::vector<Variable>> kept;
    for (int run = 0; run < 4; ++run) {
      const Tensor x = InSequences(test::Ramp(DType::kFp32, {3, 2}, run, 1), {0, 1, 3});
      auto out = executor.Run(program, scope, {{{"x", x}, {"big", big}}}, fetches);
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      kept.push_back(*std::move(out));
    }
    for (const std::vector<Variable>& out : kept) {
      for (std::size_t i = 0; i < fetches.size(); ++i) {
        if (fetches[i] == "before") continue;
        Tensor expected = big.Clone();
        for (float& value : expected.Span<float>()) value *= fetches[i] == "after" ? 2.0f : 1.0f;
        const Status near = test::Near(*out[i].If<Tensor>(), expected, 0, 0);
        EXPECT_TRUE(near.ok()) << fetches[i] << ": " << near.ToString();
      }
    }
    for (std::size_t run = 0; run < kept.size(); ++run) {
      const std::size_t before = fetches[0] == "before" ? 0 : 2;
      const auto r = static_cast<float>(run);
      const Tensor expected = test::TensorOf<float>({2, 2}, {r, r + 1, 2 * r + 6, 2 * r + 8});
      const Status near = test::Near(*kept[run][before].If<Tensor>(), expected, 0, 0);
      EXPECT_TRUE(near.ok()) << near.ToString();
    }
  }
}

// A variable that is updated in place is not reallocated, whichever op wrote it last.
TEST(AVariableWrittenTwice, KeepsItsValueWhenUpdatedInPlace) {
  const Program program = ParsedLines(R"(
  data x : f32[?, 2] lod=1
  data y : f32[2, 2]
  var t : f32[2, 2]
  pooled : f32[2, 2] = sequence_pool(X=x) {pooltype="SUM"}
  t = scale(X=y) {scale=1.0}
  t = relu(X=pooled)
  t = scale(X=t) {scale=3.0}
  (Out=t, XShape=s : f32[0]) = reshape2(X=t) {shape=[4, 1]}
  t = scale(X=t) {scale=2.0}
)");
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  for (int run = 0; run < 3; ++run) {
    const Tensor x = InSequences(test::TensorOf<float>({3, 2}, {1, 2, 3, 4, 5, 6}), {0, 1, 3});
    auto out =
        executor.Run(program, scope, {{{"x", x}, {"y", test::Ramp(DType::kFp32, {2, 2}, 50, 1)}}}, {{"t"}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    const Status near =
        test::Near(*(*out)[0].If<Tensor>(), test::TensorOf<float>({4, 1}, {6, 12, 48, 60}), 0, 0);
    EXPECT_TRUE(near.ok()) << near.ToString();
  }
}

// A block leaves another shape than declared; kernels prepared for the declared shape must not run.
TEST(AVariableWrittenTwice, HasTheShapeThatABlockWrote) {
  const Program program = ParsedLines(R"(
  data x : f32[2, 3]
  data c : bool[1]
  y : f32[2, 3] = scale(X=x) {scale=1.0}
  (Out=[y], Scope=[]) = conditional_block(Cond=[c], Input=[x]) {sub_block=^1, is_scalar_condition=true}
  z : f32[2, 3] = scale(X=y) {scale=10.0}
}
block 1 in 0 {
  y = concat(X=[x, x, x, x]) {axis=0}
)");
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  for (const bool taken : {false, true, false, true, true}) {
    Tensor c(DType::kBool, {1});
    *c.Data<bool>() = taken;
    auto out =
        executor.Run(program, scope, {{{"x", test::Ramp(DType::kFp32, {2, 3}, 0, 1)}, {"c", c}}}, {{"z"}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ((*out)[0].If<Tensor>()->shape(), (Shape{taken ? 8 : 2, 3}));
  }
}

// adam with some state outputs that name other variables, which hold other values.
std::string Adam(const std::string& outputs) {
  return StrCat(R"(
  data g : f32[4, 3]
  param w : f32[4, 3]
  persist m : f32[4, 3]
  persist v : f32[4, 3]
  persist b1 : f32[1]
  persist b2 : f32[1]
  persist lr : f32[1]
  persist few : f32[2]
  persist whole : i64[1]
  seen : f32[2] = scale(X=few) {scale=1.0}
  n : i64[1] = scale(X=whole) {scale=1.0}
  ()",
                outputs,
                R"() = adam(Param=w, Grad=g, LearningRate=lr, Moment1=m, Moment2=v, Beta1Pow=b1,
    Beta2Pow=b2)
)");
}

Status RunAdam(const std::string& outputs) {
  const Program program = ParsedLines(Adam(outputs));
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  for (const char* name : {"w", "m", "v"})
    test::SetTensor(scope, name, test::Scattered(DType::kFp32, {4, 3}, 0.1, 1));
  for (const char* name : {"b1", "b2", "lr"})
    test::SetTensor(scope, name, test::TensorOf<float>({1}, {0.5f}));
  test::SetTensor(scope, "few", test::Ramp(DType::kFp32, {2}, 0, 1));
  test::SetTensor(scope, "whole", test::TensorOf<std::int64_t>({1}, {7}));
  const std::vector<exec::Feed> feeds = {{"g", test::Scattered(DType::kFp32, {4, 3}, -1, 1)}};
  Status first;
  for (int run = 0; run < 3 && first.ok(); ++run) first = executor.Run(program, scope, feeds, {}).status();
  return first;
}

TEST(AnOptimizer, ResizesItsOutputs) {
  const char* const rest = ", Moment2Out=v, Beta1PowOut=b1, Beta2PowOut=b2";
  EXPECT_TRUE(RunAdam(StrCat("ParamOut=w, Moment1Out=m", rest)).ok());
  // These have another size or type: the first run reallocates them, and their readers see the new values.
  EXPECT_TRUE(RunAdam(StrCat("ParamOut=few, Moment1Out=m", rest)).ok());
  EXPECT_TRUE(RunAdam(StrCat("ParamOut=w, Moment1Out=few", rest)).ok());
  EXPECT_TRUE(RunAdam("ParamOut=w, Moment1Out=m, Moment2Out=v, Beta1PowOut=few, Beta2PowOut=b2").ok());
  EXPECT_TRUE(RunAdam("ParamOut=w, Moment1Out=m, Moment2Out=v, Beta1PowOut=whole, Beta2PowOut=b2").ok());
}

TEST(AnOptimizer, UpdatesInPlaceOnlyInTheMatchingSlot) {
  const Status swapped = RunAdam("ParamOut=m, Moment1Out=w, Moment2Out=v, Beta1PowOut=b1, Beta2PowOut=b2");
  EXPECT_EQ(swapped.id(), "E-op-alias");
  EXPECT_TRUE(
      StartsWith(swapped.message(),
                 "adam: ParamOut is the new value of Param; it must be another variable than Moment1 (m)"))
      << swapped.ToString();
}

Status RunOnce(const std::string& lines) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const std::vector<exec::Feed> feeds = {
      {"x", InSequences(test::TensorOf<std::int64_t>({4, 1}, {1, 2, 3, 4}), {0, 1, 4})}};
  return executor.Run(ParsedLines(StrCat("  data x : i64[?, 1] lod=1\n", lines)), scope, feeds, {}).status();
}

TEST(AnOutput, MayBeAnInputOnlyIfDeclaredInPlace) {
  const auto first_line = [](const Status& status) {
    return status.ToString().substr(0, status.ToString().find('\n'));
  };
  EXPECT_EQ(RunOnce("  var i : i64[?, 1]\n  i = scale(X=x) {scale=0.5}\n  i = gather(X=x, Index=i)\n").id(),
            "E-op-alias");
  const Status erased = RunOnce(
      "  var t : i64[?, 1] lod=1\n  t = scale(X=x) {scale=1.0}\n"
      "  t = sequence_erase(X=t) {tokens=[2]}\n");
  EXPECT_EQ(erased.id(), "E-op-alias") << first_line(erased);
  EXPECT_TRUE(RunOnce("  var t : i64[?, 1]\n  t = scale(X=x) {scale=1.0}\n  t = scale(X=t) {scale=2.0}\n"
                      "  s : i32[1] = fill_constant() {shape=[1l], value=2.0, dtype=2}\n"
                      "  (Out=t, XShape=a : i64[0]) = reshape2(X=t, ShapeTensor=[s, s]) {shape=[-1, -1]}\n")
                  .ok());
}

// Each size fits 64 bits; all of them together do not.
TEST(Sizes, LargerThanMemoryAreRunErrors) {
  std::string lines;
  std::string all;
  for (int i = 0; i < 5; ++i) {
    lines += StrCat("  t", i, " : f64[?] = fill_constant() {shape=[", std::int64_t{1} << 58,
                    "l], value=1.0, dtype=6}\n");
    all += StrCat(i > 0 ? ", t" : "t", i);
  }
  const Status status = RunOnce(StrCat(lines, "  s : f64[?] = sum(X=[", all, "])\n"));
  EXPECT_EQ(status.id(), "E-run-memory") << status.ToString();
}

}  // namespace
}  // namespace penstock
