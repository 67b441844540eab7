// When chunks are copied for a checkpoint, and when the copies are written.
#include <gtest/gtest.h>

#include "executor/pserver/cut_clock.h"
#include "executor/pserver/machine/policies/async_policy.h"
#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

pserver::MachineConfig CutConfig(std::uint64_t every, std::uint64_t first_step = 0, bool lr = false) {
  pserver::MachineConfig config = Config(1, lr);
  config.cut_every = every;
  config.first_step = first_step;
  return config;
}

// One step of a chunk of the only trainer, up to its update.
std::string Step(Driver& d, std::uint64_t step, int chunk) {
  d.Push(0, step, chunk);
  d.Merged(chunk);
  return d.Ran(chunk);
}

TEST(Cuts, EachChunkIsCopiedWhenItReachesTheStep) {
  Driver d(CutConfig(2));
  EXPECT_EQ(Step(d, 0, 0), "");
  EXPECT_EQ(Step(d, 0, 1), "");
  EXPECT_EQ(Step(d, 1, 0), "cut p0 c0 s2");
  EXPECT_EQ(d.Copied(), "") << "the other chunk has not reached the step";
  EXPECT_EQ(Step(d, 1, 1), "cut p0 c1 s2; cut lr s2");
  EXPECT_EQ(d.Copied(), "");
  EXPECT_EQ(d.Copied(), "write s2");
  EXPECT_EQ(d.Written(), "");
}

TEST(Cuts, TrainingGoesOnWhileTheyAreWritten) {
  Driver d(CutConfig(2));
  for (const std::uint64_t step : {0, 1}) Step(d, step, 0);
  for (const std::uint64_t step : {0, 1}) Step(d, step, 1);
  for (int copies = 0; copies < 3; ++copies) d.Copied();
  EXPECT_EQ(Step(d, 2, 0), "");
  EXPECT_EQ(d.machine.version(0, 0), 3U);
  d.Push(0, 3, 0);
  EXPECT_EQ(d.Merged(), "") << "the next checkpoint waits until this one is written";
  EXPECT_EQ(d.Written(), "run c0 s3");
  EXPECT_EQ(d.Ran(), "cut p0 c0 s4");
}

TEST(Cuts, TheScheduleIsCopiedBeforeItRunsAgain) {
  Driver d(CutConfig(1, 0, true));
  for (const int chunk : {0, 1}) {
    d.Push(0, 0, chunk);
    d.Merged(chunk);
  }
  EXPECT_EQ(d.LrRan(), "run c0 s0; run c1 s0");
  EXPECT_EQ(d.Ran(0), "cut p0 c0 s1");
  d.Push(0, 1, 0);
  EXPECT_EQ(d.Merged(0), "") << "waits for the checkpoint of step 1";
  EXPECT_EQ(d.Ran(1), "cut p0 c1 s1; cut lr s1");
  for (int copies = 0; copies < 2; ++copies) d.Copied();
  EXPECT_EQ(d.Copied(), "write s1");
  EXPECT_EQ(d.Written(), "lr s1");
}

TEST(Cuts, StepsAreThoseOfTheWholeJob) {
  Driver d(CutConfig(5, 10));
  for (std::uint64_t step = 0; step < 4; ++step) EXPECT_EQ(Step(d, step, 0), "");
  EXPECT_EQ(Step(d, 4, 0), "cut p0 c0 s15");
}

TEST(Cuts, TheEndWaitsForTheLastOne) {
  Driver d(CutConfig(1));
  Step(d, 0, 0);
  Step(d, 0, 1);
  d.EndStep(0, 0);
  EXPECT_EQ(d.Complete(0), "completed t0");
  for (int copies = 0; copies < 2; ++copies) EXPECT_EQ(d.Copied(), "");
  EXPECT_EQ(d.Copied(), "write s1");
  EXPECT_EQ(d.Written(), "end ok");
}

TEST(Cuts, AFailedWriteEndsTheJob) {
  Driver d(CutConfig(1));
  Step(d, 0, 0);
  Step(d, 0, 1);
  for (int copies = 0; copies < 3; ++copies) d.Copied();
  EXPECT_EQ(d.Written(InvalidArgument("E-file-write", "no space")),
            "error t0 E-file-write; end E-file-write");
}

TEST(Cuts, HeldParametersAreCopiedOnceTheyAreThere) {
  pserver::MachineConfig config = CutConfig(1);
  config.params.push_back({.name = "mean", .bytes_of_chunks = {4}, .start = true});
  config.params.push_back({.name = "never sent", .bytes_of_chunks = {4}, .start = true});
  Driver d(std::move(config));
  d.Do([&](pserver::Actions& out) {
    d.machine.Push({.trainer = 0, .param = 1, .chunk = 0, .step = 0, .part = 0, .bytes = Gradient(4)}, out);
    d.machine.MergeDone(1, 0, out);
  });
  Step(d, 0, 0);
  EXPECT_EQ(Step(d, 0, 1), "cut p0 c1 s1; cut lr s1; cut p1 c0 s1");
}

