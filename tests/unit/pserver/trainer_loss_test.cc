// What a server decides when a trainer dies and a new process takes its place.
#include <gtest/gtest.h>

#include "executor/protocol/any_step.h"
#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

using pserver::TrainerLoss;

pserver::MachineConfig LossConfig(int trainers, TrainerLoss loss) {
  pserver::MachineConfig config = Config(trainers);
  config.trainer_loss = loss;
  return config;
}

class LossDriver : public Driver {
 public:
  LossDriver(int trainers, TrainerLoss loss) : Driver(LossConfig(trainers, loss)) {}
  std::string Lose(int trainer) {
    return Do([&](pserver::Actions& out) { machine.Lose(trainer, out); });
  }
  std::string Return(int trainer) {
    return Do([&](pserver::Actions& out) { machine.Return(trainer, out); });
  }
  std::string BeginAt(int trainer, std::uint64_t step) {
    return Do([&](pserver::Actions& out) { machine.BeginAt(trainer, step, out); });
  }
  std::string PullRows(int trainer, std::uint64_t version, std::uint64_t request) {
    return Do([&](pserver::Actions& out) {
      machine.PullRows({.trainer = trainer, .param = 0, .version = version, .request = request}, out);
    });
  }
  // A whole step of both trainers.
  void TrainBoth(std::uint64_t step) {
    for (int chunk = 0; chunk < 2; ++chunk) {
      for (int t = 0; t < 2; ++t) Push(t, step, chunk);
      Merged(chunk);
      Merged(chunk);
      Ran(chunk);
    }
    for (int t = 0; t < 2; ++t) EndStep(t, step);
  }
  // The number of gradients of whose mean the merge makes the version; 0: the program's own.
  int MeanOfMerge(int chunk = 0) {
    pserver::Actions out;
    machine.MergeDone(0, chunk, out);
    const auto* merge = out.empty() ? nullptr : std::get_if<pserver::MergeAction>(&out.front());
    return merge == nullptr ? -1 : merge->mean_of;
  }
};

TEST(TrainerLoss, ANewProcessRepeatsTheStepWhoseGradientsAreNotAllThere) {
  LossDriver d(2, TrainerLoss::kWait);
  d.TrainBoth(0);
  EXPECT_EQ(d.Push(0, 1), "pushed t0; merge t0 c0 s1");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.Push(1, 1), "pushed t1; merge t1 c0 s1");  // of two chunks, one
  EXPECT_EQ(d.Lose(1), "");
  EXPECT_EQ(d.Merged(), "run c0 s1");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.Return(1), "");
  EXPECT_EQ(d.machine.continues_at(1), 1u);
  // The version before the update is still there for it; for the others as before.
  EXPECT_EQ(d.Pull(1, 1), "pulled t1 v1");
  EXPECT_EQ(d.Pull(0, 2), "pulled t0 v2");
  EXPECT_EQ(d.Push(1, 1), "pushed t1");  // merged before
  EXPECT_EQ(d.machine.repeats(), 1u);
  EXPECT_EQ(d.Push(0, 1, 1), "pushed t0; merge t0 c1 s1");
  EXPECT_EQ(d.Merged(1), "");
  EXPECT_EQ(d.Push(1, 1, 1), "pushed t1; merge t1 c1 s1");
  EXPECT_EQ(d.EndStep(1, 1), "ended t1");
  EXPECT_EQ(d.machine.steps_ended(1), 2u);
}

TEST(TrainerLoss, WhatCameOfTheIncompleteStepIsDropped) {
  LossDriver d(2, TrainerLoss::kWait);
  EXPECT_EQ(d.Push(1, 0), "pushed t1");  // it waits for trainer 0
  EXPECT_EQ(d.Return(1), "");
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.machine.Lacks(0, 0), std::vector<int>{1});
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  EXPECT_EQ(d.machine.repeats(), 0u);
}

