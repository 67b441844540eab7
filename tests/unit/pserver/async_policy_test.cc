// Asynchronous training and bounded staleness, action by action.
#include "executor/pserver/machine/policies/async_policy.h"

#include <gtest/gtest.h>

#include "executor/pserver/machine/policies/backup_policy.h"
#include "executor/pserver/machine/policies/policy_of.h"
#include "executor/pserver/machine/policies/staleness_policy.h"
#include "executor/pserver/machine/policies/sync_policy.h"
#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

Driver Async(pserver::MachineConfig config) {
  return Driver(std::move(config), std::make_unique<pserver::AsyncPolicy>());
}

TEST(AsyncPolicy, EachGradientIsAnUpdateInTheOrderOfArrival) {
  Driver d = Async(Config(2));
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  EXPECT_EQ(d.Push(0, 1), "pushed t0") << "its step 0 is still to come";
  EXPECT_EQ(d.Push(1, 1), "pushed t1");
  EXPECT_EQ(d.Push(0, 0), "pushed t0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Push(1, 0), "pushed t1") << "a repeat";
  EXPECT_EQ(d.Ran(), "credit t1; merge t0 c0 s0") << "its step 1 was whole first, and waited for step 0";
  d.Merged();
  EXPECT_EQ(d.Ran(), "credit t0; merge t1 c0 s1");
  d.Merged();
  EXPECT_EQ(d.Ran(), "merge t0 c0 s1");
  d.Merged();
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.machine.version(0, 0), 4u);
}

TEST(AsyncPolicy, APullWaitsOnlyForTheTrainersOwnGradients) {
  Driver d = Async(Config(2));
  EXPECT_EQ(d.Pull(0, 0), "newest t0 v0");
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Pull(0, 1), "") << "it is merged, and not applied";
  EXPECT_EQ(d.Pull(1, 0), "newest t1 v0") << "of a trainer that has sent nothing";
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Pull(1, 0), "newest t1 v0") << "it is answered behind the block";
  EXPECT_EQ(d.Ran(), "newest t0 v1");
}

TEST(AsyncPolicy, CreditFollowsTheTrainersOwnSteps) {
  Driver d = Async(Config(2));
  d.Push(0, 0);
  d.Merged();
  EXPECT_EQ(d.machine.credit(0, 0, 0), 2u) << "taken is not applied";
  d.Ran();
  EXPECT_EQ(d.machine.credit(0, 0, 0), 3u);
  EXPECT_EQ(d.machine.credit(0, 0, 1), 2u);
  EXPECT_EQ(d.Push(1, 2), "error t0 E-rpc-credit; error t1 E-rpc-credit; end E-rpc-credit");
}

TEST(AsyncPolicy, ATrainerAheadReceivesCreditLater) {
  Driver d = Async(Config(2));
  d.Push(0, 0);
  d.Push(0, 1);
  EXPECT_EQ(d.machine.credit(0, 0, 0), 2u) << "it has pushed all that is welcome";
  d.Merged();
  EXPECT_EQ(d.Ran(), "credit t0; merge t0 c0 s1") << "it pulls nothing, so this is how it learns it";
  d.Merged();
  EXPECT_EQ(d.Ran(), "") << "its next step is welcome, as it knows";
}

TEST(AsyncPolicy, TableCreditGoesToTheAppliedTrainer) {
  pserver::MachineConfig config = Config(2);
  config.params = {{.name = "t", .bytes_of_chunks = {8}, .pushed_row_bytes = 4}};
  Driver d = Async(config);
  EXPECT_EQ(d.Do([&](pserver::Actions& out) {
    d.machine.Push({.trainer = 1, .bytes = Gradient(8), .rows = 2}, out);
  }),
            "pushed t1; merge t1 c0 s0 of 2");
  d.Merged();
  EXPECT_EQ(d.Ran(), "credit t1");
}

TEST(AsyncPolicy, AStepWithoutAGradientIsSkipped) {
  Driver d = Async(Config(2));
  d.Push(0, 1);
  EXPECT_EQ(d.Pull(0, 1), "");
  EXPECT_EQ(d.EndStep(0, 0, {}), "merge t0 c0 s1; newest t0 v1; ended t0")
      << "step 1 goes on, and nothing of step 0 is waited for";
  EXPECT_EQ(d.EndStep(0, 0, {}), "ended t0") << "a repeat";
  d.Merged();
  d.Ran();
  EXPECT_EQ(d.Pull(0, 2), "newest t0 v2");
}

TEST(AsyncPolicy, StepsThatEndFarAheadOfAGradientAreAnError) {
  Driver d = Async(Config(1));
  d.EndStep(0, 0, {0});
  std::uint64_t step = 1;
  while (d.EndStep(0, step, {}) == "ended t0") ++step;
  EXPECT_EQ(step, 65u) << "no client ends so many before the first one's gradient has come";
  EXPECT_EQ(d.Complete(0), "") << "the job has ended";
}

