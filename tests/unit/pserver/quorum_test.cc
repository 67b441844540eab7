#include "executor/pserver/machine/policies/quorum.h"

#include <gtest/gtest.h>

#include "executor/pserver/machine/policies/backup_policy.h"
#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

using pserver::Quorum;

TEST(Quorum, TheFirstCompleteStepsMakeAVersion) {
  Quorum quorum(3, 1, 2);
  EXPECT_FALSE(quorum.Came(0, 0));
  EXPECT_FALSE(quorum.Came(2, 0));
  EXPECT_TRUE(quorum.Came(2, 0));
  EXPECT_FALSE(quorum.Came(1, 0));
  EXPECT_EQ(quorum.decided(), 0u);
  EXPECT_EQ(quorum.Missing(), (std::vector<int>{0, 1}));
  EXPECT_TRUE(quorum.Came(0, 0));
  EXPECT_EQ(quorum.decided(), 1u);
  EXPECT_EQ(quorum.Of(0), (std::vector<int>{0, 2}));
  EXPECT_EQ(quorum.FateOf(1, 0), Quorum::Fate::kOpen) << "not all of it is here";
  EXPECT_TRUE(quorum.Came(1, 0));
  EXPECT_EQ(quorum.FateOf(1, 0), Quorum::Fate::kLate);
  EXPECT_EQ(quorum.FateOf(0, 0), Quorum::Fate::kMerged);
  EXPECT_EQ(quorum.late_steps(1), 1u);
}

TEST(Quorum, ALateTrainerRejoinsAfterCatchingUp) {
  Quorum quorum(3, 1, 1);
  for (std::uint64_t step = 0; step < 2; ++step) {
    quorum.Came(0, step);
    quorum.Came(1, step);
  }
  quorum.Forget(2);
  for (std::uint64_t step = 0; step < 2; ++step) {
    quorum.Came(2, step);
    EXPECT_EQ(quorum.FateOf(2, step), Quorum::Fate::kLate);
  }
  quorum.Came(2, 2);
  quorum.Came(0, 2);
  EXPECT_EQ(quorum.Of(2), (std::vector<int>{0, 2}));
  EXPECT_EQ(quorum.late_steps(2), 2u);
}

TEST(Quorum, DepartedTrainersAreNotAwaited) {
  Quorum quorum(3, 1, 1);
  quorum.Left(0);
  quorum.Came(1, 0);
  EXPECT_EQ(quorum.decided(), 0u);
  quorum.Left(2);
  EXPECT_EQ(quorum.Of(0), std::vector<int>{1});
  EXPECT_TRUE(quorum.Missing() == std::vector<int>{1});
}

// Three trainers and one chunk of 8 bytes.
Driver BackupDriver() {
  pserver::MachineConfig config{.trainers = 3, .part_bytes = 8, .backup_trainers = 1, .params = {{"w", {8}}}};
  return Driver(std::move(config), std::make_unique<pserver::BackupPolicy>());
}

TEST(BackupPolicy, AVersionIsMadeOfTheFirstGradientsInTrainerOrder) {
  Driver d = BackupDriver();
  EXPECT_EQ(d.Push(2, 0), "pushed t2");
  EXPECT_EQ(d.machine.Lacks(0, 0), (std::vector<int>{0, 1}));
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Push(1, 0), "pushed t1") << "too late";
  EXPECT_EQ(d.Push(1, 0), "pushed t1") << "a repeat";
  EXPECT_EQ(d.Merged(), "merge t2 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.machine.late_steps(1), 1u);
  EXPECT_EQ(d.machine.late_steps(0), 0u);
}

TEST(BackupPolicy, ALateTrainersPullGetsTheNewestVersion) {
  Driver d = BackupDriver();
  for (std::uint64_t step = 0; step < 3; ++step) {
    d.Push(0, step);
    d.Push(1, step);
    d.Merged();
    d.Merged();
    EXPECT_EQ(d.Pull(2, 0), "newest t2 v0") << "it is answered behind the block";
    d.Ran();
  }
  EXPECT_EQ(d.Pull(2, 1), "") << "its own gradient of step 0 is still to come";
  EXPECT_EQ(d.Push(2, 0), "pushed t2; newest t2 v1");
  EXPECT_EQ(d.machine.version(0, 0), 3u);
}

TEST(BackupPolicy, APullMayWaitForAGradientThatIsDroppedAfterAMerge) {
  Driver d = BackupDriver();
  d.Push(0, 0);
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t0 c0 s0");
  d.Merged();
  d.Merged();
  d.Ran();
  d.Push(0, 1);
  EXPECT_EQ(d.Push(1, 1), "pushed t1; merge t0 c0 s1");
  EXPECT_EQ(d.Pull(2, 1), "");
  EXPECT_EQ(d.Push(2, 0), "pushed t2") << "while a gradient is merged";
  EXPECT_EQ(d.Merged(), "merge t1 c0 s1; newest t2 v1");
}

TEST(BackupPolicy, AMergeStatesItsNumberOfGradients) {
  Driver d = BackupDriver();
  d.Push(0, 0);
  pserver::Actions out;
  d.machine.Push({.trainer = 2, .bytes = Gradient(8)}, out);
  EXPECT_EQ(std::get<pserver::MergeAction>(out.back()).of, 2);
}

TEST(BackupPolicy, InitialValuesOfALateTrainerAreAwaited) {
  Driver d = BackupDriver();
  d.PushInitial(0);
  d.Merged();
  d.PushInitial(1);
  d.Merged();
  d.Push(0, 0);
  d.Push(1, 0);
  d.Merged();
  EXPECT_EQ(d.Merged(), "") << "trainer 2 may still be loading";
  EXPECT_EQ(d.PushInitial(2), "pushed t2; initial t2 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
}

TEST(BackupPolicy, ATrainerThatCompletesIsAbsentAndNotLate) {
  Driver d = BackupDriver();
  EXPECT_EQ(d.Complete(0), "completed t0");
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.Complete(2), "completed t2; merge t1 c0 s0") << "all that are left";
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.Complete(1), "completed t1; end ok");
  for (int t = 0; t < 3; ++t) EXPECT_EQ(d.machine.late_steps(t), 0u);
}

}  // namespace
}  // namespace penstock::test
