// Tables whose rows are on disk beyond a budget, compared with tables that keep all in memory.
#include "executor/table/cold_tier.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/support/faulty_disk.h"
#include "tests/unit/table/trained_table.h"

namespace penstock::table {
namespace {

using test::FaultyDisk;

constexpr char kCold[] = "budget_mb 1, cold_dir \"cold\"";
constexpr std::int64_t kIds = 300;  // 1 MB has 63 rows

std::string With(std::string_view policy, const std::string& cold = kCold) {
  return policy.empty() ? cold : StrCat(policy, ", ", cold);
}

// Sweeps until nothing is left to do, however slow the disk is.
void Settle(Trained& trained) {
  do {
    trained.SweepAll();
    std::this_thread::yield();
  } while (trained.table().moving());
}

std::vector<std::vector<std::int64_t>> RandomIds(std::mt19937_64& random) {
  std::vector<std::vector<std::int64_t>> ids(2);
  for (auto& list : ids) {
    list.resize(random() % 15);
    for (std::int64_t& id : list)
      id = random() % 3 == 0 ? static_cast<std::int64_t>(random() % 20)
                             : static_cast<std::int64_t>(random() % kIds);
  }
  return ids;
}

std::vector<std::vector<std::int64_t>> All() {
  std::vector<std::int64_t> ids(kIds);
  for (std::int64_t id = 0; id < kIds; ++id) ids[static_cast<std::size_t>(id)] = id;
  return {ids};
}

class ColdRows : public testing::TestWithParam<const char*> {};

TEST_P(ColdRows, EqualThoseOfATableInMemory) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937_64 random(seed);
    FaultyDisk disk;
    Trained plain(GetParam(), Layout::kRows, kWide), cold(With(GetParam()), Layout::kRows, kWide, &disk);
    std::uint64_t most_cold = 0;
    for (int step = 0; step < 400; ++step) {
      disk.SetCached(random() % 2 == 0);
      const auto ids = RandomIds(random);
      plain.Update(ids);
      cold.Update(ids);
      for (auto slices = random() % 20; slices > 0 && cold.table().Sweep(); --slices) {
      }
      if (random() % 8 == 0) plain.table().Sweep();
      for (int i = 0; i < 4; ++i) {
        const auto id = static_cast<std::int64_t>(random() % (kIds + 5));
        ASSERT_EQ(cold.Read(id), plain.Read(id)) << "seed " << seed << " step " << step << " id " << id;
      }
      if (step % 40 == 0) {
        ASSERT_EQ(cold.Published(), plain.Published()) << "seed " << seed << " step " << step;
      }
      most_cold = std::max(most_cold, cold.table().cold_counts().cold);
    }
    EXPECT_EQ(cold.Published(), plain.Published());
    EXPECT_EQ(cold.table().counts().entered, plain.table().counts().entered);
    EXPECT_EQ(cold.table().counts().rejected, plain.table().counts().rejected);
    EXPECT_GT(most_cold, 30u) << "some were on disk";
    EXPECT_GT(cold.table().cold_counts().fetched, 100u);
    EXPECT_GT(cold.table().cold_counts().written, 100u);
  }
}

