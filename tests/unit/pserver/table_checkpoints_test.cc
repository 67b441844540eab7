// Tables in checkpoints: copies that updates interrupt, and rows that are saved incrementally.
#include <numeric>
#include <random>

#include "executor/checkpoint/merge_rows.h"
#include "executor/pserver/checkpoints.h"
#include "tests/support/faulty_disk.h"
#include "tests/unit/pserver/saved_table.h"

namespace penstock::test {
namespace {

RowGradient RandomRows(std::mt19937_64& random, std::size_t count, std::int64_t ids_below) {
  RowGradient gradient;
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    gradient.ids.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(ids_below)));
    for (Dim column = 0; column < kWidth; ++column) values.push_back(static_cast<float>(random() % 100) / 64);
  }
  gradient.values.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return gradient;
}

// All that a checkpoint has of the table.
std::map<std::string, std::string> Contents(const pserver::TableCopy& copy) {
  std::map<std::string, std::string> bytes = {{"t", BytesOf(copy.rows.value) + TextOf(copy.rows.rows)}};
  for (const auto& [name, tensor] : copy.state) bytes[name] = BytesOf(tensor);
  if (copy.life) {
    bytes["life"] = BytesOf(copy.life->headers.value) + TextOf(copy.life->headers.rows);
    bytes["clock"] = BytesOf(copy.life->clock);
  }
  return bytes;
}

// The rows of all portions of a shard.
pserver::TableCopy Together(const std::vector<pserver::TableCopy>& portions) {
  pserver::TableCopy all = portions.front();
  std::vector<SelectedRows> rows;
  for (const pserver::TableCopy& portion : portions) rows.push_back(portion.rows);
  all.rows = checkpoint::MergeRows(rows);
  for (std::size_t column = all.scalars; column < all.state.size(); ++column) {
    std::vector<SelectedRows> states;
    for (const pserver::TableCopy& portion : portions) {
      const std::size_t skipped = all.scalars - portion.scalars;  // only the first has scalars
      states.push_back({.rows = portion.rows.rows, .value = portion.state[column - skipped].second});
    }
    all.state[column].second = checkpoint::MergeRows(states).value;
  }
  std::vector<SelectedRows> headers;
  for (const pserver::TableCopy& portion : portions)
    if (portion.life) headers.push_back(portion.life->headers);
  if (!headers.empty()) all.life->headers = checkpoint::MergeRows(headers);
  return all;
}

class SavedJob {
 public:
  SavedJob(const Optimizer& optimizer, Disk& disk, std::optional<std::uint64_t> resume, int shards,
           const std::string& policy = "", bool by_row = true)
      : server(RolesOf(optimizer, "f32", 1, policy), by_row, shards),
        checkpoints(pserver::Checkpoints::Make(
                        disk,
                        {.folder = "ckpt", .every = 1, .keep = 100, .resume = resume, .servers = {"a:1"}},
                        server.facts(), server.program(), 0)
                        .value()) {}
  Status Save(std::uint64_t step) {
    const bool changes = checkpoints->TakesChanges();
    had_changes = changes;
    rows_written = WriteRows(server, *checkpoints, step, changes);
    return checkpoints->Write(step, checkpoints->Take());
  }
  TableServer server;
  std::unique_ptr<pserver::Checkpoints> checkpoints;
  bool had_changes = false;
  std::size_t rows_written = 0;
};

TEST(TableCheckpoints, BaseAndChangesRestoreTheTableOfEachStep) {
  int shards = 1;
  for (const Optimizer& optimizer : TableOptimizers()) {
    shards = shards % 3 + 1;
    SCOPED_TRACE(StrCat(optimizer.name, ", ", shards, " shards"));
    FaultyDisk disk;
    std::vector<std::map<std::string, std::string>> at_step(1);
    SavedJob job(optimizer, disk, {}, shards);
    std::mt19937_64 random(3);
    int incremental = 0;
    for (std::uint64_t step = 1; step <= 8; ++step) {
      job.server.Step({RandomRows(random, step == 1 ? 60 : 4, 100)});
      ASSERT_TRUE(job.Save(step).ok());
      incremental += job.had_changes ? 1 : 0;
      at_step.push_back(Contents(job.server.Copied()));
    }
    EXPECT_GT(incremental, 3);
    for (std::uint64_t step = 1; step <= 8; ++step) {
      // A job that resumes requires that no later checkpoint is there, except to read one.
      SavedJob again(optimizer, disk, 8, 4 - shards);
      const auto found = checkpoint::FindCheckpoints(disk, "ckpt").value();
      ASSERT_EQ(found.size(), 8u);
      ASSERT_TRUE(found[step - 1].whole()) << found[step - 1].lacks;
      const auto reader = checkpoint::Reader::Make(disk, found[step - 1]).value();
      const Variable rows = reader.ReadWhole("t").value();
      EXPECT_EQ(BytesOf(rows.If<SelectedRows>()->value) + TextOf(rows.If<SelectedRows>()->rows),
                at_step[step].at("t"))
          << step;
      if (step < 8) continue;
      const auto restored = again.checkpoints->Restore(again.server.scope());
      ASSERT_TRUE(restored.ok()) << restored.status().ToString();
      EXPECT_EQ(Contents(again.server.Copied()), at_step[step]);
    }
  }
}

