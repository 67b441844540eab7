// A server that may be started again by itself: checkpoints that a trainer asks for, the beginning with the
// version of the last one, and the end.
#include <gtest/gtest.h>

#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

pserver::MachineConfig Recovering(int trainers, std::uint64_t first_version = 0, bool lr = false) {
  pserver::MachineConfig config = Config(trainers, lr);
  config.cut_every = 100;
  config.recovers = true;
  config.first_version = first_version;
  config.restarted = first_version > 0;
  return config;
}

std::string Update(Driver& d, std::uint64_t step, int chunk) {
  d.Push(0, step, chunk);
  d.Merged(chunk);
  return d.Ran(chunk);
}

std::string Request(Driver& d, std::uint64_t step, int trainer = 0) {
  return d.Do([&](pserver::Actions& out) { d.machine.RequestCut(trainer, step, out); });
}

TEST(StartedAgain, ACheckpointIsMadeAheadOfTheIntervalIfATrainerAsks) {
  Driver d(Recovering(1));
  Update(d, 0, 0);
  d.EndStep(0, 0);
  EXPECT_EQ(Request(d, 1), "cut p0 c0 s1; durable t0") << "one chunk has the version already";
  EXPECT_EQ(Update(d, 0, 1), "cut p0 c1 s1; cut lr s1");
  for (int copies = 0; copies < 2; ++copies) EXPECT_EQ(d.Copied(), "");
  EXPECT_EQ(d.Copied(), "write s1");
  EXPECT_EQ(Request(d, 1), "durable t0") << "it is being made";
  EXPECT_EQ(d.machine.durable_version(0), 0U);
  EXPECT_EQ(d.Written(), "durable t0");
  EXPECT_EQ(d.machine.durable_version(0), 1U);
  EXPECT_EQ(Request(d, 1), "durable t0") << "it has been made";
  EXPECT_EQ(Update(d, 1, 0), "");
}

TEST(StartedAgain, ACheckpointOfTheCurrentVersionNeedsNoFurtherStep) {
  Driver d(Recovering(1));
  Update(d, 0, 0);
  Update(d, 0, 1);
  d.EndStep(0, 0);
  EXPECT_EQ(Request(d, 1), "cut p0 c0 s1; cut p0 c1 s1; cut lr s1; durable t0");
}

TEST(StartedAgain, AChunkThatIsAheadBringsALaterCheckpoint) {
  Driver d(Recovering(1));
  Update(d, 0, 0);
  Update(d, 0, 1);
  d.Push(0, 1, 0);
  EXPECT_EQ(d.Merged(0), "run c0 s1");
  d.EndStep(0, 0);
  EXPECT_EQ(Request(d, 1), "durable t0") << "chunk 0 is being updated";
  EXPECT_EQ(d.Ran(0), "cut p0 c0 s2");
}

TEST(StartedAgain, TheScheduleMustNotHaveRunForTheNextStep) {
  Driver d(Recovering(2, 0, true));
  for (const int chunk : {0, 1}) {
    d.Push(0, 0, chunk);
    d.Merged(chunk);
    d.Push(1, 0, chunk);
    d.Merged(chunk);
    if (chunk == 0) d.LrRan();
    d.Ran(chunk);
  }
  d.EndStep(0, 0);
  d.EndStep(1, 0);
  d.Push(0, 1);
  d.Merged();
  d.Push(1, 1);
  EXPECT_EQ(d.Merged(), "lr s1");
  EXPECT_EQ(Request(d, 1), "durable t0") << "the next one has the step of this rate";
  EXPECT_EQ(d.LrRan(), "run c0 s1");
  EXPECT_EQ(d.Ran(), "cut p0 c0 s2");
}

TEST(StartedAgain, TheStepThatIsAskedForIsNotBeyondThoseThatHaveEnded) {
  Driver d(Recovering(1));
  Update(d, 0, 0);
  Update(d, 0, 1);
  d.EndStep(0, 0);
  EXPECT_EQ(Request(d, 1000), "cut p0 c0 s1; cut p0 c1 s1; cut lr s1; durable t0");
}

TEST(StartedAgain, AServerContinuesWithTheVersionOfItsCheckpoint) {
  Driver d(Recovering(2, 5));
  EXPECT_EQ(d.machine.durable_version(0), 5U);
  EXPECT_EQ(d.machine.steps_ended(1), 5U);
  EXPECT_EQ(d.Pull(0, 5), "pulled t0 v5");
  EXPECT_EQ(d.Pull(1, 6), "") << "waits for the step that is sent again";
  EXPECT_EQ(d.Push(0, 4), "pushed t0") << "the checkpoint has it";
  EXPECT_EQ(d.machine.repeats(), 1U);
  EXPECT_EQ(d.Push(0, 5), "pushed t0; merge t0 c0 s5");
  EXPECT_EQ(d.EndStep(0, 4), "ended t0");
  EXPECT_EQ(d.EndStep(0, 5), "ended t0");
  d.Merged();
  EXPECT_EQ(d.Push(1, 5), "pushed t1; merge t1 c0 s5");
  EXPECT_EQ(d.Merged(), "run c0 s5");
  EXPECT_EQ(d.Ran(), "pulled t1 v6");
}