// Copies of both kinds in portions, with updates and reads in between.
TEST_P(ColdRows, AreInCopiesAsTheyWereWhenTheCopyBegan) {
  std::mt19937_64 random(4);
  FaultyDisk disk;
  Trained plain(GetParam(), Layout::kRows, kWide), cold(With(GetParam()), Layout::kRows, kWide, &disk);
  const auto bytes_of = [](RowCopy copy) {
    EXPECT_TRUE(copy.status.ok());
    copy.Sort();
    std::map<std::int64_t, float> rows;
    for (std::size_t i = 0; i < copy.rows.rows.size(); ++i)
      rows[copy.rows.rows[i]] = copy.rows.value.Data<float>()[i * kWide];
    return rows;
  };
  for (int round = 0; round < 25; ++round) {
    for (int step = 0; step < 12; ++step) {
      const auto ids = RandomIds(random);
      plain.Update(ids);
      cold.Update(ids);
      cold.SweepAll();
    }
    Settle(cold);
    const auto kind = round % 2 == 0 ? CopiedRows::kStored : CopiedRows::kCurrent;
    std::optional<std::uint64_t> since;
    if (plain.table().NotesChanges() && round % 3 == 0) since = plain.table().version() - random() % 12;
    RowCopy expected = plain.table().BeginCopy(kind, since);
    plain.table().CopyRows(expected, plain.table().row_count());
    RowCopy copy = cold.table().BeginCopy(kind, since);
    const LifeCopy all_life = plain.table().has_policy() ? plain.table().CopyLife() : LifeCopy();
    while (!cold.table().CopyRows(copy, static_cast<Dim>(random() % 20))) {
      cold.Read(static_cast<std::int64_t>(random() % kIds));
      if (random() % 3 != 0) continue;
      const auto ids = RandomIds(random);
      for (const auto& list : ids) ASSERT_TRUE(cold.table().Fetch(list).ok());
      std::vector<SelectedRows> gradients(ids.size());
      std::vector<SelectedRows*> pointers;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        gradients[i].rows = ids[i];
        pointers.push_back(&gradients[i]);
      }
      if (cold.table().CopiesAhead(copy)) {
        cold.table().CopyAhead(copy, pointers);
      } else {
        cold.table().CopyRows(copy, cold.table().row_count());
      }
      plain.Update(ids);
      cold.Update(ids);
    }
    if (cold.table().has_policy() && kind == CopiedRows::kStored && !since) {
      LifeCopy life = copy.TakeLife();
      SortRows(life.headers, {});
      EXPECT_EQ(life.headers.rows, all_life.headers.rows);
      const auto fields = life.headers.value.Span<std::int64_t>();
      const auto wanted = all_life.headers.value.Span<std::int64_t>();
      EXPECT_TRUE(std::ranges::equal(fields, wanted));
    }
    ASSERT_EQ(bytes_of(std::move(copy)), bytes_of(std::move(expected))) << "round " << round;
  }
  EXPECT_GT(cold.table().cold_counts().cold, 20u);
}

// Of checkpoints in portions: a base, then changes and the ids that are gone.
TEST_P(ColdRows, AreInTheChangesOfCheckpoints) {
  std::mt19937_64 random(5);
  FaultyDisk disk;
  Trained plain(GetParam(), Layout::kRows, kWide), cold(With(GetParam()), Layout::kRows, kWide, &disk);
  std::map<std::int64_t, float> saved;
  for (int cut = 0; cut < 30; ++cut) {
    for (int step = 0; step < 8; ++step) {
      const auto ids = RandomIds(random);
      plain.Update(ids);
      cold.Update(ids);
      cold.SweepAll();
    }
    if (cut % 3 != 0) Settle(cold);
    RowCopy copy = cold.table().BeginCut(cut > 0, 7);
    std::vector<std::int64_t> gone;
    std::map<std::int64_t, float> changed;
    bool complete = false;
    Dim stored = 0;
    while (!complete) {
      complete = cold.table().CopyRows(copy, 7);
      RowCopy rows = copy.TakeRows();
      ASSERT_TRUE(rows.status.ok());
      gone.insert(gone.end(), rows.gone.begin(), rows.gone.end());
      for (std::size_t i = 0; i < rows.rows.rows.size(); ++i)
        changed[rows.rows.rows[i]] = rows.rows.value.Data<float>()[static_cast<Dim>(i) * kWide];
      if (complete) stored = rows.stored;
      cold.Read(static_cast<std::int64_t>(random() % kIds));
    }
    for (const std::int64_t id : gone) saved.erase(id);
    for (const auto& [id, value] : changed) saved[id] = value;
    ASSERT_EQ(saved, plain.Published()) << "cut " << cut;
    EXPECT_EQ(stored, static_cast<Dim>(saved.size()));
  }
  EXPECT_GT(cold.table().cold_counts().fetched, 100u);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ColdRows,
    testing::Values("", "entry count 2", "evict unseen 60", "entry probability 0.5, evict count 3 after 25",
                    "evict shows 1.5 decay 0.7 every 20",
                    "entry count 2, evict unseen 80, evict shows 1.2 decay 0.6 every 30"));

TEST(ColdTier, MemoryStaysInTheBudget) {
  FaultyDisk disk;
  Trained trained(kCold, Layout::kRows, kWide, &disk);
  for (int step = 0; step < 60; ++step) {
    trained.Update({{step * 5, step * 5 + 1, step * 5 + 2, step * 5 + 3, step * 5 + 4}});
    Settle(trained);
    EXPECT_LE(trained.table().cold_counts().hot * (kWide * 4 + 64), std::size_t{1} << 20) << step;
  }
  EXPECT_EQ(trained.table().row_count(), 300);
  EXPECT_GT(trained.table().cold_counts().hot, 40u) << "and it is used";
}

