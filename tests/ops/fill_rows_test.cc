// Ops that fill selected rows: with values at once, as in Fluid, or, for a table that is declared as
// distributed, with the initial values of its rows.
#include <gtest/gtest.h>

#include <algorithm>

#include "executor/schedule/executor.h"
#include "framework/tensor/row_start.h"
#include "framework/text/parser.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/ops/rows_runner.h"
#include "tests/support/corpus.h"

namespace penstock::test {
namespace {

Status RunProgram(const std::string& var_flags, const std::string& ops, Scope& scope) {
  const Result<Program> program = ParseText(
      StrCat("program\nblock 0 {\n  persist t : rows<f32[6, 3]>", var_flags, "\n", ops, "\n}\n"), "test");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  exec::Executor executor(AllOps(), {.threads = 1});
  return executor.Run(*program, scope, {}, {}).status();
}

// The value of "t" after the program's op.
SelectedRows Filled(const std::string& var_flags, const std::string& op) {
  Scope scope;
  const Status status = RunProgram(var_flags, "  t = " + op, scope);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return scope.FindOrCreate("t")->As<SelectedRows>();
}

constexpr char kUniform[] = "uniform_random() {shape=[6l, 3l], min=2.0, max=3.0, seed=5, dtype=5}";
constexpr char kConstant[] = "fill_constant() {shape=[6l, 3l], value=2.5, dtype=5}";

TEST(FilledRows, HaveAllValuesAndNoRowIds) {
  for (const char* op : {kUniform, kConstant}) {
    const SelectedRows rows = Filled("", op);
    EXPECT_TRUE(rows.rows.empty()) << op;
    EXPECT_EQ(rows.height, 6) << op;
    EXPECT_EQ(rows.start, nullptr) << op;
    ASSERT_EQ(rows.value.shape(), (Shape{6, 3})) << op;
    for (const float x : rows.value.Span<float>()) EXPECT_TRUE(x >= 2 && x < 3) << op << ": " << x;
  }
}

TEST(FilledRows, DistributedTableRowsAreInitializedOnFirstUse) {
  for (const char* op : {kUniform, kConstant}) {
    const SelectedRows rows = Filled(" distributed", op);
    EXPECT_TRUE(rows.rows.empty()) << op;
    EXPECT_EQ(rows.height, 6) << op;
    EXPECT_EQ(rows.value.shape(), (Shape{0, 3})) << op;
    ASSERT_NE(rows.start, nullptr) << op;
    float row[3] = {};
    rows.start->Make(4, 3, reinterpret_cast<std::byte*>(row));
    EXPECT_TRUE(std::ranges::all_of(row, [](float x) { return x >= 2 && x < 3; })) << op;
  }
}

constexpr char kShape[] =
    "  persist s : i64[2]\n  s = assign_value() {shape=[2], dtype=3, int64_values=[6l, 3l]}\n  t = ";

TEST(FilledRows, TakeTheirShapeFromATensor) {
  for (const char* op : {"uniform_random(ShapeTensor=s) {min=2.0, max=3.0, seed=5, dtype=5}",
                         "fill_constant(ShapeTensor=s) {value=2.5, dtype=5}"}) {
    Scope scope;
    const Status status = RunProgram("", StrCat(kShape, op), scope);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const SelectedRows& rows = scope.FindOrCreate("t")->As<SelectedRows>();
    EXPECT_TRUE(rows.rows.empty()) << op;
    EXPECT_EQ(rows.height, 6) << op;
    ASSERT_EQ(rows.value.shape(), (Shape{6, 3})) << op;
    for (const float x : rows.value.Span<float>()) EXPECT_TRUE(x >= 2 && x < 3) << op << ": " << x;
  }
}

TEST(FilledRows, DistributedTableRowsTakeTheirWidthFromAnAttribute) {
  Scope scope;
  const Status status =
      RunProgram(" distributed", StrCat(kShape, "uniform_random(ShapeTensor=s) {seed=5, dtype=5}"), scope);
  EXPECT_NE(status.message().find("attribute shape ([]) must say how wide the rows of t are"),
            std::string::npos)
      << status.ToString();
}

TEST(FilledRows, HaveFluidsShape) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  const std::string path = CorpusFolder() + "/open/ops_sr/uniform_random_sr";
  const Result<Program> program = ParseProgram(BytesOf(path + ".pb"));
  ASSERT_TRUE(program.ok());
  const Op& op = *program->main().ops().front().op;
  Variables made;
  made[op.OutputName("Out")] = std::make_unique<Variable>();
  made[op.OutputName("Out")]->As<SelectedRows>().height = 6;
  ASSERT_TRUE(RunWithoutAllocating("uniform_random_sr", op, made).ok());
  const Variables fluids = ReadVariables(ReadNpz(BytesOf(path + ".npz")).value(), "out:");
  for (const auto& [name, variable] : fluids) {
    const SelectedRows& theirs = *variable->If<SelectedRows>();
    const SelectedRows& ours = *made.at(name)->If<SelectedRows>();
    EXPECT_EQ(ours.rows, theirs.rows);
    EXPECT_EQ(ours.height, theirs.height);
    EXPECT_EQ(ours.value.shape(), theirs.value.shape());
  }
}

}  // namespace
}  // namespace penstock::test