TEST(AsyncPolicy, CompletedTrainersAreIgnoredAndDeadOnesEndTheJob) {
  Driver d = Async(Config(3));
  EXPECT_EQ(d.Complete(0), "completed t0");
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0") << "nobody is told that trainer 0 left";
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.Gone(2, Unavailable("E-peer-lost", "gone"), out); }),
            "error t1 E-peer-lost; error t2 E-peer-lost; end E-peer-lost");
}

TEST(AsyncPolicy, AScheduleCountsAStepOnceAllItsGradientsAreApplied) {
  pserver::MachineConfig config = Config(1, true);
  config.counts_steps = true;
  Driver d = Async(config);
  d.Push(0, 0);
  EXPECT_EQ(d.Merged(), "lr s0") << "the rate that training begins with";
  EXPECT_EQ(d.Count(0, 0), "counted t0");
  EXPECT_EQ(d.LrRan(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "") << "the second chunk has no gradient of the step yet";
  d.Push(0, 0, 1);
  EXPECT_EQ(d.Merged(1), "run c1 s0");
  EXPECT_EQ(d.Push(0, 1), "pushed t0; merge t0 c0 s1");
  EXPECT_EQ(d.Ran(1), "lr s1 for t0");
  EXPECT_EQ(d.Merged(), "") << "an update does not begin while the rate is made";
  EXPECT_EQ(d.Count(0, 0), "counted t0") << "a repeat";
  EXPECT_EQ(d.LrRan(), "run c0 s1");
}

TEST(AsyncPolicy, AStepOfAnUncountedScheduleIsAnError) {
  Driver d = Async(Config(1));
  EXPECT_EQ(d.Count(0, 0), "error t0 E-rpc-count; end E-rpc-count");
}

TEST(AsyncPolicy, ALoadedValueIsComparedBeforeTheFirstUpdate) {
  Driver d = Async(Config(2));
  d.PushInitial(0);
  d.Merged();
  d.Push(0, 0);
  EXPECT_EQ(d.Merged(), "") << "trainer 1 may still be loading";
  EXPECT_EQ(d.PushInitial(1), "pushed t1; initial t1 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");

  Driver differs = Async(Config(2));
  differs.PushInitial(0);
  differs.Merged();
  differs.Push(1, 0);
  EXPECT_EQ(differs.Merged(), "error t0 E-load-differs; error t1 E-load-differs; end E-load-differs")
      << "trainer 1 began without";

  Driver late = Async(Config(2));
  late.Push(0, 0);
  late.Merged();
  late.Ran();
  EXPECT_EQ(late.PushInitial(1), "error t0 E-load-differs; error t1 E-load-differs; end E-load-differs");
}

TEST(StalenessPolicy, APullWaitsForTheSlowestTrainerThatHasNotCompleted) {
  Driver d(Config(2), std::make_unique<pserver::StalenessPolicy>(1));
  for (std::uint64_t step = 0; step < 2; ++step) {
    d.Push(0, step);
    d.Merged();
    d.Ran();
    EXPECT_EQ(d.Pull(0, step + 1), step == 0 ? "newest t0 v1" : "");
  }
  EXPECT_EQ(d.machine.Lacks(0, 0), std::vector<int>{1});
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  d.Merged();
  EXPECT_EQ(d.Ran(), "newest t0 v2");
  EXPECT_TRUE(d.machine.Lacks(0, 0).empty());
  EXPECT_EQ(d.Pull(0, 3), "");
  EXPECT_EQ(d.Complete(1), "completed t1") << "its own gradient of step 2 is not there";
  d.Push(0, 2);
  d.Merged();
  EXPECT_EQ(d.Ran(), "newest t0 v3");
}

TEST(PolicyOf, SelectsByModeAndSettings) {
  roles::PserverFacts role;
  const auto is = [&]<typename P>(P*, const JobPolicies& policies) {
    return dynamic_cast<const P*>(pserver::PolicyOf(role, policies).get()) != nullptr;
  };
  EXPECT_TRUE(is(static_cast<pserver::SyncPolicy*>(nullptr), {}));
  EXPECT_FALSE(is(static_cast<pserver::BackupPolicy*>(nullptr), {}));
  EXPECT_TRUE(is(static_cast<pserver::BackupPolicy*>(nullptr), {.backup_trainers = 1}));
  for (const auto mode : {roles::ServeMode::kAsync, roles::ServeMode::kHalfAsync}) {
    role.mode = mode;
    EXPECT_TRUE(is(static_cast<pserver::AsyncPolicy*>(nullptr), {}));
    EXPECT_FALSE(is(static_cast<pserver::StalenessPolicy*>(nullptr), {}));
    EXPECT_TRUE(is(static_cast<pserver::StalenessPolicy*>(nullptr), {.staleness = 0}));
  }
}

}  // namespace
}  // namespace penstock::test
