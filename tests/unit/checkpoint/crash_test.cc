// Checkpoints on a disk that stops at each of its operations, that is full, and that damages bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/writer.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

using checkpoint::FindCheckpoints;
using checkpoint::Found;
using checkpoint::Manifest;
using checkpoint::NewestWhole;
using checkpoint::Value;
using checkpoint::Writer;

constexpr int kServers = 2;

// What server `server` holds after `step` steps: a tensor and a table.
std::vector<Value> ValuesAt(std::uint64_t step, int server) {
  std::vector<Value> values(2);
  values[0].entry = {.name = "w", .of = "w", .row_begin = server * 3, .type = "f32[3, 2]"};
  Tensor w(DType::kFp32, {3, 2});
  for (int i = 0; i < 6; ++i) w.Data<float>()[i] = static_cast<float>(step * 100 + server * 10 + i);
  values[0].value.As<Tensor>() = std::move(w);
  values[1].entry = {.name = "t", .of = "t", .row_begin = {}, .rows = true, .type = "f32[1, 2]"};
  Tensor row(DType::kFp32, {1, 2});
  row.Data<float>()[0] = row.Data<float>()[1] = static_cast<float>(step);
  values[1].value.As<SelectedRows>() = {
      .rows = {static_cast<std::int64_t>(server) - 5}, .height = 100, .value = std::move(row)};
  return values;
}

Status WriteStep(Disk& disk, std::uint64_t step, const char* run = "job.0", int keep = 2) {
  for (int server = 0; server < kServers; ++server) {
    Writer writer(disk, {.folder = "ckpt", .keep = keep});
    const Manifest head{.step = step, .server = server, .servers = kServers, .run = run, .values = {}};
    PENSTOCK_RETURN_IF_ERROR(writer.Write(head, ValuesAt(step, server)));
  }
  return OkStatus();
}

void ExpectHolds(Disk& disk, std::uint64_t step) {
  const Result<std::vector<Found>> all = FindCheckpoints(disk, "ckpt");
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  for (const Found& found : *all) {
    if (found.step != step) continue;
    ASSERT_TRUE(found.whole()) << found.lacks;
    for (int server = 0; server < kServers; ++server) {
      const auto read = ReadPart(disk, found.folder, found.parts[static_cast<std::size_t>(server)]);
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      const std::vector<Value> expected = ValuesAt(step, server);
      ASSERT_EQ(read->size(), expected.size());
      const Tensor &w = *(*read)[0].value.If<Tensor>(), &w_expected = *expected[0].value.If<Tensor>();
      ASSERT_EQ(w.shape(), w_expected.shape());
      EXPECT_EQ(std::memcmp(w.raw(), w_expected.raw(), w.bytes()), 0);
      const SelectedRows &t = *(*read)[1].value.If<SelectedRows>(),
                         &t_expected = *expected[1].value.If<SelectedRows>();
      EXPECT_EQ(t.rows, t_expected.rows);
      EXPECT_EQ(std::memcmp(t.value.raw(), t_expected.value.raw(), t_expected.value.bytes()), 0);
    }
    return;
  }
  FAIL() << "no checkpoint of step " << step;
}

TEST(Checkpoint, ACrashAtAnyOperationLeavesThePreviousOrTheNewOne) {
  int operations = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    for (int crash = 0;; ++crash) {
      FaultyDisk disk(seed);
      ASSERT_TRUE(WriteStep(disk, 5).ok());
      ASSERT_TRUE(WriteStep(disk, 10).ok());
      const int before = disk.operations();
      disk.CrashAt(before + crash + 1);
      const bool written = WriteStep(disk, 15).ok();
      operations = disk.operations() - before;
      disk.Restart();
      const Result<std::optional<std::uint64_t>> newest = NewestWhole(disk, "ckpt");
      ASSERT_TRUE(newest.ok()) << newest.status().ToString();
      ASSERT_TRUE(newest->has_value());
      EXPECT_TRUE(**newest == 15 || (!written && **newest == 10)) << **newest;
      ExpectHolds(disk, **newest);
      // The job goes on, and writes the same step again.
      Writer writer(disk, {.folder = "ckpt"});
      ASSERT_TRUE(writer.RemoveAfter(**newest).ok());
      ASSERT_TRUE(WriteStep(disk, 15, "job.1").ok());
      ExpectHolds(disk, 15);
      if (written) break;
    }
  }
  EXPECT_GT(operations, 20) << "the crashes cover the values, the manifests and the removal of the old one";
}