TEST(Cuts, AStopHoldsUpdatesUntilItsStepIsKnown) {
  Driver d(CutConfig(10));
  EXPECT_EQ(Step(d, 0, 0), "");
  d.Push(0, 0, 1);
  EXPECT_EQ(d.Merged(1), "run c1 s0");
  EXPECT_EQ(d.machine.HoldUpdates(), 1U);
  d.Push(0, 1, 0);
  EXPECT_EQ(d.Merged(0), "") << "it waits for the step of the stop";
  EXPECT_EQ(d.Ran(1), "");
  EXPECT_EQ(d.StopAt(2), "run c0 s1");
  EXPECT_EQ(d.Ran(0), "");
  EXPECT_EQ(Step(d, 1, 1), "cut p0 c0 s2; cut p0 c1 s2; cut lr s2");
  d.Push(0, 2, 0);
  EXPECT_EQ(d.Merged(0), "") << "no update follows";
  for (int copies = 0; copies < 2; ++copies) EXPECT_EQ(d.Copied(), "");
  EXPECT_EQ(d.Copied(), "write s2");
  EXPECT_EQ(d.Written(), "");
}

TEST(Cuts, AStopAtAStepThatIsSavedAnywayMakesOneCheckpoint) {
  Driver d(CutConfig(2));
  for (const std::uint64_t step : {0, 1}) Step(d, step, 0);
  for (const std::uint64_t step : {0, 1}) Step(d, step, 1);
  EXPECT_EQ(d.machine.HoldUpdates(), 2U);
  EXPECT_EQ(d.StopAt(2), "");
  for (int copies = 0; copies < 2; ++copies) d.Copied();
  EXPECT_EQ(d.Copied(), "write s2");
  EXPECT_EQ(d.Written(), "");
}

// A checkpoint was made ahead of the interval for a trainer whose log was full; the job stops at its step.
TEST(Cuts, AStopAtAStepThatWasSavedAheadOfTheIntervalMakesOneCheckpoint) {
  for (const bool written : {true, false}) {
    SCOPED_TRACE(written ? "written" : "being written");
    Driver d(CutConfig(1000));
    Step(d, 0, 0);
    Step(d, 0, 1);
    d.EndStep(0, 0);
    EXPECT_EQ(d.RequestCut(0, 1), "cut p0 c0 s1; cut p0 c1 s1; cut lr s1; durable t0");
    for (int copies = 0; copies < 2; ++copies) d.Copied();
    EXPECT_EQ(d.Copied(), "write s1");
    if (written) {
      EXPECT_EQ(d.Written(), "");
    }
    EXPECT_EQ(d.machine.HoldUpdates(), 1U);
    EXPECT_EQ(d.StopAt(1), "") << "that one is the checkpoint of the stop";
    if (!written) {
      EXPECT_EQ(d.Written(), "") << "it is not made again";
    }
    EXPECT_EQ(d.machine.durable_version(0), 1U);
    d.Push(0, 1, 0);
    EXPECT_EQ(d.Merged(0), "") << "no update follows";
  }
}

TEST(Cuts, AStopAtAStepOnWhichTheServersHadAgreedMakesOneCheckpoint) {
  Driver d(CutConfig(1000));
  Step(d, 0, 0);
  Step(d, 0, 1);
  EXPECT_EQ(d.machine.HoldUpdates(1), 2U);
  EXPECT_EQ(d.CutAt(2), "");
  Step(d, 1, 0);
  EXPECT_EQ(Step(d, 1, 1), "cut p0 c1 s2; cut lr s2");
  for (int copies = 0; copies < 2; ++copies) d.Copied();
  EXPECT_EQ(d.Copied(), "write s2");
  EXPECT_EQ(d.machine.HoldUpdates(), 2U);
  EXPECT_EQ(d.StopAt(2), "");
  EXPECT_EQ(d.Written(), "");
}

TEST(Cuts, AServerThatWasStartedAgainAtTheStepOfTheStopHasItsPart) {
  pserver::MachineConfig config = CutConfig(1000);
  config.first_version = 3;
  Driver d(std::move(config));
  EXPECT_EQ(d.machine.HoldUpdates(), 3U);
  EXPECT_EQ(d.StopAt(3), "");
}

