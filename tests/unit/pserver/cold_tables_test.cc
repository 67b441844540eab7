// Tables whose rows are on disk beyond a budget have the bytes of tables in memory, with every optimizer that
// updates rows one by one; also where rows miss updates.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>

#include "executor/pserver/memory/kept_rows.h"
#include "executor/table/row_table.h"
#include "operators/all_ops.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

using table::RowTable;

constexpr Dim kFloats = 1024;  // 1 MB has 250 rows of sgd, 83 of adam
constexpr std::int64_t kIdsBelow = 600;

struct ColdCase {
  const char* optimizer;
  std::size_t columns;
  bool lazy;
};

class Stored {
 public:
  Stored(const ColdCase& of, const std::string& policy, Disk& disk) : columns_(of.columns) {
    std::vector<RowTable::ColumnSource> sources;
    std::vector<std::size_t> used;
    for (std::size_t i = 0; i < columns_; ++i) {
      variables_[i].As<SelectedRows>().value = Tensor(DType::kFp32, {0, kFloats});
      sources.push_back({i == 0 ? "t" : "state", &variables_[i]});
      used.push_back(i);
    }
    table = RowTable::Make({1000, kFloats}, sources, RowTable::Layout::kRows,
                           policy.empty() ? RowPolicy() : ParseRowPolicy(policy).value(),
                           {.disk = &disk, .name = "t"})
                .value();
    Op op(of.optimizer);
    op.Set("lazy_mode", of.lazy);
    table->UseRule(RowRuleOf(*AllOps().Find(of.optimizer), op, DType::kFp32), used);
    table->KeepLast();
  }
  void Update(const std::vector<std::int64_t>& ids) {
    SelectedRows gradient;
    gradient.rows = ids;
    gradient.value = Tensor(DType::kFp32, {static_cast<Dim>(ids.size()), kFloats});
    float* to = gradient.value.Data<float>();
    for (const std::int64_t id : ids) {
      for (Dim i = 0; i < kFloats; ++i) *to++ = static_cast<float>((id + i) % 17) / 8 - 1;
    }
    SelectedRows* const gradients[] = {&gradient};
    std::byte* const whole[] = {reinterpret_cast<std::byte*>(&powers_[0]),
                                reinterpret_cast<std::byte*>(&powers_[1])};
    ASSERT_TRUE(table->Fetch(ids).ok());
    table->Update(
        {.gradients = gradients, .rate = reinterpret_cast<const std::byte*>(&rate_), .whole = whole});
  }
  std::vector<float> Read(const std::vector<std::int64_t>& ids, bool last) {
    std::vector<float> rows(ids.size() * kFloats);
    EXPECT_TRUE(table->Fetch(ids).ok());
    auto* const to = reinterpret_cast<std::byte*>(rows.data());
    last ? table->ReadLast(ids, 3, to) : table->Read(ids, 3, to);
    return rows;
  }

  std::optional<RowTable> table;

 private:
  const std::size_t columns_;
  std::array<Variable, 3> variables_;
  std::array<float, 2> powers_ = {0.9f, 0.999f};
  float rate_ = 0.01f;
};

std::string RawOf(const Tensor& tensor) {
  return tensor.initialized() ? std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()) : "";
}

void ExpectSame(table::RowCopy copy, table::RowCopy expected) {
  ASSERT_TRUE(copy.status.ok()) << copy.status.ToString();
  copy.Sort();
  expected.Sort();
  ASSERT_EQ(copy.rows.rows, expected.rows.rows);
  EXPECT_EQ(RawOf(copy.rows.value), RawOf(expected.rows.value));
  for (std::size_t i = 0; i < copy.states.size(); ++i)
    EXPECT_EQ(RawOf(copy.states[i]), RawOf(expected.states[i]));
  EXPECT_EQ(RawOf(copy.versions), RawOf(expected.versions));
  EXPECT_EQ(RawOf(copy.history), RawOf(expected.history));
}