// A table of `step` steps, each of which changes row 3 and adds a row.
SelectedRows TableAt(std::uint64_t step, bool changes) {
  SelectedRows rows{.rows = {}, .height = 100, .value = {}};
  std::vector<float> values;
  for (std::uint64_t id = 3; id < 30 + step; ++id) {
    if (changes && id != 3 && id < 30 + step - 5) continue;
    rows.rows.push_back(static_cast<std::int64_t>(id));
    values.push_back(static_cast<float>(id == 3 ? step : id));
  }
  rows.value = Tensor(DType::kFp32, {static_cast<Dim>(values.size()), 1});
  std::ranges::copy(values, rows.value.Data<float>());
  return rows;
}

// A server that saves the table incrementally.
class TableWriter {
 public:
  explicit TableWriter(Disk& disk, int keep = 1) : writer_(disk, {.folder = "ckpt", .keep = keep}) {}
  Status Write(std::uint64_t step, const char* run = "job.0") {
    const bool changes = writer_.TakesChanges();
    const SelectedRows all = TableAt(step, false);
    std::vector<Value> values(2);
    values[0].entry = {
        .name = "t", .of = "t", .row_begin = {}, .rows = true, .type = StrCat("f32", all.value.shape())};
    values[0].saved_as = changes ? Value::Rows::kChanges : Value::Rows::kBase;
    values[0].value.As<SelectedRows>() = TableAt(step, changes);
    values[1].entry = {.name = "w", .of = "w", .row_begin = 0, .type = "f32[1]"};
    values[1].value.As<Tensor>() = Tensor(DType::kFp32, {1});
    values[1].value.As<Tensor>().Data<float>()[0] = static_cast<float>(step);
    return writer_.Write({.step = step, .server = 0, .servers = 1, .run = run, .values = {}}, values);
  }
  bool TakesChanges() const { return writer_.TakesChanges(); }

 private:
  Writer writer_;
};

void ExpectTableOf(Disk& disk, std::uint64_t step) {
  const Result<std::vector<Found>> all = FindCheckpoints(disk, "ckpt");
  ASSERT_TRUE(all.ok());
  const auto found = std::ranges::find(*all, step, &Found::step);
  ASSERT_NE(found, all->end()) << step;
  ASSERT_TRUE(found->whole()) << found->lacks;
  const auto read = ReadPart(disk, found->folder, found->parts[0]);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const SelectedRows &t = *(*read)[0].value.If<SelectedRows>(), expected = TableAt(step, false);
  EXPECT_EQ(t.rows, expected.rows);
  ASSERT_EQ(t.value.shape(), expected.value.shape());
  EXPECT_EQ(std::memcmp(t.value.raw(), expected.value.raw(), t.value.bytes()), 0);
}

TEST(Checkpoint, RowsThatHaveChangedFollowABase) {
  FaultyDisk disk;
  TableWriter writer(disk);
  std::vector<std::size_t> files;
  for (std::uint64_t step = 5; step <= 40; step += 5) {
    ASSERT_TRUE(writer.Write(step).ok());
    EXPECT_EQ(disk.List("ckpt").value(), std::vector{StrCat("step-", step)}) << "each is complete alone";
    ExpectTableOf(disk, step);
    files.push_back(FindCheckpoints(disk, "ckpt").value().back().parts[0].files.size());
  }
  EXPECT_EQ(files, (std::vector<std::size_t>{1, 2, 3, 1, 2, 3, 4, 1})) << "a base again";
}