// Rows enter, are evicted, enter again, and their memory is taken back or not.
void ExpectPolicyIsSaved(const std::string& policy, const Optimizer& optimizer, bool by_row, unsigned seed) {
  SCOPED_TRACE(StrCat(policy, ", ", optimizer.name, by_row ? ", by row" : ", columns", ", seed ", seed));
  FaultyDisk disk;
  std::mt19937_64 random(seed);
  const int shards = static_cast<int>(seed % 3) + 1;
  SavedJob job(optimizer, disk, {}, shards, policy, by_row);
  std::vector<std::map<std::string, std::string>> at_step(1);
  constexpr std::uint64_t kSaves = 12;
  std::size_t changes = 0;
  for (std::uint64_t save = 1; save <= kSaves; ++save) {
    for (std::uint64_t steps = random() % 4; steps > 0; --steps) {
      job.server.Step({RandomRows(random, save == 1 ? 80 : 1 + random() % 6, 40)});
      if (random() % 3 > 0) continue;
      for (int shard = 0; shard < job.server.shards(); ++shard) {
        while (job.server.store().Sweep(0, shard)) {
        }
      }
    }
    ASSERT_TRUE(job.Save(save).ok());
    changes += job.had_changes ? 1 : 0;
    at_step.push_back(Contents(job.server.Copied()));
  }
  EXPECT_GT(changes, kSaves / 3);
  for (std::uint64_t save = 1; save <= kSaves; ++save) {
    SavedJob again(optimizer, disk, kSaves, 4 - shards, policy, by_row);
    if (save < kSaves) {
      // A job that resumes requires that no later checkpoint is there, except to read one.
      const auto found = checkpoint::FindCheckpoints(disk, "ckpt").value();
      ASSERT_TRUE(found[save - 1].whole()) << found[save - 1].lacks;
      const auto reader = checkpoint::Reader::Make(disk, found[save - 1]).value();
      for (const auto& [key, name] : {std::pair("t", "t"), std::pair("life", "t@ROWS")}) {
        const Variable rows = reader.ReadWhole(name).value();
        EXPECT_EQ(BytesOf(rows.If<SelectedRows>()->value) + TextOf(rows.If<SelectedRows>()->rows),
                  at_step[save].at(key))
            << save << " " << name;
      }
      continue;
    }
    const auto restored = again.checkpoints->Restore(again.server.scope());
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    const Status complete = again.checkpoints->Complete(again.server.scope(), again.server.store());
    ASSERT_TRUE(complete.ok()) << complete.ToString();
    EXPECT_EQ(Contents(again.server.Copied()), at_step[save]);
  }
}

TEST(TableCheckpoints, BaseAndChangesRestoreATableWithAPolicy) {
  const std::vector<Optimizer> optimizers = TableOptimizers();
  unsigned seed = 0;
  for (const char* policy :
       {"entry count 2", "evict unseen 2", "entry count 2, evict unseen 3", "evict count 2 after 1",
        "evict shows 0.6 decay 0.5 every 2", "entry probability 0.5, evict unseen 4, budget_mb 1"}) {
    for (int round = 0; round < 6; ++round, ++seed) {
      const Optimizer& optimizer = optimizers[seed % optimizers.size()];
      ExpectPolicyIsSaved(policy, optimizer, seed % 4 > 0, seed);
    }
  }
}

TEST(TableCheckpoints, OnColumnsTheRowsWhoseBytesDifferAreSaved) {
  const Optimizer adagrad = TableOptimizers()[1];
  FaultyDisk disk;
  SavedJob job(adagrad, disk, {}, 1, "", false);
  std::mt19937_64 random(3);
  job.server.Step({RandomRows(random, 200, 100)});
  ASSERT_TRUE(job.Save(1).ok());
  const std::size_t all = job.rows_written;
  job.server.Step({{.ids = {5, 7, 5}, .values = RandomRows(random, 3, 1).values}});
  ASSERT_TRUE(job.Save(2).ok());
  EXPECT_GT(all, 50u);
  EXPECT_EQ(job.rows_written, 2u);
  ASSERT_TRUE(job.Save(3).ok());
  EXPECT_EQ(job.rows_written, 0u);
}

// More rows than are copied at once. With a policy, updates evict rows that are still to be copied.
void ExpectTheTableOfTheBegin(const Optimizer& optimizer, const std::string& policy) {
  SCOPED_TRACE(StrCat(optimizer.name, " ", policy));
  TableServer server(RolesOf(optimizer, "f32", 1, policy), true);
  pserver::ChunkStore& store = server.store();
  constexpr std::int64_t kRows = 60'000;
  std::vector<std::int64_t> ids(kRows);
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  for (int step = 0; step < 2; ++step)
    server.Step({{.ids = ids, .values = std::string(ids.size() * kWidth * sizeof(float), '\0')}});
  const auto before = Contents(store.CopyTable(0));
  std::mt19937_64 random(5);
  std::vector<pserver::TableCopy> copies;
  store.BeginCut(0, 0, false);
  for (bool is_last = false; !is_last;) {
    server.Step({RandomRows(random, 100, 2 * kRows)});
    pserver::CutPortion portion = store.CopyForCheckpoint(0, 0);
    is_last = portion.is_last;
    copies.push_back(std::move(portion.rows));
  }
  EXPECT_EQ(copies.size() > 2, optimizer.by_row) << "a block on columns may change any row";
  EXPECT_EQ(copies.back().rows_all, kRows);
  EXPECT_EQ(Contents(Together(copies)), before);
}

TEST(TableCheckpoints, UpdatesInterruptACopy) {
  for (const Optimizer& optimizer : TableOptimizers()) ExpectTheTableOfTheBegin(optimizer, "");
  for (const char* policy : {"evict unseen 2", "entry count 2, evict unseen 1", "evict count 3 after 1"}) {
    ExpectTheTableOfTheBegin(TableOptimizers()[0], policy);
    ExpectTheTableOfTheBegin(TableOptimizers()[3], policy);
  }
}

}  // namespace
}  // namespace penstock::test