TEST(ColdTables, HaveTheBytesOfTablesInMemory) {
  int seed = 0;
  for (const ColdCase& of : {ColdCase{"sgd", 1, true},
                             {"adagrad", 2, true},
                             {"adam", 3, true},
                             {"adam", 3, false},
                             {"momentum", 2, true}}) {
    SCOPED_TRACE(StrCat(of.optimizer, of.lazy ? "" : ", every row"));
    std::mt19937_64 random(static_cast<unsigned>(++seed));
    FaultyDisk disk;
    Stored plain(of, "", disk), cold(of, "budget_mb 1, cold_dir \"cold\"", disk);
    for (int step = 0; step < 120; ++step) {
      std::vector<std::int64_t> ids(random() % 25);
      for (std::int64_t& id : ids)
        id = static_cast<std::int64_t>(random() % (random() % 2 == 0 ? 30 : kIdsBelow));
      plain.Update(ids);
      cold.Update(ids);
      for (auto slices = random() % 12; slices > 0 && cold.table->Sweep(); --slices) {
      }
      std::vector<std::int64_t> asked(5);
      for (std::int64_t& id : asked) id = static_cast<std::int64_t>(random() % kIdsBelow);
      ASSERT_EQ(cold.Read(asked, false), plain.Read(asked, false)) << step;
      ASSERT_EQ(cold.Read(asked, true), plain.Read(asked, true)) << step;
      if (step % 30 != 29) continue;
      do {
        while (cold.table->Sweep()) {
        }
        std::this_thread::yield();
      } while (cold.table->moving());
      for (const auto kind : {table::CopiedRows::kStored, table::CopiedRows::kCurrent}) {
        table::RowCopy expected = plain.table->BeginCopy(kind), copy = cold.table->BeginCopy(kind);
        plain.table->CopyRows(expected, plain.table->row_count());
        while (!cold.table->CopyRows(copy, 7)) {
        }
        ExpectSame(std::move(copy), std::move(expected));
      }
    }
    EXPECT_GT(cold.table->cold_counts().fetched, 50u);
    EXPECT_EQ(cold.table->row_count(), plain.table->row_count());
  }
}

// What a server keeps for a trainer that repeats a step.
TEST(ColdTables, RowsThatAnUpdateEvictsCanBeKept) {
  FaultyDisk disk;
  const ColdCase sgd{"sgd", 1, true};
  Stored plain(sgd, "evict unseen 7", disk),
      cold(sgd, "evict unseen 7, budget_mb 1, cold_dir \"cold\"", disk);
  std::mt19937_64 random(2);
  std::size_t left = 0;
  for (int step = 0; step < 60; ++step) {
    std::vector<std::int64_t> ids(50);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % kIdsBelow);
    for (Stored* const stored : {&plain, &cold}) {
      stored->Update(ids);
      while (stored->table->Sweep()) {
      }
    }
    table::RowCopy copy = cold.table->CopyLeaving();
    ExpectSame(std::move(copy), plain.table->CopyLeaving());
    table::RowCopy leaving = cold.table->CopyLeaving();
    leaving.Sort();
    left += leaving.rows.rows.size();
    if (leaving.rows.rows.empty()) continue;
    std::vector<std::int64_t> listed = {leaving.rows.rows.front(), 100000, 5};
    ASSERT_TRUE(cold.table->Fetch(listed).ok());
    pserver::KeptRows kept(listed, *cold.table, kFloats * sizeof(float));
    kept.Add(leaving.rows);
    std::vector<std::int64_t> asked = leaving.rows.rows;
    asked.insert(asked.end(), {100000, 5});
    const std::vector<float> expected = plain.Read(asked, false);
    std::vector<float> rows(expected.size(), -1);
    kept.Replace(asked, 3, reinterpret_cast<std::byte*>(rows.data()));
    EXPECT_EQ(rows, expected) << step;
  }
  EXPECT_GT(left, 100u);
  EXPECT_GT(cold.table->cold_counts().written, 100u);
}

}  // namespace
}  // namespace penstock::test