TEST(Checkpoint, ACrashAtAnyOperationKeepsABaseThatChangesNeed) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const std::uint64_t last : {15U, 20U}) {  // changes, and a base again
      for (int crash = 0;; ++crash) {
        FaultyDisk disk(seed);
        TableWriter writer(disk);
        for (std::uint64_t step = 5; step < last; step += 5) ASSERT_TRUE(writer.Write(step).ok());
        disk.CrashAt(disk.operations() + crash + 1);
        const bool written = writer.Write(last).ok();
        disk.Restart();
        const Result<std::optional<std::uint64_t>> newest = NewestWhole(disk, "ckpt");
        ASSERT_TRUE(newest.ok()) << newest.status().ToString();
        ASSERT_TRUE(newest->has_value());
        EXPECT_TRUE(**newest == last || (!written && **newest == last - 5)) << **newest;
        ExpectTableOf(disk, **newest);
        ASSERT_TRUE(Writer(disk, {.folder = "ckpt"}).RemoveAfter(**newest).ok());
        TableWriter again(disk);
        for (std::uint64_t step = last; step < last + 10; step += 5) {
          ASSERT_TRUE(again.Write(step, "job.1").ok());
          ExpectTableOf(disk, step);
        }
        if (written) break;
      }
    }
  }
}

// Its rows may be links to those of earlier steps, which other folders do not have any more.
TEST(Checkpoint, TheSameStepTwiceKeepsTheFirstPart) {
  for (const std::uint64_t last : {5U, 10U}) {  // a base, and changes
    SCOPED_TRACE(last);
    FaultyDisk disk;
    TableWriter writer(disk);
    for (std::uint64_t step = 5; step <= last; step += 5) ASSERT_TRUE(writer.Write(step).ok());
    const Status again = writer.Write(last);
    ASSERT_TRUE(again.ok()) << again.ToString();
    ExpectTableOf(disk, last);
    EXPECT_FALSE(writer.TakesChanges()) << "the first part may lack what the second one had";
    ASSERT_TRUE(writer.Write(last + 5).ok());
    ExpectTableOf(disk, last + 5);
  }
}

TEST(Checkpoint, ACrashInTheSameStepAgainKeepsTheFirstPart) {
  for (int crash = 0;; ++crash) {
    FaultyDisk disk;
    TableWriter writer(disk);
    for (const std::uint64_t step : {5U, 10U}) ASSERT_TRUE(writer.Write(step).ok());
    disk.CrashAt(disk.operations() + crash + 1);
    const bool written = writer.Write(10).ok();
    disk.Restart();
    EXPECT_EQ(NewestWhole(disk, "ckpt").value(), 10U);
    ExpectTableOf(disk, 10);
    if (written) break;
  }
}

TEST(Checkpoint, APartOfTheSameRunThatIsNotWholeIsReplaced) {
  FaultyDisk disk;
  ASSERT_TRUE(TableWriter(disk).Write(5).ok());
  ASSERT_TRUE(disk.Remove("ckpt/step-5/part-0-of-1.rows-5").ok());
  ASSERT_TRUE(TableWriter(disk).Write(5).ok());
  ExpectTableOf(disk, 5);
}

TEST(Checkpoint, WithoutHardLinksEachHasAllRows) {
  FaultyDisk disk;
  disk.RefuseLinks();
  TableWriter writer(disk);
  for (const std::uint64_t step : {5U, 10U}) {
    ASSERT_TRUE(writer.Write(step).ok());
    EXPECT_FALSE(writer.TakesChanges());
    ExpectTableOf(disk, step);
  }
}

TEST(Checkpoint, DamagedRowsOfABaseAreFound) {
  FaultyDisk disk;
  TableWriter writer(disk);
  for (const std::uint64_t step : {5U, 10U}) ASSERT_TRUE(writer.Write(step).ok());
  const Found found = FindCheckpoints(disk, "ckpt").value().back();
  disk.Damage("ckpt/step-10/part-0-of-1.rows-5", 40);
  EXPECT_EQ(VerifyCheckpoint(disk, found).id(), "E-checkpoint-damaged");
  EXPECT_EQ(ReadPart(disk, found.folder, found.parts[0]).status().id(), "E-checkpoint-damaged");
  ASSERT_TRUE(disk.Remove("ckpt/step-10/part-0-of-1.rows-5").ok());
  EXPECT_EQ(FindCheckpoints(disk, "ckpt").value().back().lacks, "part 0 of 1 lacks part-0-of-1.rows-5");
}

