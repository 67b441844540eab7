// The agreement of a job's servers on its last step.
#include "executor/checkpoint/stop_request.h"

#include <gtest/gtest.h>

#include "executor/checkpoint/cut_request.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

using checkpoint::StopRequest;

void Write(Disk& disk, const std::string& path, const std::string& text) {
  ASSERT_TRUE(disk.MakeFolder(FolderOf(path)).ok());
  ASSERT_TRUE(ReplaceFile(disk, path, text).ok());
}

TEST(StopRequest, TheHighestAnswerIsTheLastStep) {
  FaultyDisk disk;
  StopRequest first(disk, "ckpt", "job.0.0", 0, 2), second(disk, "ckpt", "job.0.0", 1, 2);
  EXPECT_FALSE(first.Asked());
  Write(disk, "ckpt/stop/request", "job.0.0\n");
  EXPECT_TRUE(first.Asked());
  ASSERT_TRUE(first.Answer(12).ok());
  EXPECT_EQ(first.LastStep(), std::nullopt);
  ASSERT_TRUE(second.Answer(13).ok());
  EXPECT_EQ(first.LastStep(), 13U);
  EXPECT_EQ(second.LastStep(), 13U);
}

TEST(StopRequest, TheLastStepIsNotBelowWhatTrainersHaveEnded) {
  FaultyDisk disk;
  StopRequest stop(disk, "ckpt", "job.0.0", 0, 1);
  Write(disk, "ckpt/stop/least", "job.0.0\n14\n");
  EXPECT_EQ(stop.LastStep(), std::nullopt) << "the server has not answered";
  ASSERT_TRUE(stop.Answer(13).ok());
  EXPECT_EQ(stop.LastStep(), 14U);
  ASSERT_TRUE(stop.Answer(15).ok());
  EXPECT_EQ(stop.LastStep(), 15U);
  Write(disk, "ckpt/stop/least", "job.1.0\n16\n");
  EXPECT_EQ(stop.LastStep(), 15U) << "of another run";
}

TEST(StopRequest, AServerThatWasStartedAgainKeepsAHigherAnswer) {
  FaultyDisk disk;
  ASSERT_TRUE(disk.MakeFolder("ckpt/stop").ok());
  StopRequest stop(disk, "ckpt", "job.0.0", 0, 1);
  ASSERT_TRUE(stop.Answer(9).ok());
  ASSERT_TRUE(stop.Answer(5).ok());
  EXPECT_EQ(stop.LastStep(), 9U);
  ASSERT_TRUE(stop.Answer(12).ok());
  EXPECT_EQ(stop.LastStep(), 12U);
}

TEST(StopRequest, FilesOfAnotherRunAreIgnored) {
  FaultyDisk disk;
  StopRequest stop(disk, "ckpt", "job.1.0", 0, 2);
  Write(disk, "ckpt/stop/request", "job.0.0\n");
  EXPECT_FALSE(stop.Asked());
  ASSERT_TRUE(stop.Answer(3).ok());
  Write(disk, "ckpt/stop/part-1-of-2", "job.0.0\n9\n");
  EXPECT_EQ(stop.LastStep(), std::nullopt);
  Write(disk, "ckpt/stop/part-1-of-2", "job.1.0\n");
  EXPECT_EQ(stop.LastStep(), std::nullopt);
}

TEST(CutRequest, ServersAgreeOnTheHighestStepOnceForEachRequest) {
  FaultyDisk disk;
  checkpoint::CutRequest first(disk, "ckpt", "job.0.0", 0, 2), second(disk, "ckpt", "job.0.0", 1, 2);
  EXPECT_FALSE(second.Asked());
  for (const std::uint64_t step : {10U, 20U}) {
    ASSERT_TRUE(first.Ask().ok());
    EXPECT_TRUE(first.Asked());
    EXPECT_TRUE(second.Asked());
    ASSERT_TRUE(first.Answer(step).ok());
    EXPECT_EQ(first.Step(), std::nullopt) << "the other's answer is of an earlier request";
    ASSERT_TRUE(second.Answer(step + 3).ok());
    for (checkpoint::CutRequest* one : {&first, &second}) {
      EXPECT_EQ(one->Step(), step + 3);
      one->Done();
      EXPECT_FALSE(one->Asked());
    }
  }
  checkpoint::CutRequest again(disk, "ckpt", "job.0.0", 1, 2);
  EXPECT_TRUE(again.Asked()) << "a server that was started again";
  ASSERT_TRUE(again.Answer(5).ok());
  EXPECT_EQ(again.Step(), 23U);
  const checkpoint::CutRequest other(disk, "ckpt", "job.1.0", 0, 2);
  EXPECT_FALSE(other.Asked()) << "of another run";
}

}  // namespace
}  // namespace penstock::test