TEST(ColdTier, ASlowDiskHoldsUpATableThatIsFarOverItsBudget) {
  FaultyDisk disk;
  std::mutex mutex;
  std::condition_variable never;
  disk.before_operation = [&] {
    std::unique_lock lock(mutex);
    never.wait_for(lock, std::chrono::milliseconds(2));
  };
  Trained trained(kCold, Layout::kRows, kWide, &disk);
  for (std::int64_t step = 0; step < 200; ++step) {
    trained.Update({{2 * step, 2 * step + 1}});
    trained.SweepAll();
    EXPECT_LE(trained.table().cold_counts().hot, 76u) << step;
  }
  EXPECT_GT(trained.table().cold_counts().waits, 0u);
}

// A disk whose writer stops before one operation until it is let go on.
class StoppedDisk : public FaultyDisk {
 public:
  explicit StoppedDisk(int operation) {
    before_operation = [this, operation] {
      if (operations() != operation) return;
      std::unique_lock lock(mutex_);
      stopped_ = true;
      changed_.wait(lock, [this] { return goes_on_; });
    };
  }
  bool stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  void GoOn() {
    {
      const std::lock_guard lock(mutex_);
      goes_on_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false, goes_on_ = false;
};

TEST(ColdTier, ARowCanBeReadAndUpdatedWhereverTheWriterStops) {
  // After the folder: the file is made, its name is removed, batches are appended.
  for (int operation = 2; operation < 9; ++operation) {
    StoppedDisk disk(operation);
    Trained trained(kCold, Layout::kRows, kWide, &disk);
    std::map<std::int64_t, float> expected;
    const auto update = [&](std::int64_t id) {
      trained.Update({{id}});
      if (!expected.contains(id)) expected[id] = Initial(id);
      --expected[id];
    };
    const auto expect_all = [&](const char* when) {
      for (const auto& [id, value] : expected)
        ASSERT_EQ(trained.Read(id), value) << operation << ", " << when << ", id " << id;
      EXPECT_EQ(trained.Published(), expected) << operation << ", " << when;
    };
    RowTable& table = trained.table();
    for (std::int64_t id = 0; !disk.stopped();) {  // no row is added meanwhile: the table never waits
      if (table.sweeping()) {
        table.Sweep();
      } else if (table.moving()) {
        std::this_thread::yield();
      } else {
        update(id++);
      }
    }
    expect_all("while rows are written");
    for (std::int64_t id = 0; id < 40; id += 3) update(id);
    expect_all("after updates of rows that are written");
    disk.GoOn();
    Settle(trained);
    EXPECT_GT(table.cold_counts().cold, 0u);
    expect_all("at the end");
  }
}

class ColdErrors : public testing::Test {
 protected:
  ColdErrors() : trained_(kCold, Layout::kRows, kWide, &disk_) {
    trained_.Update(All());
    trained_.Update({{0, 1, 2}});
    Settle(trained_);
  }
  // The first id whose row cannot be read, and why.
  std::pair<std::int64_t, Status> FirstError() {
    for (std::int64_t id = 0; id < kIds; ++id) {
      Status status = trained_.table().Fetch(std::vector<std::int64_t>{id});
      if (!status.ok()) return {id, std::move(status)};
    }
    return {-1, OkStatus()};
  }

  FaultyDisk disk_;
  Trained trained_;
};

TEST_F(ColdErrors, DamagedBytesAreAnErrorThatNamesFileAndRow) {
  ASSERT_GT(trained_.table().cold_counts().cold, 200u);
  const std::string path = StrCat("cold/t.", ::getpid(), ".0");
  disk_.Damage(path, 40000);
  const auto [id, status] = FirstError();
  ASSERT_GE(id, 0);
  EXPECT_EQ(status.id(), "E-table-cold-damaged");
  EXPECT_NE(status.message().find(path), std::string::npos) << status.ToString();
  EXPECT_NE(status.message().find(StrCat("row ", id)), std::string::npos) << status.ToString();
  EXPECT_EQ(trained_.table().Publish().id(), "E-table-cold-damaged");
}

TEST_F(ColdErrors, AReadThatFailsIsAnErrorAndTheRowIsThereAfterwards) {
  disk_.SetCached(false);
  disk_.RefuseReads(true);
  const auto [id, status] = FirstError();
  ASSERT_GE(id, 0);
  EXPECT_EQ(status.id(), "E-file-read");
  EXPECT_NE(status.message().find(StrCat("row ", id)), std::string::npos) << status.ToString();
  EXPECT_NE(status.message().find("errno 5"), std::string::npos) << status.ToString();
  EXPECT_EQ(trained_.table().Publish().id(), "E-file-read");
  disk_.RefuseReads(false);
  for (std::int64_t other = 0; other < kIds; ++other)
    ASSERT_EQ(trained_.Read(other), Initial(other) - (other < 3 ? 2 : 1));
}

TEST_F(ColdErrors, AFullDiskIsAnErrorAndLosesNoRow) {
  disk_.SetRoom(100000);
  std::vector<std::int64_t> more;
  for (std::int64_t id = 0; id < 100; ++id) more.push_back(1000 + id);
  trained_.Update({more});
  trained_.Update({{0}});
  Settle(trained_);
  const Status status = trained_.table().Fetch(more);
  EXPECT_EQ(status.id(), "E-file-write");
  EXPECT_NE(status.message().find("errno 28"), std::string::npos) << status.ToString();
  EXPECT_FALSE(trained_.table().sweeping());
  const auto rows = trained_.Published();
  EXPECT_EQ(rows.size(), 400u);
  EXPECT_EQ(rows.at(1050), Initial(1050) - 1);
}

TEST(ColdTier, SpaceOnDiskFollowsTheRowsThatAreThere) {
  FaultyDisk disk;
  {
    Trained trained(kCold, Layout::kRows, kWide, &disk);
    std::mt19937_64 random(8);
    trained.Update(All());
    for (int step = 0; step < 600; ++step) {
      std::vector<std::int64_t> ids(10);
      for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % kIds);
      trained.Update({ids});
      if (step % 10 == 0) Settle(trained);
    }
    Settle(trained);
    const ColdCounts counts = trained.table().cold_counts();
    EXPECT_GT(counts.written, 2000u);
    EXPECT_LT(counts.file_bytes, 3 * counts.cold * (kWide * 4 + 64));
    EXPECT_LE(disk.open_files(), 16);
    EXPECT_TRUE(disk.List("cold").value().empty()) << "no name is left";
  }
  EXPECT_EQ(disk.open_files(), 0);
}

TEST(ColdTier, RowsThatAreEvictedLeaveTheDisk) {
  FaultyDisk disk;
  Trained trained(With("evict unseen 20"), Layout::kRows, kWide, &disk);
  trained.Update(All());
  trained.Update({{5000}});
  Settle(trained);
  ASSERT_GT(trained.table().cold_counts().cold, 200u);
  for (int step = 0; step < 40; ++step) {
    trained.Update({{5000, 5001}});
    Settle(trained);
  }
  EXPECT_EQ(trained.table().row_count(), 2);
  EXPECT_EQ(trained.table().counts().evicted, 300u);
  EXPECT_LE(disk.open_files(), 1);
}

TEST(ColdTier, NeedsRowsInOnePieceAndAFolder) {
  FaultyDisk disk;
  Variable variable;
  auto& rows = variable.As<SelectedRows>();
  rows.value = Tensor(DType::kFp32, {0, 2});
  rows.start = std::make_shared<LifeStart>();
  const RowPolicy policy = ParseRowPolicy(kCold).value();
  const auto make = [&](Layout layout) {
    return RowTable::Make({1000, 2}, {{"t", &variable}}, layout, policy, {.disk = &disk, .name = "t"})
        .status();
  };
  EXPECT_EQ(make(Layout::kColumns).id(), "E-server-cold");
  EXPECT_TRUE(make(Layout::kRows).ok());
  disk.CrashAt(0);
  EXPECT_TRUE(make(Layout::kRows).ok()) << "the folder is there";
}

TEST(Background, RunsOneJobAfterTheOther) {
  Background background;
  int runs = 0;
  for (int i = 0; i < 100; ++i) {
    background.Start([&] { return ++runs % 2 == 0 ? OkStatus() : InvalidArgument("E-test", "odd"); });
    EXPECT_TRUE(background.started());
    EXPECT_EQ(background.Take().ok(), i % 2 == 1);
    EXPECT_FALSE(background.started());
    EXPECT_FALSE(background.finished());
  }
  background.Start([&] {
    ++runs;
    return OkStatus();
  });
  background.Wait();
  EXPECT_TRUE(background.finished());
  EXPECT_EQ(runs, 101);
}

}  // namespace
}  // namespace penstock::table