TEST(StartedAgain, ATrainerThatSendsStepsAgainIsToldOfRoom) {
  Driver d(Recovering(1, 5));
  d.machine.Joined(0, 9);
  EXPECT_FALSE(d.machine.HasCaughtUp());
  EXPECT_EQ(Update(d, 5, 0), "credit t0");
  for (std::uint64_t step = 6; step < 9; ++step) Update(d, step, 0);
  for (std::uint64_t step = 5; step < 9; ++step) {
    Update(d, step, 1);
    d.EndStep(0, step);
  }
  EXPECT_TRUE(d.machine.HasCaughtUp());
  EXPECT_EQ(Update(d, 9, 0), "") << "from now on its pulls bring credit";
}

TEST(StartedAgain, ATrainerThatHadCompletedBeforeTheCheckpointCountsAsZeros) {
  Driver d(Recovering(2, 5));
  d.machine.Joined(0, 5);
  d.machine.Joined(1, 3);
  EXPECT_EQ(d.machine.steps_ended(1), 3U);
  EXPECT_EQ(d.Push(0, 5), "pushed t0; merge t0 c0 s5");
  EXPECT_EQ(d.Merged(), "") << "trainer 1 has not said yet that it has completed";
  EXPECT_EQ(d.Complete(1), "left t1 s3; merge t1 c0 s5 zeros");
}

TEST(StartedAgain, ANewProcessOfATrainerContinuesWithTheStepThatIsNotThere) {
  pserver::MachineConfig config = Recovering(2, 5);
  config.trainer_loss = pserver::TrainerLoss::kWait;
  Driver d(config);
  d.machine.Joined(0, 6);
  d.machine.Joined(1, 6);
  for (int chunk = 0; chunk < 2; ++chunk) {
    for (int t = 0; t < 2; ++t) {
      d.Push(t, 5, chunk);
      d.Merged(chunk);
    }
    d.Ran(chunk);
  }
  for (int t = 0; t < 2; ++t) d.EndStep(t, 5);
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.Return(1, out); }),
            "cut p0 c0 s6; cut p0 c1 s6; cut lr s6")
      << "nobody has the steps below any more";
  d.machine.Joined(1, 0);  // it does not know its step yet
  EXPECT_EQ(d.machine.continues_at(1), 6U);
}

TEST(StartedAgain, AStepFromBeforeTheCheckpointCannotBeRepeated) {
  pserver::MachineConfig config = Recovering(2, 5);
  config.trainer_loss = pserver::TrainerLoss::kWait;
  Driver d(config);
  EXPECT_EQ(d.Pull(1, 4), "gone t1 v4") << "the checkpoint has the last version alone";
  EXPECT_EQ(d.Pull(1, 5), "pulled t1 v5");
}

// It died while it sent several steps again: of chunk 0 all are there, of chunk 1 the first.
TEST(StartedAgain, ANewProcessCannotRepeatAStepOfWhichAChunkIsFarAhead) {
  for (const std::uint64_t last : {std::uint64_t{5}, std::uint64_t{6}}) {
    pserver::MachineConfig config = Recovering(2, 5);
    config.trainer_loss = pserver::TrainerLoss::kWait;
    Driver d(config);
    for (std::uint64_t step = 5; step <= last; ++step) {
      for (int t = 0; t < 2; ++t) {
        d.Push(t, step, 0);
        d.Merged(0);
      }
      d.Ran(0);
    }
    const std::string said = d.Do([&](pserver::Actions& out) { d.machine.Return(1, out); });
    EXPECT_EQ(StartsWith(said, "error t0 E-resume-step; error t1 E-resume-step"), last == 6) << said;
  }
}

TEST(StartedAgain, InitialValuesAreInTheCheckpoint) {
  Driver d(Recovering(1, 5));
  EXPECT_EQ(d.PushInitial(0), "pushed t0");
}

TEST(StartedAgain, CompletedTrainersAreNeededUntilTheEnd) {
  Driver d(Recovering(2));
  EXPECT_EQ(d.Complete(1), "");
  EXPECT_EQ(d.Complete(1), "");
  EXPECT_EQ(d.Complete(0), "completed t0; completed t1; end ok");
  EXPECT_EQ(d.Complete(1), "completed t1") << "the answer was lost";
  Driver failed(Recovering(2));
  failed.Complete(1);
  EXPECT_EQ(failed.Do([&](pserver::Actions& out) {
    failed.machine.Gone(0, Unavailable("E-peer-lost", "gone"), out);
  }),
            "error t0 E-peer-lost; error t1 E-peer-lost; end E-peer-lost");
}

TEST(StartedAgain, TurnsBeginWithTheVersion) {
  pserver::MachineConfig config = Recovering(2, 3);
  config.params[0].by_turn = true;
  config.early_bytes = 1000;
  Driver d(std::move(config));
  EXPECT_EQ(d.machine.credit(0, 0, 0), 4U);
  EXPECT_GE(d.machine.credit(0, 0, 1), 3U);
  EXPECT_LE(d.machine.credit(0, 0, 1), 4U);
}

}  // namespace
}  // namespace penstock::test
