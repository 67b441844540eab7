// Values of ops on selected rows and arrays for which the corpus has no case.
#include <gtest/gtest.h>

#include <limits>

#include "operators/all_ops.h"
#include "tests/ops/rows_runner.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

Variables RowsOf(const char* name, const std::vector<std::int64_t>& rows,
                 std::initializer_list<float> values) {
  Variables variables;
  variables[name] = std::make_unique<Variable>();
  variables[name]->As<SelectedRows>() = {rows, 10,
                                         TensorOf<float>({static_cast<Dim>(rows.size()), 1}, values)};
  return variables;
}

void ExpectRows(const Variable& variable, const std::vector<std::int64_t>& rows,
                std::initializer_list<double> values) {
  const SelectedRows& made = *variable.If<SelectedRows>();
  EXPECT_EQ(made.rows, rows);
  EXPECT_EQ(made.height, 10);
  ExpectValues(made.value, values);
}

TEST(SplitIds, KeepsEachRowAndItsValuesInOrder) {
  const Op op = Op("split_ids").AddInput("Ids", {"x"}).AddOutput("Out", {"even", "odd"});
  Variables once = RowsOf("x", {7, 2, 9, 0, 5}, {1, 2, 3, 4, 5});
  ASSERT_TRUE(RunTwice(op, once).ok());
  ExpectRows(*once["even"], {2, 0}, {2, 4});
  ExpectRows(*once["odd"], {7, 9, 5}, {1, 3, 5});
  Variables twice = RowsOf("x", {7, 2, 7, 0}, {1, 2, 3, 4});
  ASSERT_TRUE(RunTwice(op, twice).ok());
  ExpectRows(*twice["even"], {2, 0}, {2, 4});
  ExpectRows(*twice["odd"], {7, 7}, {1, 3});
}

TEST(Momentum, ChangesNothingForAnEmptyRowGradient) {
  for (const bool in_place : {false, true}) {
    for (const bool nesterov : {false, true}) {
      Variables variables = RowsOf("grad", {}, {});
      for (const char* name : {"param", "velocity"}) {
        variables[name] = std::make_unique<Variable>();
        variables[name]->As<Tensor>() = Ramp(DType::kFp32, {10, 1}, 1, 0.5);
      }
      variables["rate"] = std::make_unique<Variable>();
      variables["rate"]->As<Tensor>() = TensorOf<float>({1}, {0.1f});
      const std::string end = in_place ? "" : "_out";
      Op op("momentum");
      op.AddInput("Param", {"param"}).AddInput("Grad", {"grad"}).AddInput("Velocity", {"velocity"});
      op.AddInput("LearningRate", {"rate"});
      op.AddOutput("ParamOut", {"param" + end}).AddOutput("VelocityOut", {"velocity" + end});
      op.Set("mu", 0.9f).Set("use_nesterov", nesterov);
      ASSERT_TRUE(RunTwice(op, variables).ok());
      for (const char* name : {"param", "velocity"})
        ExpectValues(*variables[name + end]->If<Tensor>(), {1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5});
    }
  }
}

// 2^64 - 1 is 0 mod 3, and 2^63 is 2.
TEST(SplitIds, TreatsIdsAsUnsigned) {
  const Op op = Op("split_ids").AddInput("Ids", {"x"}).AddOutput("Out", {"a", "b", "c"});
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  Variables rows = RowsOf("x", {-1, kLowest, 4}, {1, 2, 3});
  ASSERT_TRUE(RunTwice(op, rows).ok());
  ExpectRows(*rows["a"], {-1}, {1});
  ExpectRows(*rows["b"], {4}, {3});
  ExpectRows(*rows["c"], {kLowest}, {2});
  Variables ids;
  ids["x"] = std::make_unique<Variable>();
  ids["x"]->As<Tensor>() = TensorOf<std::int64_t>({3, 1}, {-1, kLowest, 4});
  ASSERT_TRUE(RunTwice(op, ids).ok());
  EXPECT_EQ(*ids["a"]->If<Tensor>()->Data<std::int64_t>(), -1);
  EXPECT_EQ(*ids["b"]->If<Tensor>()->Data<std::int64_t>(), 4);
  EXPECT_EQ(*ids["c"]->If<Tensor>()->Data<std::int64_t>(), kLowest);
}

// Any id except -1, which means none, may be the padding id; its rows are zero and get no gradient.
TEST(LookupTable, AcceptsANegativePaddingIdx) {
  for (const std::string type : {"lookup_table", "lookup_table_v2"}) {
    const Tensors inputs = {
        {"w", Ramp(DType::kFp32, {4, 1}, 1, 1)},
        {"ids", TensorOf<std::int64_t>({3, 1}, {1, -2, 2})},
        {"o@GRAD", TensorOf<float>(type == "lookup_table" ? Shape{3, 1} : Shape{3, 1, 1}, {10, 20, 30})}};
    Op op = Op(type).AddInput("W", {"w"}).AddInput("Ids", {"ids"}).AddOutput("Out", {"o"});
    op.Set("padding_idx", std::int64_t{-2});
    ExpectValues(RunOne(op, inputs, "o"), {2, 0, 3});
    Op grad(type + "_grad");
    grad.AddInput("W", {"w"}).AddInput("Ids", {"ids"}).AddInput("Out@GRAD", {"o@GRAD"});
    grad.AddOutput("W@GRAD", {"dw"}).Set("padding_idx", std::int64_t{-2}).Set("is_sparse", false);
    ExpectValues(RunOne(grad, inputs, "dw"), {0, 10, 30, 0});
    Variables variables;
    for (const auto& [name, tensor] : inputs) {
      variables[name] = std::make_unique<Variable>();
      variables[name]->As<Tensor>() = tensor;
    }
    ASSERT_TRUE(RunTwice(grad.Set("is_sparse", true), variables).ok());
    EXPECT_EQ(variables["dw"]->If<SelectedRows>()->rows, (std::vector<std::int64_t>{1, 2}));
    ExpectValues(variables["dw"]->If<SelectedRows>()->value, {10, 30});
  }
}

