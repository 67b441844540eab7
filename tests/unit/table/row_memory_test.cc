// The memory of tables with a policy of rows: budgets, and what is given back.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

#include "tests/unit/table/trained_table.h"

namespace penstock::table {
namespace {

constexpr std::uint64_t kWideRow = kWide * 4 + 64 + 12;

TEST(RowBudget, TheLongestUnseenRowsGo) {
  Trained trained("budget_mb 1", Layout::kRows, kWide);
  std::map<std::int64_t, int> last;  // the step that listed the id
  std::mt19937_64 random(3);
  for (int step = 0; step < 300; ++step) {
    std::vector<std::int64_t> ids(random() % 12);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % 200);
    trained.Update({ids});
    for (const std::int64_t id : ids) last[id] = step;
    if (step % 3 == 0) trained.SweepAll();
    const auto rows = trained.Published();
    ASSERT_LE(rows.size() * kWideRow, std::size_t{1} << 20) << step;
    int oldest = step;
    for (const auto& [id, value] : rows) oldest = std::min(oldest, last.at(id));
    for (const auto& [id, seen] : last) {
      ASSERT_TRUE(rows.contains(id) || seen < oldest) << "step " << step << ": " << id << " went too early";
    }
    ASSERT_TRUE(step < 100 || rows.size() * kWideRow > (std::size_t{1} << 20) * 3 / 4) << "more than must";
  }
  EXPECT_LE(trained.table().row_count(), 80) << "memory was taken back";
  EXPECT_GT(trained.table().counts().evicted, 500u);
}

TEST(RowBudget, ResultsDoNotDependOnTheSpeedOfSweeps) {
  for (const char* policy : {"budget_mb 1", "budget_mb 1, evict unseen 9", "entry count 2, budget_mb 1",
                             "entry count 2, budget_mb 1, evict count 2 after 5, evict unseen 30"}) {
    std::vector<std::map<std::int64_t, float>> results;
    std::vector<std::uint64_t> entered;
    for (int sweeps : {0, 1, 1000}) {
      std::mt19937_64 random(9);
      Trained trained(policy, Layout::kRows, kWide);
      for (int step = 0; step < 250; ++step) {
        std::vector<std::vector<std::int64_t>> ids(2);
        for (auto& list : ids) {
          list.resize(random() % 10);
          for (std::int64_t& id : list) id = static_cast<std::int64_t>(random() % (step < 125 ? 150 : 60));
        }
        trained.Update(ids);
        for (int i = 0; i < sweeps && trained.table().Sweep(); ++i) {
        }
      }
      results.push_back(trained.Published());
      entered.push_back(trained.table().counts().entered);
    }
    EXPECT_EQ(results[0], results[1]) << policy;
    EXPECT_EQ(results[0], results[2]) << policy;
    EXPECT_EQ(entered[0], entered[1]) << policy;
    EXPECT_EQ(entered[0], entered[2]) << policy;
    EXPECT_GT(entered[0], results[0].size()) << policy;
  }
}

TEST(RowBudget, RowsOfTheLastStepStay) {
  Trained trained("budget_mb 1", Layout::kRows, kWide);
  std::vector<std::int64_t> ids(200);
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  trained.Update({{1000}});
  trained.Update({ids});
  trained.SweepAll();
  EXPECT_EQ(trained.Published().size(), 200u) << "three times the budget";
  trained.Update({{5}});
  trained.SweepAll();
  EXPECT_EQ(trained.Published().size(), 1u) << "rows of one step go together";
}

// AddressSanitizer does not give back what is freed, to find uses of it.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepsFreedMemory = true;
#else
constexpr bool kKeepsFreedMemory = false;
#endif

std::size_t ResidentBytes() {
#ifdef __GLIBC__
  malloc_trim(0);  // gradients that were freed are not the table's
#endif
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class RowMemory : public testing::TestWithParam<Layout> {};

// Every second row, so that no page becomes empty by itself.
TEST_P(RowMemory, FallsByTwoFifthsWhenHalfOfTheRowsAreEvicted) {
  constexpr std::int64_t kRows = 1 << 19;  // 67 MB with 16 floats
  const std::size_t before = ResidentBytes();
  Trained trained("evict unseen 6", GetParam(), 16);
  std::vector<std::int64_t> all, even;
  constexpr std::int64_t kPart = kRows / 4;
  for (std::int64_t part = 0; part < 4; ++part) {
    all.clear();
    for (std::int64_t id = part * kPart; id < (part + 1) * kPart; ++id) all.push_back(id);
    trained.Update({all});
  }
  all = {};
  const std::size_t full = ResidentBytes() - before;
  for (std::int64_t part = 0; part < 4; ++part) {
    even.clear();
    for (std::int64_t id = part * kPart; id < (part + 1) * kPart; id += 2) even.push_back(id);
    trained.Update({even});
  }
  even = {};
  for (int step = 0; step < 3; ++step) {
    trained.Update({{0}});
    trained.SweepAll();
  }
  EXPECT_EQ(trained.table().row_count(), kRows / 2);
  EXPECT_EQ(trained.Read(2), Initial(2) - 2);
  EXPECT_EQ(trained.Read(3), Initial(3));
  if (kKeepsFreedMemory) return;
  const std::size_t half = ResidentBytes() - before;
  EXPECT_GE(full, std::size_t{kRows} * 64) << "the rows were in memory";
  EXPECT_LE(static_cast<double>(half), 0.6 * static_cast<double>(full));
}

INSTANTIATE_TEST_SUITE_P(Layouts, RowMemory, testing::Values(Layout::kRows, Layout::kColumns));

}  // namespace
}  // namespace penstock::table
