// A table whose rows are updated one by one gets the bytes that its optimize block makes on columns.
#include <numeric>
#include <random>

#include "tests/unit/pserver/table_server.h"

namespace penstock::test {
namespace {

// Few ids, some several times; negative zeros too, of which a sum of one addend is not the same as itself.
// `all`: each id at least once.
template <typename T>
RowGradient Draw(std::mt19937_64& random, bool all) {
  RowGradient gradient;
  gradient.ids.resize(random() % 12 + (all ? 9 : 0));
  for (std::size_t i = 0; i < gradient.ids.size(); ++i)
    gradient.ids[i] = static_cast<std::int64_t>(all && i < 9 ? i : random() % 9) - 4;
  std::vector<T> values(gradient.ids.size() * kWidth);
  for (T& value : values)
    value = random() % 16 == 0 ? T{-0.0} : static_cast<T>(static_cast<double>(random() % 2001) / 997 - 1);
  gradient.values.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return gradient;
}

// A server's variables after some steps, as bytes, by name, and what lookups read in between.
template <typename T>
std::map<std::string, std::string> Trained(const RoleSet& roles, int trainers, bool by_row, bool all) {
  TableServer server(roles, by_row);
  std::string read;
  std::mt19937_64 random(7);
  for (int step = 0; step < 20; ++step) {
    std::vector<RowGradient> gradients;
    for (int trainer = 0; trainer < trainers; ++trainer) gradients.push_back(Draw<T>(random, all));
    server.Step(gradients);
    if (server.store().BeginSweep(0) && step % 3 != 0) {
      while (server.store().Sweep(0)) {
      }
    }
    read += BytesOf(server.Read({-4, 50, 0, 3, -4}));
  }
  std::map<std::string, std::string> bytes = server.Published();
  bytes["read"] = std::move(read);
  return bytes;
}

// If the optimizer changes other rows than those of a gradient, each step lists all rows.
template <typename T>
void ExpectSameBytes(const char* type) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    for (const int trainers : {1, 3}) {
      SCOPED_TRACE(StrCat(optimizer.name, " of ", type, ", ", trainers, " trainers"));
      const RoleSet roles = RolesOf(optimizer, type, trainers);
      EXPECT_EQ(Trained<T>(roles, trainers, true, optimizer.moves),
                Trained<T>(roles, trainers, false, optimizer.moves));
    }
  }
}

TEST(TableUpdates, RowsAreEvictedFromColumnsAsFromRows) {
  constexpr char kPolicy[] = "entry count 2, evict unseen 1";
  for (const Optimizer& optimizer : TableOptimizers()) {
    if (optimizer.moves) continue;  // rows that a gradient does not list differ by rounding
    SCOPED_TRACE(optimizer.name);
    const auto rows = Trained<float>(RolesOf(optimizer, "f32", 2, kPolicy), 2, true, false);
    EXPECT_EQ(rows, Trained<float>(RolesOf(optimizer, "f32", 2, kPolicy), 2, false, false));
    EXPECT_NE(rows, Trained<float>(RolesOf(optimizer, "f32", 2), 2, true, false)) << "some are evicted";
  }
}

// Slots of rows that a save still copies must not change.
TEST(TableUpdates, SweepsWaitForASaveInPortions) {
  TableServer server(RolesOf(TableOptimizers().front(), "f32", 1, "evict unseen 1"), true);
  pserver::ChunkStore& store = server.store();
  constexpr std::int64_t kHalf = 300'000;  // rows: more than one portion of 16 MB
  std::vector<std::int64_t> ids(2 * kHalf);
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  const auto update = [&](const std::vector<std::int64_t>& listed) {
    server.Step({{.ids = listed, .values = std::string(listed.size() * kWidth * sizeof(float), '\0')}});
  };
  update(ids);
  ids.resize(kHalf);
  update(ids);
  update({0});
  ASSERT_FALSE(store.CopyForSave(0)) << "the first portion";
  EXPECT_TRUE(store.BeginSweep(0));
  EXPECT_FALSE(store.Sweep(0)) << "not during the copy";
  EXPECT_EQ(store.RowCountsOf(0).evicted, 0u) << "half of the rows are gone";
  std::optional<pserver::TableCopy> copy;
  while (!copy) copy = store.CopyForSave(0);
  EXPECT_EQ(copy->rows.rows.size(), kHalf);
  update({1});
  EXPECT_TRUE(store.BeginSweep(0)) << "the next update continues";
  EXPECT_FALSE(store.BeginSweep(0)) << "once";
  while (store.Sweep(0)) {
  }
  EXPECT_EQ(store.RowCountsOf(0).evicted, 2 * kHalf - 2);
  EXPECT_TRUE(store.PublishTables().ok());
  EXPECT_EQ(server.scope().Find("t")->As<SelectedRows>().rows, (std::vector<std::int64_t>{0, 1}));
  EXPECT_FALSE(store.Sweep(0)) << "the table is in the server's scope";
}

TEST(TableUpdates, RowByRowGivesTheBytesOfColumns) { ExpectSameBytes<float>("f32"); }
TEST(TableUpdates, RowByRowGivesTheBytesOfColumnsInDoublePrecision) { ExpectSameBytes<double>("f64"); }

// A trainer that returns looks up the rows of the version before the last update, new rows included, and rows
// that the update did not list.
TEST(TableUpdates, TheLastVersionOfEachRowIsKept) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    for (const bool by_row : {true, false}) {
      SCOPED_TRACE(StrCat(optimizer.name, by_row ? "" : " on columns"));
      TableServer server(RolesOf(optimizer, "f32", 1), by_row);
      server.store().KeepVersions();
      const auto read = [&](std::uint64_t version, std::int64_t padding) {
        return BytesOf(server.Read({-4, 50, 0, 3, -4}, version, padding));
      };
      std::mt19937_64 random(7);
      int changes = 0;
      for (std::uint64_t step = 0; step < 10; ++step) {
        const std::string before = read(step, -1), padded = read(step, 3);
        server.Step({Draw<float>(random, false)});
        EXPECT_EQ(read(step, -1), before);
        EXPECT_EQ(read(step, 3), padded);
        changes += read(step + 1, -1) != before ? 1 : 0;
      }
      EXPECT_GT(changes, 5);
    }
  }
}

// What the tests compare: some optimizers have rules, others none.
TEST(TableUpdates, OptimizersWithRulesAreFound) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    const TableServer server(RolesOf(optimizer, "f32", 2), true);
    const auto& found = server.facts().params[0].row_optimizer;
    ASSERT_EQ(found.has_value(), optimizer.by_row) << optimizer.name;
    if (!found) continue;
    EXPECT_EQ(found->rule->MakeHistory() != nullptr, optimizer.moves) << optimizer.name;
  }
}

// The error of a parameter whose rate has no value tells who does the update: the store, or the runner of the
// block.
TEST(TableUpdates, RowsAreUpdatedWithoutTheBlock) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    if (optimizer.name == "adadelta") continue;  // it has no rate
    TableServer server(RolesOf(optimizer, "f32", 2), true);
    server.store();
    server.scope().Find("lr")->Clear();
    EXPECT_EQ(server.Run().id(), optimizer.by_row ? "E-server-startup" : "E-run-uninitialized")
        << optimizer.name;
  }
}

}  // namespace
}  // namespace penstock::test