TEST(LookupSparseTable, ReturnsZerosForMissingRowsInTestMode) {
  Op op = Op("lookup_sparse_table").AddInput("W", {"w"}).AddInput("Ids", {"ids"}).AddOutput("Out", {"out"});
  op.Set("auto_grown_table", false);
  const auto run = [&](Variables& variables) {
    variables["ids"] = std::make_unique<Variable>();
    variables["ids"]->As<Tensor>() = TensorOf<std::int64_t>({3, 1}, {5, 1, 2});
    return RunTwice(op, variables);
  };
  Variables variables = RowsOf("w", {2, 5}, {20, 50});
  EXPECT_EQ(run(variables).message(), "lookup_sparse_table: id 1 is none of the 2 rows of W (w)");
  op.Set("is_test", true);
  ASSERT_TRUE(run(variables).ok());
  ExpectValues(*variables["out"]->If<Tensor>(), {50, 0, 20});
  EXPECT_EQ(variables["w"]->If<SelectedRows>()->rows, (std::vector<std::int64_t>{2, 5}));
}

TEST(Activations, ApplyToListedRowValues) {
  const auto expect = [](const char* type, std::initializer_list<double> values) {
    Variables variables = RowsOf("x", {3, 1, 3}, {4, 9, 16});
    const Op op = Op(type).AddInput("X", {"x"}).AddOutput("Out", {"out"});
    ASSERT_TRUE(RunTwice(op, variables).ok()) << type;
    ExpectRows(*variables["out"], {3, 1, 3}, values);
  };
  expect("sqrt", {2, 3, 4});
  expect("abs", {4, 9, 16});
  expect("square", {16, 81, 256});
}

// Scripts set the values first and the rows later.
TEST(Sum, IgnoresSelectedRowsWithoutRows) {
  Variables variables = RowsOf("x", {3, 1}, {4, 9});
  variables["none"] = std::make_unique<Variable>();
  variables["none"]->As<SelectedRows>() = {{}, 10, TensorOf<float>({7, 1}, {1, 1, 1, 1, 1, 1, 1})};
  const Op op = Op("sum").AddInput("X", {"none", "x"}).AddOutput("Out", {"out"});
  ASSERT_TRUE(RunTwice(op, variables).ok());
  const SelectedRows& sum = *variables["out"]->If<SelectedRows>();
  EXPECT_EQ(sum.rows.size(), 2U);
  EXPECT_EQ(sum.value.shape(), (Shape{2, 1}));
}

TEST(SplitSelectedRows, RefusesToFillOneVariableTwice) {
  Variables variables = RowsOf("x", {3, 1}, {4, 9});
  const Op op = Op("split_selected_rows")
                    .AddInput("X", {"x"})
                    .AddOutput("Out", {"out", "out"})
                    .Set("height_sections", std::vector<std::int64_t>{5, 5});
  const Status status = RunTwice(op, variables);
  EXPECT_EQ(status.message(), "split_selected_rows: Out names out twice");
}

TEST(FillZerosLike, SelectedRowsGiveATensorOfFullHeight) {
  Variables variables = RowsOf("x", {3, 1}, {4, 9});
  const Op op = Op("fill_zeros_like").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  ASSERT_TRUE(RunTwice(op, variables).ok());
  const Tensor& zeros = *variables["out"]->If<Tensor>();
  EXPECT_EQ(zeros.shape(), (Shape{10, 1}));
  ExpectValues(zeros, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST(Assign, CopiesSelectedRows) {
  Variables variables = RowsOf("x", {3, 1, 3}, {4, 9, 16});
  const Op op = Op("assign").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  ASSERT_TRUE(RunWithoutAllocating("assign", op, variables).ok());
  ExpectRows(*variables["out"], {3, 1, 3}, {4, 9, 16});
  EXPECT_NE(variables["out"]->If<SelectedRows>()->value.raw(),
            variables["x"]->If<SelectedRows>()->value.raw());
}

TEST(Assign, CopiesTensorArrays) {
  Variables variables;
  variables["x"] = std::make_unique<Variable>();
  variables["x"]->As<TensorArray>() = {TensorOf<float>({1}, {2}), TensorOf<float>({2}, {3, 4})};
  const Op op = Op("assign").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  ASSERT_TRUE(RunTwice(op, variables).ok());
  const TensorArray& copied = *variables["out"]->If<TensorArray>();
  ASSERT_EQ(copied.size(), 2U);
  ExpectValues(copied[1], {3, 4});
  EXPECT_NE(copied[1].raw(), variables["x"]->If<TensorArray>()->at(1).raw());
}

TEST(GetTensorFromSelectedRows, AcceptsIntegers) {
  Variables variables;
  variables["x"] = std::make_unique<Variable>();
  variables["x"]->As<SelectedRows>() = {{3, 1}, 10, TensorOf<std::int64_t>({2, 2}, {1, 2, 3, 4})};
  const Op op = Op("get_tensor_from_selected_rows").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  ASSERT_TRUE(RunTwice(op, variables).ok());
  ExpectValues(*variables["out"]->If<Tensor>(), {1, 2, 3, 4});
}

}  // namespace
}  // namespace penstock::test
