#include "executor/table/row_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace penstock {
namespace {

// Row r is r + 0.5 everywhere.
class Counted : public RowStart {
 public:
  void Make(std::int64_t row, std::int64_t width, std::byte* out) const override {
    std::fill_n(reinterpret_cast<float*>(out), width, static_cast<float>(row) + 0.5f);
  }
};

void Start(Variable& variable, Dim width, std::shared_ptr<const RowStart> start) {
  SelectedRows& rows = variable.As<SelectedRows>();
  rows.value = Tensor(DType::kFp32, {0, width});
  rows.start = std::move(start);
}

struct Table {
  Table() {
    Start(rows, 2, std::make_shared<Counted>());
    Start(state, 2, nullptr);
  }
  Result<table::RowTable> Make() {
    return table::RowTable::Make({1000, 2}, {{"t", &rows}, {"state", &state}});
  }
  Variable rows, state;
};

std::vector<float> Read(const table::RowTable& table, const std::vector<std::int64_t>& ids,
                        std::int64_t padding = -1) {
  std::vector<float> values(ids.size() * 2);
  table.Read(ids, padding, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(RowTable, LookupCreatesNoRows) {
  Table made;
  const table::RowTable table = made.Make().value();
  EXPECT_EQ(Read(table, {3, 999, 3}), (std::vector<float>{3.5, 3.5, 999.5, 999.5, 3.5, 3.5}));
  EXPECT_EQ(Read(table, {3, 4}, 3), (std::vector<float>{0, 0, 4.5, 4.5}));
  EXPECT_EQ(table.row_count(), 0);
}

TEST(RowTable, AnyInt64IsARow) {
  Table made;
  table::RowTable table = made.Make().value();
  const std::vector<std::int64_t> ids = {-1, 1000, std::numeric_limits<std::int64_t>::min(), -7};
  EXPECT_EQ(Read(table, {-1, 1000, -7}, -7), (std::vector<float>{-0.5, -0.5, 1000.5, 1000.5, 0, 0}));
  table.Require(ids);
  EXPECT_EQ(table.row_count(), 4);
  table.column(0).Data<float>()[table.PositionOf(-1) * 2] = 5;
  EXPECT_EQ(Read(table, {-1}), (std::vector<float>{5, -0.5}));
  EXPECT_TRUE(table.Publish().ok());
  EXPECT_EQ(made.rows.As<SelectedRows>().rows, (std::vector<std::int64_t>{ids[2], -7, -1, 1000}));
  const table::RowTable again = made.Make().value();
  EXPECT_EQ(Read(again, {-1, 1000}), (std::vector<float>{5, -0.5, 1000.5, 1000.5}));
}

TEST(RowTable, RequiredRowsAreKeptWithTheirState) {
  Table made;
  table::RowTable table = made.Make().value();
  const std::vector<std::int64_t> ids = {7, 2, 7};
  table.Require(ids);
  EXPECT_EQ(table.row_count(), 2);
  table.column(0).Data<float>()[table.PositionOf(7) * 2] = -1;
  table.column(1).Data<float>()[table.PositionOf(7) * 2 + 1] = 9;
  table.Require(ids);
  EXPECT_EQ(Read(table, {2, 7}), (std::vector<float>{2.5, 2.5, -1, 7.5}));
  EXPECT_TRUE(table.Publish().ok());
  const SelectedRows& rows = made.rows.As<SelectedRows>();
  EXPECT_EQ(rows.rows, (std::vector<std::int64_t>{2, 7})) << "ascending, whoever came first";
  EXPECT_EQ(rows.height, 1000);
  EXPECT_EQ(rows.value.Data<float>()[2], -1);
  EXPECT_NE(rows.start, nullptr) << "the others start as before";
  EXPECT_EQ(made.state.As<SelectedRows>().value.Data<float>()[3], 9);
}

TEST(RowTable, GrowthKeepsExistingRows) {
  Table made;
  table::RowTable table = made.Make().value();
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 999; id >= 0; id -= 3) {
    ids.push_back(id);
    table.Require(std::span(ids).last(1));
    table.column(0).Data<float>()[table.PositionOf(id) * 2] += 1;
  }
  for (const std::int64_t id : ids) {
    const auto row = static_cast<float>(id);
    EXPECT_EQ(Read(table, {id}), (std::vector<float>{row + 1.5f, row + 0.5f}));
  }
  EXPECT_LE(table.capacity(), 512) << "twice the rows at most";
}

TEST(RowTable, BeginsWithTheRowsOfAFile) {
  Table made;
  SelectedRows& rows = made.rows.As<SelectedRows>();
  rows.start = nullptr;
  rows.rows = {5};
  rows.value = Tensor(DType::kFp32, {1, 2});
  std::fill_n(rows.value.Data<float>(), 2, 4.0f);
  table::RowTable table = made.Make().value();
  EXPECT_EQ(Read(table, {5, 6}), (std::vector<float>{4, 4, 0, 0})) << "nothing says how the others start";
  EXPECT_EQ(table.column(1).Data<float>()[0], 0) << "the state of a row that comes without";
}

TEST(RowTable, StartsFromValuesWithoutRowIds) {
  Table made;
  SelectedRows& rows = made.rows.As<SelectedRows>();
  rows.start.reset();
  rows.value = Tensor(DType::kFp32, {2, 2});
  std::iota(rows.value.Data<float>(), rows.value.Data<float>() + 4, 1.0f);
  table::RowTable table = made.Make().value();
  EXPECT_EQ(table.row_count(), 0);
  EXPECT_EQ(Read(table, {0, 7}), (std::vector<float>{1, 2, 3, 4}));
  const std::vector<std::int64_t> ids = {7};
  table.Require(ids);
  EXPECT_EQ(Read(table, {7}), (std::vector<float>{3, 4})) << "as it was read before";
}

TEST(RowTable, RefusesMismatchedRows) {
  const auto error = [](const std::function<void(Table&)>& change) {
    Table made;
    change(made);
    return made.Make().status().id();
  };
  EXPECT_EQ(error([](Table& t) { t.rows.Clear(); }), "E-server-startup");
  EXPECT_EQ(error([](Table& t) { t.state.As<Tensor>() = Tensor(DType::kFp32, {3, 2}); }), "E-server-shape");
  EXPECT_EQ(error([](Table& t) { Start(t.state, 3, nullptr); }), "E-server-shape");
  const auto listed = [](Variable& variable, std::vector<std::int64_t> ids) {
    SelectedRows& rows = variable.As<SelectedRows>();
    rows.value = Tensor(DType::kFp32, {static_cast<Dim>(ids.size()), 2});
    rows.rows = std::move(ids);
  };
  EXPECT_EQ(error([&](Table& t) { listed(t.rows, {1, 1}); }), "E-server-shape");
  EXPECT_EQ(error([&](Table& t) {
              listed(t.rows, {1});
              listed(t.state, {2});
            }),
            "E-server-shape");
}

TEST(RowTable, IncrementalCopiesReflectTheirCompletion) {
  Table made;
  table::RowTable table = made.Make().value();
  table.Require(std::vector<std::int64_t>{30, 10, 20});
  table::RowCopy copy = table.BeginCopy();
  EXPECT_FALSE(table.CopyRows(copy, 1));
  EXPECT_FALSE(table.CopyRows(copy, 1));
  EXPECT_TRUE(table.CopyRows(copy, 100));
  table.column(0).Data<float>()[table.PositionOf(10) * 2] = 5;
  table.Require(std::vector<std::int64_t>{5});
  EXPECT_TRUE(table.CopyRows(copy, 100)) << "it stays as it is";
  copy.Sort();
  EXPECT_EQ(copy.rows.rows, (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_EQ(copy.rows.height, 1000);
  const auto values = copy.rows.value.Span<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{10.5, 10.5, 20.5, 20.5, 30.5, 30.5}));
  ASSERT_EQ(copy.states.size(), 1u);
  EXPECT_EQ(copy.states[0].shape(), Shape({3, 2})) << "the same rows of the state";
  table::RowCopy none = table::RowCopy();
  none = made.Make().value().BeginCopy();
  EXPECT_TRUE(made.Make().value().CopyRows(none, 1)) << "no rows are a copy too";
}

}  // namespace
}  // namespace penstock