TEST(TrainerLoss, WhatCameOfACompleteStepIsKept) {
  LossDriver d(2, TrainerLoss::kWait);
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.Push(1, 0, 1), "pushed t1");
  // The end of the step may be lost with the process.
  EXPECT_EQ(d.Return(1), "");
  EXPECT_EQ(d.machine.continues_at(1), 1u);
  // Another server lacks a gradient of step 0, so it is repeated here too; with any number of rows.
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.machine.repeats(), 1u);
  EXPECT_EQ(d.EndStep(1, 0), "ended t1");
  EXPECT_EQ(d.machine.steps_ended(1), 1u);
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "merge t1 c0 s0");
}

TEST(TrainerLoss, RequestsOfTheLastProcessAreForgotten) {
  LossDriver d(1, TrainerLoss::kWait);
  EXPECT_EQ(d.PullRows(0, 1, 0), "");  // waits for version 1
  EXPECT_EQ(d.Pull(0, 1), "");
  EXPECT_EQ(d.Return(0), "");
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.PullRows(0, 1, 0), "rows t0 v1 r0");  // not a repetition
}

TEST(TrainerLoss, ASaveOfTheLastProcessAnswersNoneOfTheNewOne) {
  LossDriver d(1, TrainerLoss::kWait);
  const pserver::SaveEvent save{.trainer = 0, .param = 0, .version = 0, .request = 0, .file = "f"};
  const auto ask = [&] { return d.Do([&](pserver::Actions& out) { d.machine.Save(save, out); }); };
  const auto done = [&] {
    return d.Do([&](pserver::Actions& out) { d.machine.SaveDone(save, OkStatus(), out); });
  };
  EXPECT_EQ(ask(), "save t0 f");
  d.Return(0);
  EXPECT_EQ(done(), "");
  EXPECT_EQ(ask(), "save t0 f");
  EXPECT_EQ(done(), "saved t0 r0 ");
  EXPECT_EQ(ask(), "saved t0 r0 ");
}

TEST(TrainerLoss, AServerThatUpdatesNothingFollowsTheOthers) {
  pserver::MachineConfig config = LossConfig(2, TrainerLoss::kWait);
  config.params = {{.name = "mean", .bytes_of_chunks = {8}, .start = true}};
  Driver d(config);
  d.Do([&](pserver::Actions& out) { d.machine.Return(1, out); });
  EXPECT_EQ(d.machine.continues_at(1), protocol::kAnyStep);
  EXPECT_EQ(d.EndStep(1, 7, {}), "ended t1");
}

TEST(TrainerLoss, TheLastVersionIsThereWhileABlockRuns) {
  LossDriver d(1, TrainerLoss::kWait);
  d.Push(0, 0);
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Pull(0, 0), "pulled t0 v0");
  EXPECT_EQ(d.PullRows(0, 0, 0), "rows t0 v0 r0");
  d.Ran();
  EXPECT_EQ(d.Pull(0, 0), "pulled t0 v0");
  EXPECT_EQ(d.PullRows(0, 0, 1), "rows t0 v0 r1");
}

TEST(TrainerLoss, TheOthersUseTheirOwnMeanUntilItIsBack) {
  LossDriver d(3, TrainerLoss::kShrink);
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.Push(2, 0), "pushed t2");
  EXPECT_EQ(d.Lose(1), "merge t1 c0 s0 zeros");
  EXPECT_EQ(d.MeanOfMerge(), 2);  // of trainer 2's gradient, the last
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.Push(0, 1), "pushed t0; merge t0 c0 s1");
  EXPECT_EQ(d.Merged(), "merge t1 c0 s1 zeros");
  EXPECT_EQ(d.Return(1), "");
  EXPECT_EQ(d.machine.continues_at(1), 2u);
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.Push(2, 1), "pushed t2; merge t2 c0 s1");
  EXPECT_EQ(d.Merged(), "run c0 s1");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.Pull(1, 2), "pulled t1 v2");
  EXPECT_EQ(d.Push(0, 2), "pushed t0; merge t0 c0 s2");
  EXPECT_EQ(d.Push(2, 2), "pushed t2");
  EXPECT_EQ(d.Merged(), "");  // it is waited for again
  EXPECT_EQ(d.Push(1, 2), "pushed t1; merge t1 c0 s2");
  EXPECT_EQ(d.MeanOfMerge(), 0);
}