// In asynchronous training a name that others have not answered yet must not be used up: their parts of the
// stop's checkpoint would miss this one.
TEST(Cuts, AFullLogTakesNoNameWhileServersAgreeOnAStop) {
  pserver::MachineConfig config = CutConfig(1000);
  config.starts = {{}};
  config.counts_steps = false;
  Driver d(std::move(config), std::make_unique<pserver::AsyncPolicy>());
  Step(d, 0, 0);
  Step(d, 0, 1);
  d.EndStep(0, 0);
  EXPECT_EQ(d.machine.HoldUpdates(), 1U);
  EXPECT_EQ(d.RequestCut(0, 1), "durable t0") << "the checkpoint of the stop has what it asks for";
  EXPECT_EQ(d.StopAt(3), "cut p0 c0 s3; cut p0 c1 s3; cut lr s3");
  for (int copies = 0; copies < 2; ++copies) d.Copied();
  EXPECT_EQ(d.Copied(), "write s3");
  EXPECT_EQ(d.Written(), "");
  EXPECT_EQ(d.StopAt(3), "") << "it is not made again";
}

TEST(Cuts, AStopWaitsUntilTheOpenCheckpointIsWritten) {
  Driver d(CutConfig(2, 10));
  for (const std::uint64_t step : {0, 1}) Step(d, step, 0);
  for (const std::uint64_t step : {0, 1}) Step(d, step, 1);
  Step(d, 2, 0);
  Step(d, 2, 1);
  EXPECT_EQ(d.machine.HoldUpdates(), 3U);
  EXPECT_EQ(d.StopAt(3), "");
  for (int copies = 0; copies < 2; ++copies) d.Copied();
  EXPECT_EQ(d.Copied(), "write s12");
  EXPECT_EQ(d.Written(), "cut p0 c0 s13; cut p0 c1 s13; cut lr s13");
}

TEST(Cuts, AStopBeforeTheFirstStepSavesNothing) {
  Driver d(CutConfig(1));
  EXPECT_EQ(d.machine.HoldUpdates(), 0U);
  EXPECT_EQ(d.StopAt(0), "");
  d.Push(0, 0, 0);
  EXPECT_EQ(d.Merged(0), "");
}

TEST(Cuts, TheScheduleCountsAsBegunForAStop) {
  Driver d(CutConfig(10, 0, true));
  d.Push(0, 0, 0);
  EXPECT_EQ(d.Merged(0), "lr s0");
  EXPECT_EQ(d.machine.HoldUpdates(), 1U);
  EXPECT_EQ(d.LrRan(), "run c0 s0");
}

TEST(Cuts, AServerThatUpdatesNothingStopsWithTheOthers) {
  pserver::MachineConfig config = CutConfig(10);
  config.params = {{.name = "mean", .bytes_of_chunks = {4}, .start = true, .restored = true}};
  Driver d(std::move(config));
  EXPECT_EQ(d.machine.HoldUpdates(), 0U);
  EXPECT_EQ(d.StopAt(7), "cut lr s7; cut p0 c0 s7");
}

TEST(Cuts, AServerThatUpdatesNothingFollowsTheTrainersSteps) {
  pserver::MachineConfig config = CutConfig(2);
  config.params = {{.name = "mean", .bytes_of_chunks = {4}, .start = true, .restored = true}};
  config.trainers = 2;
  Driver d(std::move(config));
  for (const std::uint64_t step : {0, 1, 2, 3}) d.EndStep(0, step);
  EXPECT_EQ(d.EndStep(1, 0), "ended t1");
  EXPECT_EQ(d.EndStep(1, 1), "cut lr s2; cut p0 c0 s2; ended t1");
  EXPECT_EQ(d.EndStep(1, 2), "ended t1");
  EXPECT_EQ(d.EndStep(1, 3), "ended t1") << "the next one waits until this one is written";
  EXPECT_EQ(d.Copied(), "");
  EXPECT_EQ(d.Copied(), "write s2");
  EXPECT_EQ(d.Written(), "cut lr s4; cut p0 c0 s4");
}

TEST(Cuts, AServerThatUpdatesNothingAndWasStartedAgainMakesNoOlderOne) {
  pserver::MachineConfig config = CutConfig(2);
  config.params = {{.name = "mean", .bytes_of_chunks = {4}, .start = true, .restored = true}};
  config.first_version = 4;
  Driver d(std::move(config));
  EXPECT_EQ(d.EndStep(0, 4), "ended t0");
  EXPECT_EQ(d.machine.durable_version(0), 4U);
  EXPECT_EQ(d.EndStep(0, 5), "cut lr s6; cut p0 c0 s6; ended t0");
}

