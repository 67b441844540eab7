#include "executor/checkpoint/own_part.h"

#include <gtest/gtest.h>

#include "executor/checkpoint/writer.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

using checkpoint::NewestOwnPart;

Status WritePart(Disk& disk, std::uint64_t step, int server, const std::string& run = "job.0") {
  checkpoint::Writer writer(disk, {.folder = "ckpt"});
  checkpoint::Value value{.entry = {.name = "w", .type = "f32[2]"}, .value = {}};
  value.value.As<Tensor>() = Tensor(DType::kFp32, {2});
  return writer.Write({.step = step, .server = server, .servers = 2, .run = run, .values = {}}, {value});
}

std::uint64_t NewestStep(Disk& disk, int server) {
  const auto part = NewestOwnPart(disk, "ckpt", {.server = server, .servers = 2, .run = "job.0"});
  return part.ok() && *part ? (*part)->manifest.step : 0;
}

TEST(OwnPart, IsTheNewestOfTheServerWhetherOthersHaveTheirs) {
  FaultyDisk disk;
  EXPECT_EQ(NewestStep(disk, 0), 0U) << "there is no folder";
  ASSERT_TRUE(WritePart(disk, 5, 0).ok());
  ASSERT_TRUE(WritePart(disk, 5, 1).ok());
  ASSERT_TRUE(WritePart(disk, 10, 1).ok());
  EXPECT_EQ(NewestStep(disk, 0), 5U);
  EXPECT_EQ(NewestStep(disk, 1), 10U);
  const auto found = NewestOwnPart(disk, "ckpt", {.server = 1, .servers = 2, .run = "job.0"}).value();
  EXPECT_EQ(found->folder, "ckpt/step-10");
  EXPECT_EQ(checkpoint::ReadPart(disk, found->folder, found->manifest).value().size(), 1U);
}

TEST(OwnPart, OfAnotherRunOrNotWholeDoesNotCount) {
  FaultyDisk disk;
  ASSERT_TRUE(WritePart(disk, 5, 0).ok());
  ASSERT_TRUE(WritePart(disk, 10, 0, "job.1").ok());
  EXPECT_EQ(NewestStep(disk, 0), 5U);
  ASSERT_TRUE(WritePart(disk, 15, 0).ok());
  EXPECT_EQ(NewestStep(disk, 0), 15U);
  ASSERT_TRUE(disk.Remove("ckpt/step-15/part-0-of-2.values").ok());
  EXPECT_EQ(NewestStep(disk, 0), 5U);
  ASSERT_TRUE(WritePart(disk, 20, 0).ok());
  disk.Damage("ckpt/step-20/part-0-of-2.json", 3);
  EXPECT_EQ(NewestStep(disk, 0), 5U);
}

// Of geo-SGD.
TEST(TrainersParts, AreThereInAWholeCheckpoint) {
  FaultyDisk disk;
  const auto write = [&](bool of_trainer, int number, const std::string& run) {
    checkpoint::Writer writer(disk, {.folder = "ckpt"});
    checkpoint::Manifest head{
        .step = 5, .server = number, .servers = 2, .trainers = 2, .run = run, .values = {}};
    head.with_trainers = !of_trainer;
    if (of_trainer) head.of_trainer.emplace();
    checkpoint::Value value{.entry = {.name = "w", .type = "f32[2]"}, .value = {}};
    value.value.As<Tensor>() = Tensor(DType::kFp32, {2});
    ASSERT_TRUE(writer.Write(head, {value}).ok());
  };
  const auto find = [&] { return checkpoint::FindCheckpoints(disk, "ckpt").value().back(); };
  write(true, 0, "job.0");
  EXPECT_EQ(find().lacks, "it has no part");
  write(false, 0, "job.0");
  EXPECT_EQ(find().lacks, "part 1 of 2 is missing");
  write(false, 1, "job.0");
  EXPECT_EQ(find().lacks, "trainer 1 of 2 is missing");
  EXPECT_EQ(find().parts.size(), 2U);
  write(true, 1, "job.1");
  EXPECT_EQ(find().lacks, "trainer 1 of 2 is of another run of the job");
  write(true, 1, "job.0");
  EXPECT_TRUE(find().whole()) << find().lacks;
  EXPECT_EQ(find().trainers.size(), 2U);
  EXPECT_TRUE(checkpoint::FindCheckpoints(disk, "ckpt", 5).value().empty());
  disk.Damage("ckpt/step-5/trainer-1-of-2.values", 12);
  EXPECT_EQ(checkpoint::VerifyCheckpoint(disk, find()).id(), "E-checkpoint-damaged");
}

// A part that a crash has interrupted leaves the one before it.
TEST(OwnPart, SurvivesACrashAtEachOperation) {
  for (int crash = 0;; ++crash) {
    FaultyDisk disk(static_cast<std::uint64_t>(crash));
    ASSERT_TRUE(WritePart(disk, 5, 0).ok());
    disk.CrashAt(disk.operations() + crash);
    const bool written = WritePart(disk, 10, 0).ok();
    disk.Restart();
    const std::uint64_t newest = NewestStep(disk, 0);
    EXPECT_TRUE(newest == 10 || (newest == 5 && !written)) << "crash at " << crash << ": " << newest;
    if (written) break;
  }
}

}  // namespace
}  // namespace penstock::test
