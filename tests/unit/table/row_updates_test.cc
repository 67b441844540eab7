// Tables whose rows are updated one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "executor/table/row_table.h"

namespace penstock::table {
namespace {

// Subtracts rate * gradient from the first column, adds the gradient to the second, and counts steps.
class Rule : public RowRule {
 public:
  bool PrepareRows(const KernelSetup&) override { return true; }
  void Update(const RowStep& step, std::span<const RowOfStep> rows) const override {
    for (const RowOfStep& row : rows) {
      for (Dim i = 0; i < step.width; ++i) {
        row.Column<float>(step, 0)[i] -= step.Rate<float>() * row.Gradient<float>()[i];
        row.Column<float>(step, 1)[i] += row.Gradient<float>()[i];
      }
    }
  }
  void Advance(const RowStep& step) const override { step.Whole<float>(0) += 1; }
};

// Each step also subtracts its rate from the first column of rows that the gradient does not list.
class MovingRule : public Rule {
 public:
  bool StepsWithoutRows() const override { return false; }
  std::unique_ptr<StepHistory> MakeHistory() const override {
    return std::make_unique<StepHistory>(StepHistory::Weights());
  }
  double NumberOf(const RowStep& step) const override { return static_cast<double>(step.Rate<float>()); }
  void CatchUp(const RowStep& step, const StepHistory& history, std::uint64_t done,
               const RowOfStep& row) const override {
    for (std::uint64_t missed = done + 1; missed <= history.count(); ++missed) {
      for (Dim i = 0; i < step.width; ++i)
        row.Column<float>(step, 0)[i] -= static_cast<float>(history.number(missed));
    }
  }
};

// Row r is r + 0.5 everywhere.
class Halves : public RowStart {
 public:
  void Make(std::int64_t row, std::int64_t width, std::byte* out) const override {
    std::fill_n(reinterpret_cast<float*>(out), width, static_cast<float>(row) + 0.5f);
  }
};

struct Table {
  Table() {
    for (Variable* variable : {&sums, &values})
      variable->As<SelectedRows>().value = Tensor(DType::kFp32, {0, 2});
    values.As<SelectedRows>().start = std::make_shared<Halves>();
  }
  RowTable Make() const {
    RowTable table =
        RowTable::Make({1000, 2}, {{"t", &values}, {"sum", &sums}}, RowTable::Layout::kRows).value();
    table.UseRule(rule, {0, 1});
    return table;
  }
  void Update(RowTable& table, std::vector<SelectedRows> gradients, std::optional<float> factor = {}) {
    std::vector<SelectedRows*> pointers;
    for (SelectedRows& gradient : gradients) pointers.push_back(&gradient);
    std::byte* const whole[] = {reinterpret_cast<std::byte*>(&steps)};
    table.Update({.gradients = pointers,
                  .factor = factor,
                  .rate = reinterpret_cast<const std::byte*>(&rate),
                  .whole = whole});
  }
  mutable Variable values, sums;
  std::shared_ptr<const RowRule> rule = std::make_shared<Rule>();
  float rate = 0.5f, steps = 0;
};

SelectedRows Gradient(std::vector<std::int64_t> ids, const std::vector<float>& values) {
  SelectedRows gradient{.rows = std::move(ids)};
  gradient.value = Tensor(DType::kFp32, {static_cast<Dim>(gradient.rows.size()), 2});
  std::copy(values.begin(), values.end(), gradient.value.Data<float>());
  return gradient;
}

std::vector<float> Read(const RowTable& table, const std::vector<std::int64_t>& ids,
                        std::int64_t padding = -1) {
  std::vector<float> values(ids.size() * 2);
  table.Read(ids, padding, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(RowUpdates, RowsBeginWithTheirInitialValues) {
  Table made;
  RowTable table = made.Make();
  made.Update(table, {Gradient({7, -3}, {1, 2, 4, 8})});
  EXPECT_EQ(table.row_count(), 2);
  EXPECT_EQ(Read(table, {7, -3, 4, 7}, 4), (std::vector<float>{7, 6.5, -4.5, -6.5, 0, 0, 7, 6.5}));
  EXPECT_EQ(Read(table, {4}), (std::vector<float>{4.5, 4.5})) << "not stored";
  EXPECT_EQ(made.steps, 1);
}

TEST(RowUpdates, ARowIsUpdatedOnceByTheSumOfItsGradients) {
  Table made;
  RowTable table = made.Make();
  const float large = 1 << 24;  // of a float, 1 is lost beside it: the order of additions shows
  made.Update(
      table,
      {Gradient({5, 9, 5}, {large, 2, 0, 0, 1, 2}), Gradient({}, {}), Gradient({5, 6}, {-large, 2, 2, 2})},
      0.5f);
  const auto sum = [](float a, float b, float c) { return (a + b) + c; };
  const float first = sum(large, 1, -large) * 0.5f, second = 3;
  EXPECT_EQ(Read(table, {5, 6}), (std::vector<float>{5.5f - 0.5f * first, 5.5f - 0.5f * second, 6, 6}));
  EXPECT_TRUE(table.Publish().ok());
  EXPECT_EQ(made.sums.As<SelectedRows>().rows, (std::vector<std::int64_t>{5, 6, 9}));
  EXPECT_EQ(made.sums.As<SelectedRows>().value.Data<float>()[1], second) << "the state is kept beside";
  EXPECT_EQ(made.steps, 1) << "once a step, not once a gradient";
}

TEST(RowUpdates, AnUpdateWithoutRowsIsAStep) {
  Table made;
  RowTable table = made.Make();
  made.Update(table, {Gradient({}, {})});
  EXPECT_EQ(made.steps, 1);
  EXPECT_EQ(table.row_count(), 0);
}

TEST(RowUpdates, ATableContinuesFromItsPublishedRows) {
  Table made;
  {
    RowTable table = made.Make();
    made.Update(table, {Gradient({8, 3}, {2, 2, 4, 4})});
    EXPECT_TRUE(table.Publish().ok());
  }
  EXPECT_EQ(made.values.As<SelectedRows>().rows, (std::vector<std::int64_t>{3, 8}));
  RowTable table = made.Make();
  EXPECT_EQ(Read(table, {8, 3, 0}), (std::vector<float>{7.5, 7.5, 1.5, 1.5, 0.5, 0.5}));
  made.Update(table, {Gradient({3}, {2, 2})});
  EXPECT_EQ(Read(table, {3}), (std::vector<float>{0.5, 0.5}));
  EXPECT_TRUE(table.Publish().ok());
  EXPECT_EQ(made.sums.As<SelectedRows>().value.Data<float>()[0], 6) << "4 before, 2 after";
}

TEST(RowUpdates, CopiesInPortionsAreTheRowsByAscendingId) {
  Table made;
  RowTable table = made.Make();
  made.Update(table, {Gradient({30, 10, 20}, {1, 1, 2, 2, 3, 3})});
  RowCopy copy = table.BeginCopy();
  EXPECT_FALSE(table.CopyRows(copy, 2));
  EXPECT_TRUE(table.CopyRows(copy, 2));
  copy.Sort();
  EXPECT_EQ(copy.rows.rows, (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_EQ(copy.rows.value.Data<float>()[0], 9.5f);
  ASSERT_EQ(copy.states.size(), 1u);
  EXPECT_EQ(copy.states[0].Data<float>()[5], 1);
  made.Update(table, {Gradient({10}, {1, 1})});
  EXPECT_EQ(copy.rows.value.Data<float>()[0], 9.5f) << "it stays as it is";
}

struct CopiedTable {
  std::vector<std::int64_t> ids, versions;
  std::vector<float> values, sums;

  explicit CopiedTable(RowCopy copy) {
    copy.Sort();
    ids = copy.rows.rows;
    const auto value = copy.rows.value.Span<float>(), sum = copy.states[0].Span<float>();
    values.assign(value.begin(), value.end());
    sums.assign(sum.begin(), sum.end());
    if (copy.versions.initialized()) {
      const auto version = copy.versions.Span<std::int64_t>();
      versions.assign(version.begin(), version.end());
    }
  }
  friend bool operator==(const CopiedTable&, const CopiedTable&) = default;
};

SelectedRows RandomGradient(std::mt19937& random) {
  std::vector<std::int64_t> ids(1 + random() % 6);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % 40);
  std::vector<float> values(2 * ids.size());
  for (float& value : values) value = static_cast<float>(random() % 8);
  return Gradient(std::move(ids), values);
}

// Goes on with the copy while the table is updated, and compares it with one that was made at once.
void ExpectTheRowsOfItsBegin(Table& made, CopiedRows kind, unsigned seed) {
  std::mt19937 random(seed);
  RowTable table = made.Make();
  std::optional<std::uint64_t> since;
  for (int round = 0; round < 20; ++round) {
    RowCopy at_once = table.BeginCopy(kind, since), copy = table.BeginCopy(kind, since);
    ASSERT_TRUE(table.CopiesAhead(copy));
    table.CopyRows(at_once, table.row_count());
    if (since) since = table.version();
    if (!since && round > 9) since = table.version();
    do {
      std::vector<SelectedRows> gradients = {RandomGradient(random), RandomGradient(random)};
      std::vector<SelectedRows*> pointers = {&gradients[0], &gradients[1]};
      table.CopyAhead(copy, pointers);
      made.Update(table, std::move(gradients));
    } while (!table.CopyRows(copy, static_cast<Dim>(random() % 5)));
    EXPECT_EQ(CopiedTable(std::move(copy)), CopiedTable(std::move(at_once))) << seed << " " << round;
  }
}

TEST(RowUpdates, ACopyThatUpdatesInterruptHasTheRowsOfItsBegin) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Table made;
    ExpectTheRowsOfItsBegin(made, CopiedRows::kCurrent, seed);
    ExpectTheRowsOfItsBegin(made, CopiedRows::kStored, seed);
  }
}

TEST(RowUpdates, ACopySinceAVersionHasTheRowsChangedAfterIt) {
  Table made;
  RowTable table = made.Make();
  made.Update(table, {Gradient({30, 10, 20}, {1, 1, 2, 2, 3, 3})});
  const std::uint64_t first = table.version();
  EXPECT_EQ(CopiedTable([&] {
              RowCopy none = table.BeginCopy(CopiedRows::kStored, first);
              EXPECT_TRUE(table.CopyRows(none, 3));
              return none;
            }())
                .ids.size(),
            0u);
  made.Update(table, {Gradient({20, 5}, {1, 1, 1, 1})});
  RowCopy copy = table.BeginCopy(CopiedRows::kStored, first);
  EXPECT_TRUE(table.CopyRows(copy, 100));
  const CopiedTable changed(std::move(copy));
  EXPECT_EQ(changed.ids, (std::vector<std::int64_t>{5, 20}));
  EXPECT_EQ(changed.sums, (std::vector<float>{1, 1, 4, 4}));
}

struct MovingTable : Table {
  MovingTable() { rule = std::make_shared<MovingRule>(); }
  void Update(RowTable& table, float with_rate, const std::vector<std::int64_t>& ids) {
    rate = with_rate;
    Table::Update(table, {Gradient(ids, std::vector<float>(ids.size() * 2, 1))});
  }
};

TEST(MissedRowUpdates, ACopyThatUpdatesInterruptHasTheRowsOfItsBegin) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    MovingTable made;
    ExpectTheRowsOfItsBegin(made, CopiedRows::kStored, seed);
  }
  MovingTable made;
  const RowTable table = made.Make();
  EXPECT_FALSE(table.CopiesAhead(table.BeginCopy())) << "rows get what they missed by then";
}

float Stored(const RowTable& table, std::size_t place) {
  RowCopy copy = table.BeginCopy(CopiedRows::kStored);
  table.CopyRows(copy, table.row_count());
  copy.Sort();
  return copy.rows.value.Data<float>()[2 * place];
}

TEST(MissedRowUpdates, AreInWhatIsReadButNotStored) {
  MovingTable made;
  RowTable table = made.Make();
  made.Update(table, 1, {3, 5});
  made.Update(table, 0.25f, {5});
  made.Update(table, 0.125f, {5});
  EXPECT_EQ(Read(table, {3, 5, 9}), (std::vector<float>{2.125f, 2.125f, 4.125f, 4.125f, 9.5f, 9.5f}));
  EXPECT_EQ(Stored(table, 0), 2.5f);
  RowCopy copy = table.BeginCopy();
  EXPECT_TRUE(table.CopyRows(copy, 2));
  EXPECT_EQ(copy.rows.value.Data<float>()[0], 2.125f);
  EXPECT_FALSE(copy.versions.initialized());
  EXPECT_EQ(Stored(table, 0), 2.5f) << "reads and copies change no row";
  made.Update(table, 2, {3, 9});
  EXPECT_EQ(Stored(table, 0), 0.125f) << "what it missed, then its gradient";
  EXPECT_EQ(Stored(table, 2), 7.5f) << "a new row has missed nothing";
}

TEST(MissedRowUpdates, AGradientWithoutRowsIsNoneIfTheRuleSaysSo) {
  MovingTable made;
  RowTable table = made.Make();
  made.Update(table, 1, {3});
  made.Update(table, 1, {});
  EXPECT_EQ(Read(table, {3}), (std::vector<float>{2.5f, 2.5f}));
  EXPECT_EQ(made.steps, 1);
}

TEST(MissedRowUpdates, ContinueFromACopyOfWhatIsStored) {
  MovingTable made;
  RowTable table = made.Make();
  made.Update(table, 1, {8, 3});
  made.Update(table, 0.25f, {3});
  RowCopy copy = table.BeginCopy(CopiedRows::kStored);
  ASSERT_TRUE(table.CopyRows(copy, 2));
  copy.Sort();
  EXPECT_EQ(copy.versions.Data<std::int64_t>()[1], 1);
  MovingTable again;
  again.values.As<SelectedRows>().rows = copy.rows.rows;
  again.values.As<SelectedRows>().value = copy.rows.value;
  again.sums.As<SelectedRows>().rows = copy.rows.rows;
  again.sums.As<SelectedRows>().value = copy.states[0];
  RowTable continued = again.Make();
  ASSERT_TRUE(continued.Continue(copy.versions, copy.history).ok());
  for (RowTable* each : {&table, &continued}) made.Update(*each, 0.125f, {3});
  EXPECT_EQ(Read(continued, {8, 3}), Read(table, {8, 3}));
  EXPECT_EQ(Read(continued, {8})[0], 8.5f - 1 - 0.25f - 0.125f);

  Tensor later = copy.versions.Clone();
  later.Data<std::int64_t>()[1] = 3;
  RowTable other = again.Make();
  EXPECT_EQ(other.Continue(later, copy.history).message(),
            "t has 2 rows; one has 3 updates, and the table 2");
  EXPECT_EQ(
      other.Continue(copy.versions, copy.versions).message(),
      "t has 2 rows; the updates that they have are given as i64[2, 1], those of the table as i64[2, 1]");
  Table plain;
  EXPECT_EQ(plain.Make().Continue(Tensor(DType::kInt64, {0, 1}), copy.history).message(),
            "t has 0 rows; its optimizer does not continue updates that rows missed");
}

TEST(RowUpdates, TheOrderOfRowsDoesNotMatter) {
  std::mt19937 random(5);
  std::vector<std::int64_t> ids(3000);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % 900);
  const auto published = [&](bool backwards) {
    Table made;
    RowTable table = made.Make();
    std::vector<std::int64_t> used = ids;
    if (backwards) std::reverse(used.begin(), used.end());
    made.Update(table, {Gradient(used, std::vector<float>(used.size() * 2, 0.25f))});
    EXPECT_TRUE(table.Publish().ok());
    const auto values = made.values.As<SelectedRows>().value.Span<float>();
    return std::pair(made.values.As<SelectedRows>().rows, std::vector<float>(values.begin(), values.end()));
  };
  EXPECT_EQ(published(false), published(true));
}

}  // namespace
}  // namespace penstock::table
