// Tables of any ids: their text, the initial values of rows, and a table in one process.
#include "executor/kvstore/key_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "operators/all_ops.h"

namespace penstock::kvstore {
namespace {

TableSpec SpecOf(const char* name, const Numbers& numbers, TableStart start = {}, const char* policy = "") {
  TableSpec spec{.start = start, .optimizer = MakeOptimizer(name, numbers).value()};
  if (*policy != 0) spec.policy = ParseRowPolicy(policy).value();
  return spec;
}

std::vector<float> RowOf(const TableStart& start, const char* table, std::int64_t id, Dim width = 4) {
  std::vector<float> row(static_cast<std::size_t>(width));
  start.RowsOf(table, DType::kFp32)->Make(id, width, reinterpret_cast<std::byte*>(row.data()));
  return row;
}

TEST(TableSpec, TextReadsBack) {
  const TableStart start = MakeTableStart("normal", 0.1, 1.0 / 3, 77).value();
  for (const char* policy : {"", "entry count 3, evict unseen 1000"}) {
    const TableSpec spec = SpecOf("adam", {{"learning_rate", 0.25}}, start, policy);
    const Result<TableSpec> read = ParseTableSpec(spec.ToString());
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, spec);
  }
}

TEST(TableSpec, WrongTextIsAnError) {
  for (const char* text :
       {"", "constant 0 0 seed 0", "constant 0 seed 0\n\nsgd {}", "constant 0 x seed 0\n\nsgd {}",
        "constant 0 0 seed -1\n\nsgd {}", "constant 0 0 seed 0\n\nsgd {", "uniform 0 0 seed 0\nx\nsgd {}"})
    EXPECT_EQ(ParseTableSpec(text).status().id(), "E-text-syntax") << text;
  EXPECT_EQ(MakeTableStart("random", 0, 1, 0).status().id(), "E-kv-table-start");
  EXPECT_EQ(MakeTableStart("uniform", 1, 0, 0).status().id(), "E-kv-table-start");
  EXPECT_EQ(MakeTableStart("normal", 0, -1, 0).status().id(), "E-kv-table-start");
  EXPECT_EQ(MakeTableStart("constant", 1.0 / 0.0, 0, 0).status().id(), "E-kv-table-start");
}

TEST(TableStart, RowsFollowFromSeedNameAndId) {
  const TableStart start = MakeTableStart("uniform", 1, 3, 5).value();
  const std::vector<float> row = RowOf(start, "t", -9);
  EXPECT_EQ(row, RowOf(start, "t", -9));
  EXPECT_NE(row, RowOf(start, "t", 9));
  EXPECT_NE(row, RowOf(start, "u", -9));
  EXPECT_NE(row, RowOf(MakeTableStart("uniform", 1, 3, 6).value(), "t", -9));
  EXPECT_EQ(RowOf(MakeTableStart("constant", 2.5, 0, 5).value(), "t", 1), std::vector<float>(4, 2.5f));
  EXPECT_EQ(MakeTableStart("constant", 0, 0, 5)->RowsOf("t", DType::kFp32), nullptr);
  double sum = 0, squares = 0;
  const std::vector<float> many = RowOf(start, "t", 1, 10000);
  for (const float value : many) {
    EXPECT_TRUE(value >= 1 && value <= 3);
    sum += value - 2.0;
    squares += (value - 2.0) * (value - 2.0);
  }
  EXPECT_NEAR(sum / 10000, 0, 0.02);
  EXPECT_NEAR(squares / 10000, 1.0 / 3, 0.02);
}

TEST(KeyTable, OnlyOptimizersThatLeaveOtherRowsServe) {
  const auto make = [](const char* name, const Numbers& numbers, DType dtype = DType::kFp32) {
    return KeyTable::Make({.name = "t", .dtype = dtype, .width = 2}, SpecOf(name, numbers), AllOps())
        .status();
  };
  for (const char* name : {"adagrad", "adam", "ftrl", "sgd", "test"})
    EXPECT_TRUE(make(name, {}).ok()) << name;
  for (const char* name : {"nag", "rmsprop", "nadam", "lamb", "groupadagrad"})
    EXPECT_EQ(make(name, {}).id(), "E-kv-table-optimizer") << name;
  EXPECT_EQ(make("sgd", {{"momentum", 0.9}, {"lazy_update", 0}}).id(), "E-kv-table-optimizer");
  EXPECT_EQ(make("adagrad", {{"wd", 0.1}}).id(), "E-kv-optimizer-refused");
  EXPECT_EQ(make("sgd", {}, DType::kInt32).id(), "E-kv-key-type");
}

TEST(LocalTable, UpdatesTheRowsOfAPush) {
  const auto table =
      LocalTable::Make({.name = "t", .width = 2}, SpecOf("sgd", {{"learning_rate", 0.5}}), AllOps()).value();
  const std::int64_t ids[] = {1LL << 60, 4, 1LL << 60};
  Tensor gradients(DType::kFp32, {3, 2}), rows(DType::kFp32, {3, 2});
  std::ranges::copy(std::vector<float>{1, 2, 3, 4, 5, 6}, gradients.Data<float>());
  ASSERT_TRUE(table->Push(ids, gradients).ok());
  ASSERT_TRUE(table->Lookup(ids, rows).ok());
  EXPECT_TRUE(std::ranges::equal(rows.Span<float>(), std::vector<float>{-3, -4, -1.5, -2, -3, -4}));
  EXPECT_EQ(gradients.Span<float>()[4], 5);  // as they were
  EXPECT_EQ(table->updates(), 1u);
  EXPECT_EQ(table->Push({ids, 2}, gradients).id(), "E-kv-array");
  EXPECT_EQ(table->Lookup(ids, Tensor(DType::kFp64, {3, 2})).id(), "E-kv-array");
}

}  // namespace
}  // namespace penstock::kvstore
