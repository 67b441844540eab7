// Unusual programs that once crashed the process or wrote to foreign memory: they must run or be rejected.
// Each is the smallest form of a finding of tests/fuzz/executor.
#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

struct Odd {
  const char* name;
  const char* id;  // the error's id; "": the program runs
  const char* text;
};

constexpr Odd kPrograms[] = {
    {"APlainOpThatNamesABlockRunsNone", "", R"(
  y : f32[2, 3] = relu(X=x) {some_block=^1}
}
block 1 in 0 {
)"},
    {"AnOutputIsAVariable", "E-op-slot", "  (Out=\"@EMPTY@\") = relu(X=x)\n"},
    {"EachOutputOfSeveralIsAVariable", "E-op-slot",
     "  (Out=[y : f32[1, 3], \"@EMPTY@\"]) = split(X=x) {axis=0, num=2}\n"},
    {"EachInputOfSeveralIsAVariable", "E-shape-sum", "  y : f32[2, 3] = sum(X=[x, \"@EMPTY@\"])\n"},
    {"EachNumberOfAListIsAVariable", "E-op-slot", R"(
  n : i32[1] = fill_constant() {shape=[1l], value=2.0, dtype=2}
  (Out=y : f32[2, 3], XShape=s : f32[0]) = reshape2(X=x, ShapeTensor=[n, "@EMPTY@"])
)"},
    {"WhatIsAssignedIsAVariable", "E-shape-assign", "  y : f32[2, 3] = assign(X=\"@EMPTY@\")\n"},
    {"AConditionIsAVariable", "E-kernel-conditional_block", R"(
  (Out=[x], Scope=[]) = conditional_block(Cond=["@EMPTY@"], Input=[x]) {sub_block=^1,
    is_scalar_condition=true}
}
block 1 in 0 {
)"},
    {"TheChosenOneIsAVariable", "E-op-no-value", R"(
  n : i32[1] = fill_constant() {shape=[1l], value=1.0, dtype=2}
  y : f32[2, 3] = select_input(X=[x, "@EMPTY@"], Mask=n)
)"},
    {"AStepThatOverwritesItsInputsHasNoNextOne", "E-shape-reshape2", R"(
  (outputs=[x], step_scopes=[]) = recurrent(inputs=[x]) {sub_block=^1}
}
block 1 in 0 {
  var x : f32[3]
  y : f32[3, 1] = reshape2(X=x) {shape=[3, 1]}
  x = reduce_sum(X=y) {dim=[0]}
)"},
    {"AnOutputOfStepsMayBeNone", "", R"(
  (outputs=["@EMPTY@", y : f32[2, 3]], step_scopes=[]) = recurrent(inputs=[x]) {sub_block=^1}
}
block 1 in 0 {
  var x : f32[3]
  y : f32[3] = scale(X=x) {scale=2.0}
)"},
    {"AFloatMayBeGivenAsAWholeNumber", "", "  y : f32[2, 3] = hard_swish(X=x) {scale=7}\n"},
    {"AProbabilityMayBeGivenAsAWholeNumber", "", R"(
  (Out=y : f32[2, 3], Mask=m : u8[2, 3]) = dropout(X=x) {dropout_prob=0}
)"},
    {"AnInitialStateIsAVariable", "E-kernel-recurrent", R"(
  (outputs=[y : f32[2, 3]], step_scopes=[]) = recurrent(inputs=[x],
    initial_states=["@EMPTY@"]) {sub_block=^1, ex_states=["h"], states=["y"]}
}
block 1 in 0 {
  var x : f32[3]
  y : f32[3] = scale(X=x) {scale=2.0}
)"},
    {"ALookupHasAHeightForEachSlice", "E-kernel-distributed_lookup_table", R"(
  i : i64[2, 1] = fill_constant() {shape=[2l, 1l], value=1.0, dtype=3}
  (Outputs=r : f32[2, 3]) = distributed_lookup_table(Ids=i, W=x) {
    table_names=["t.block0", "t.block1", "t.block2"], endpoints=["127.0.0.1:1"], dtype=5}
)"},
    {"APrefetchHasAServerForEachOfItsIds", "E-kernel-prefetch", R"(
  i : i64[2, 1] = fill_constant() {shape=[2l, 1l], value=1.0, dtype=3}
  (Out=[a : i64[?, 1], b : i64[?, 1]]) = split_ids(Ids=i)
  (Out=[c : f32[2, 3], d : f32[2, 3]]) = prefetch(X=[a, b]) {epmap=["127.0.0.1:1"]}
)"},
};

Result<std::vector<Variable>> RunTwice(const std::string& lines) {
  const Result<Program> program =
      ParseText(StrCat("program\nblock 0 {\n  data x : f32[2, 3]\n", lines, "}\n"), "odd");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const std::vector<exec::Feed> feeds = {{"x", test::Ramp(DType::kFp32, {2, 3}, 0, 1)}};
  Result<std::vector<Variable>> first = executor.Run(*program, scope, feeds, {});
  if (!first.ok()) return first;
  return executor.Run(*program, scope, feeds, {});  // again, with the state of the first run
}

TEST(OddPrograms, RunOrAreRefused) {
  for (const Odd& odd : kPrograms) {
    const Status status = RunTwice(odd.text).status();
    EXPECT_EQ(status.id(), odd.id) << odd.name << ": " << status.ToString();
  }
}

// Two ops of each block run the next block: a naive walk would visit block 40 2^40 times.
TEST(OddPrograms, ABlockStartedByManyOpsIsReadOnce) {
  constexpr int kBlocks = 40;
  std::string text = R"(
  c : bool[1] = fill_constant() {shape=[1l], value=0.0, dtype=0}
)";
  for (int b = 1; b <= kBlocks; ++b) {
    for (int i = 0; i < 2; ++i)
      text += StrCat("  (Out=[x], Scope=[]) = conditional_block(Cond=[c], Input=[x]) {sub_block=^", b,
                     ", is_scalar_condition=true}\n");
    text += StrCat("}\nblock ", b, " in ", b - 1, " {\n");
  }
  const Status status = RunTwice(text).status();
  EXPECT_TRUE(status.ok()) << status.ToString();
}

}  // namespace
}  // namespace penstock