TEST(Cuts, ARestoredHeldParameterIsNotReplaced) {
  pserver::MachineConfig config = CutConfig(5, 10);
  config.params.push_back({.name = "mean", .bytes_of_chunks = {4}, .start = true, .restored = true});
  Driver d(std::move(config));
  const auto pull = [&](pserver::Actions& out) { d.machine.Pull(0, 1, 0, 0, out); };
  EXPECT_EQ(d.Do(pull), "pulled t0 v0");
  EXPECT_EQ(d.Do([&](pserver::Actions& out) {
    d.machine.Push({.trainer = 0, .param = 1, .chunk = 0, .step = 0, .part = 0, .bytes = Gradient(4)}, out);
  }),
            "pushed t0");
}

TEST(Cuts, AJobThatContinuesTakesNoInitialValues) {
  Driver d(CutConfig(5, 10));
  EXPECT_EQ(d.PushInitial(0), "error t0 E-resume-load; end E-resume-load");
}

// The servers agree on a step while they go on.
TEST(Cuts, AnAgreedStepIsCutWhereverTheChunksAre) {
  for (const std::uint64_t agreed : {2, 3}) {
    SCOPED_TRACE(agreed);
    Driver d(CutConfig(1000));
    Step(d, 0, 0);
    EXPECT_EQ(d.machine.HoldUpdates(1), 2U) << "one more may begin";
    EXPECT_EQ(Step(d, 1, 0), "");
    d.Push(0, 2, 0);
    EXPECT_EQ(d.Merged(0), "") << "others may be behind";
    Step(d, 0, 1);
    EXPECT_EQ(d.CutAt(agreed), agreed == 2 ? "cut p0 c0 s2; run c0 s2" : "run c0 s2");
    EXPECT_EQ(d.Ran(0), agreed == 2 ? "" : "cut p0 c0 s3");
    EXPECT_EQ(Step(d, 1, 1), agreed == 2 ? "cut p0 c1 s2; cut lr s2" : "");
    if (agreed == 3) {
      EXPECT_EQ(Step(d, 2, 1), "cut p0 c1 s3; cut lr s3");
    }
    d.Copied();
    d.Copied();
    EXPECT_EQ(d.Copied(), agreed == 2 ? "write s2" : "write s3");
    EXPECT_EQ(d.Written(), "");
    EXPECT_EQ(d.machine.durable_version(0), agreed);
  }
}

TEST(Cuts, AnAgreedStepWaitsForACheckpointThatIsBeingMade) {
  Driver d(CutConfig(2));
  for (const std::uint64_t step : {0, 1}) Step(d, step, 0);
  EXPECT_EQ(d.machine.HoldUpdates(1), 3U);
  EXPECT_EQ(d.CutAt(3), "again");
  for (const std::uint64_t step : {0, 1}) Step(d, step, 1);
  for (int copies = 0; copies < 3; ++copies) d.Copied();
  EXPECT_EQ(d.Written(), "");
  EXPECT_EQ(d.CutAt(3), "");
  EXPECT_EQ(Step(d, 2, 0), "cut p0 c0 s3");
}

TEST(Cuts, AStepThatIsSavedAlreadyOnlyEndsTheHold) {
  Driver d(CutConfig(1000));
  Step(d, 0, 0);
  EXPECT_EQ(d.machine.HoldUpdates(), 1U);
  d.Push(0, 1, 0);
  EXPECT_EQ(d.Merged(0), "");
  EXPECT_EQ(d.CutAt(0), "run c0 s1");
}

TEST(CutClock, TheNextOneIsDueWhenItsShareOfTheTimeIsOver) {
  using std::chrono::milliseconds, std::chrono::seconds;
  pserver::CutClock clock;
  clock.Begin(seconds(100), {.share = 0.03, .least = seconds(10)});
  EXPECT_FALSE(clock.IsDue(seconds(109)));
  EXPECT_TRUE(clock.IsDue(seconds(110)));
  clock.Took(seconds(112), milliseconds(90));
  EXPECT_FALSE(clock.IsDue(seconds(121)));
  EXPECT_TRUE(clock.IsDue(seconds(122))) << "not more frequent than that";
  clock.Took(seconds(125), seconds(3));
  EXPECT_FALSE(clock.IsDue(seconds(221)));
  EXPECT_TRUE(clock.IsDue(seconds(222))) << "3 s are 3 % of 100 s";
}

TEST(CutClock, AnAgreementIsAheadBySomeSeconds) {
  pserver::CutClock clock;
  EXPECT_EQ(clock.Ahead(), 2U);
  for (int second = 0; second < 20; ++second)
    clock.Steps(std::chrono::seconds(second), static_cast<std::uint64_t>(3 * second));
  EXPECT_EQ(clock.Ahead(), 2U + 15U) << "those of the last 4 s, and of the tick before";
}

}  // namespace
}  // namespace penstock::test