TEST(Checkpoint, KeepsTheNewestAndNothingElse) {
  FaultyDisk disk;
  for (const std::uint64_t step : {5, 10, 15, 20}) ASSERT_TRUE(WriteStep(disk, step).ok());
  EXPECT_EQ(disk.List("ckpt").value(), (std::vector<std::string>{"step-15", "step-20"}));
  EXPECT_EQ(disk.List("ckpt/step-20").value(),
            (std::vector<std::string>{"part-0-of-2.json", "part-0-of-2.values", "part-1-of-2.json",
                                      "part-1-of-2.values"}));
}

TEST(Checkpoint, AFullDiskIsAnErrorAndKeepsThePreviousOne) {
  FaultyDisk disk;
  ASSERT_TRUE(WriteStep(disk, 5).ok());
  disk.SetRoom(20);
  const Status full = WriteStep(disk, 10);
  EXPECT_EQ(full.id(), "E-file-write");
  EXPECT_EQ(full.message(),
            "cannot write ckpt/step-10/part-0-of-2.values: No space left on device (errno 28)");
  EXPECT_EQ(NewestWhole(disk, "ckpt").value(), 5U);
}

TEST(Checkpoint, PartsOfTwoRunsMakeNone) {
  FaultyDisk disk;
  ASSERT_TRUE(WriteStep(disk, 5).ok());
  ASSERT_TRUE(WriteStep(disk, 10, "job.0").ok());
  Writer writer(disk, {.folder = "ckpt"});
  const Manifest head{.step = 10, .server = 0, .servers = kServers, .run = "job.1", .values = {}};
  ASSERT_TRUE(writer.Write(head, ValuesAt(10, 0)).ok());
  EXPECT_EQ(FindCheckpoints(disk, "ckpt").value().back().lacks, "part 1 of 2 is of another run of the job");
  EXPECT_EQ(NewestWhole(disk, "ckpt").value(), 5U);
}

TEST(Checkpoint, SaysWhatIsNotWhole) {
  FaultyDisk disk;
  EXPECT_EQ(NewestWhole(disk, "ckpt").value(), std::nullopt);
  ASSERT_TRUE(WriteStep(disk, 5).ok());
  ASSERT_TRUE(disk.Remove("ckpt/step-5/part-1-of-2.json").ok());
  const Status none = NewestWhole(disk, "ckpt").status();
  EXPECT_EQ(none.id(), "E-checkpoint-whole");
  EXPECT_EQ(none.message(), "ckpt has no whole checkpoint: in step-5, part 1 of 2 is missing");
  ASSERT_TRUE(WriteStep(disk, 5).ok());
  ASSERT_TRUE(disk.Remove("ckpt/step-5/part-0-of-2.values").ok());
  EXPECT_EQ(FindCheckpoints(disk, "ckpt").value().back().lacks, "part 0 of 2 lacks its values");
}

TEST(Checkpoint, DamagedBytesAreFound) {
  FaultyDisk disk;
  ASSERT_TRUE(WriteStep(disk, 5).ok());
  const Found found = FindCheckpoints(disk, "ckpt").value().back();
  EXPECT_TRUE(VerifyCheckpoint(disk, found).ok());
  const std::uint64_t bytes = disk.SizeOf("ckpt/step-5/part-1-of-2.values").value();
  for (std::size_t at = 0; at < bytes; ++at) {
    disk.Damage("ckpt/step-5/part-1-of-2.values", at);
    EXPECT_EQ(VerifyCheckpoint(disk, found).id(), "E-checkpoint-damaged") << at;
    EXPECT_EQ(ReadPart(disk, found.folder, found.parts[1]).status().id(), "E-checkpoint-damaged") << at;
    disk.Damage("ckpt/step-5/part-1-of-2.values", at);
  }
  EXPECT_TRUE(VerifyCheckpoint(disk, found).ok());
}

TEST(Checkpoint, ANewerWholeOneIsNotRemoved) {
  FaultyDisk disk;
  ASSERT_TRUE(WriteStep(disk, 5).ok());
  ASSERT_TRUE(WriteStep(disk, 10).ok());
  Writer writer(disk, {.folder = "ckpt"});
  EXPECT_EQ(writer.RemoveAfter(5).id(), "E-checkpoint-newer");
  EXPECT_EQ(NewestWhole(disk, "ckpt").value(), 10U);
}

}  // namespace
}  // namespace penstock::test