TEST(TrainerLoss, AReturnedTrainerBeginsWhereTheServerThatIsFurthestIs) {
  LossDriver d(2, TrainerLoss::kShrink);
  d.TrainBoth(0);
  d.Lose(1);
  d.Return(1);
  EXPECT_EQ(d.machine.continues_at(1), 1u);
  EXPECT_EQ(d.Push(0, 1), "pushed t0; merge t0 c0 s1");
  EXPECT_EQ(d.Merged(), "");                           // waits for its gradient of step 1
  EXPECT_EQ(d.BeginAt(1, 2), "merge t1 c0 s1 zeros");  // which does not come
  EXPECT_EQ(d.Merged(), "run c0 s1");
  EXPECT_EQ(d.Push(0, 1, 1), "pushed t0; merge t0 c1 s1");
  EXPECT_EQ(d.MeanOfMerge(1), 1);
  d.Merged(1);
  d.Ran(0);
  d.Ran(1);
  EXPECT_EQ(d.Push(1, 2), "pushed t1");
  EXPECT_EQ(d.BeginAt(1, 5), "");  // only before its first gradient
  EXPECT_EQ(d.machine.continues_at(1), 2u);
}

TEST(TrainerLoss, NothingStandsForAGradientBeforeAnotherTrainerBeginsTheStep) {
  LossDriver d(2, TrainerLoss::kShrink);
  EXPECT_EQ(d.Lose(0), "");
  EXPECT_EQ(d.Return(0), "");
  EXPECT_EQ(d.machine.continues_at(0), 0u);
  EXPECT_EQ(d.Lose(0), "");
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t0 c0 s0 zeros");
  EXPECT_EQ(d.Return(0), "merge t0 c1 s0 zeros");  // as in the other chunk
  EXPECT_EQ(d.machine.continues_at(0), 1u);
}

TEST(TrainerLoss, AStepOfNobodyHappensIfAReturnedTrainerBeginsAfterIt) {
  LossDriver d(2, TrainerLoss::kShrink);
  d.Lose(0);
  d.Lose(1);
  d.Return(0);
  EXPECT_EQ(d.BeginAt(0, 1), "merge t0 c0 s0 zeros; merge t0 c1 s0 zeros");  // another server is there
  EXPECT_EQ(d.Merged(), "merge t1 c0 s0 zeros");
  EXPECT_EQ(d.Merged(), "run c0 s0");
}

TEST(TrainerLoss, ATrainerThatDiedBeforeItCameHereMayBeginLater) {
  LossDriver d(2, TrainerLoss::kShrink);
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.BeginAt(1, 0), "");
  EXPECT_EQ(d.BeginAt(1, 1), "merge t1 c0 s0 zeros");
}

TEST(TrainerLoss, WholeGradientsOfALostTrainerAreMerged) {
  LossDriver d(2, TrainerLoss::kShrink);
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.Lose(1), "");
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.MeanOfMerge(), 0);
}

TEST(TrainerLoss, TheJobEndsWithoutALostTrainerButNotWithoutAll) {
  LossDriver some(2, TrainerLoss::kShrink);
  some.Lose(1);
  EXPECT_EQ(some.Complete(0), "completed t0; end ok");
  LossDriver none(2, TrainerLoss::kShrink);
  EXPECT_EQ(none.Lose(0), "");
  EXPECT_EQ(none.Lose(1), "");  // a step of nobody does not happen
  EXPECT_FALSE(none.machine.ended());
  LossDriver waits(2, TrainerLoss::kWait);
  waits.Lose(1);
  waits.Complete(0);
  waits.Merged(0);
  waits.Merged(1);
  EXPECT_FALSE(waits.machine.ended());
}

}  // namespace
}  // namespace penstock::test
