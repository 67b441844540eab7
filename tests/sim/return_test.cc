// Trainers die at any point, and new processes take their places. Where the others wait, the job ends with
// the bytes of an undisturbed one: no gradient is lost, none is used twice. Where they go on, the job ends.
//
// To run one seed:  simulation_test --gtest_filter='Return*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include "tests/sim/deaths.h"
#include "tests/sim/expect_reference.h"
#include "tests/sim/restarted_job.h"

namespace penstock::test {
namespace {

constexpr int kStepsWithDeaths = 5;

int RunWithDeaths(std::uint64_t seed, client::Joins joins) {
  ToyJob job = RestartedJob(seed);
  if (joins == client::Joins::kAtLowest && seed % 3 < 2) job.early_bytes = seed % 3 * 64;
  Faults faults = FaultsOf(seed);
  if (seed % 4 == 1) faults = {};
  Simulation sim(job, kStepsWithDeaths, seed, faults, job.trainers, true, joins);
  Deaths deaths(sim, kStepsWithDeaths, seed);
  EXPECT_TRUE(sim.Run([&] { deaths.Check(); })) << "the job did not end: " << sim.Waiting();
  if (testing::Test::HasFailure()) return 0;
  if (joins == client::Joins::kAtLowest) ExpectReference(sim, kStepsWithDeaths);
  for (int s = 0; s < 2; ++s)
    EXPECT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
  return deaths.died();
}

void RunSeeds(client::Joins joins) {
  std::uint64_t died = 0;
  const std::uint64_t seeds = ForEachSeed(
      [&](std::uint64_t seed) { died += static_cast<std::uint64_t>(RunWithDeaths(seed, joins)); });
  EXPECT_TRUE(seeds == 1 || died > seeds) << "most seeds have a death: " << died;
}

TEST(Return, ATrainerThatIsWaitedForLeavesEveryByteAsItWas) { RunSeeds(client::Joins::kAtLowest); }

TEST(Return, AJobThatGoesOnWithoutATrainerEnds) { RunSeeds(client::Joins::kAtHighest); }

TEST(Return, TheWaitNamesTheTrainer) {
  const ToyJob job = RestartedJob(0);
  Simulation sim(job, kStepsWithDeaths, 1, {}, 2, true, client::Joins::kAtLowest);
  ASSERT_TRUE(RunUntilStep(sim, 1, 2));
  sim.trainer(1).Die();
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(3));
  sim.trainer(0).session().Ask();
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(1));
  const std::string waiting = sim.trainer(0).session().WaitingFor();
  EXPECT_NE(waiting.find("which waits for trainer 1 (its process ended 3 s ago, a new one is awaited)"),
            std::string::npos)
      << waiting;
  const std::string said = Join(sim.server(0).reports, "\n");
  EXPECT_NE(said.find("trainer 1 is gone"), std::string::npos) << said;
  EXPECT_NE(said.find("the job waits for a new process of this trainer"), std::string::npos) << said;
  sim.AddTrainer(1, sim.job(), kStepsWithDeaths, {.incarnation = 2});
  ASSERT_TRUE(sim.Run()) << sim.Waiting();
  ExpectReference(sim, kStepsWithDeaths);
  EXPECT_NE(Join(sim.server(0).reports, "\n").find("a new process of trainer 1 has come after"),
            std::string::npos);
}

TEST(Return, AnOlderProcessIsFencedAndChangesNothing) {
  for (std::uint64_t seed = 0; seed < SeedCount() / 10 && !HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const ToyJob job = RestartedJob(seed);
    const Faults faults = seed % 2 == 0 ? Faults{} : kBreaking;
    Simulation sim(job, kStepsWithDeaths, seed, faults, job.trainers, true, client::Joins::kAtLowest);
    const std::uint64_t step = seed % 4;
    ASSERT_TRUE(RunUntilStep(sim, 1, step));
    sim.AddTrainer(1, sim.job(), kStepsWithDeaths, {.incarnation = 2});  // the older one still lives
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    const Status fenced = sim.trainer(1).session().status();
    EXPECT_EQ(fenced.id(), "E-rpc-fenced") << fenced.ToString();
    sim.trainer(1).Die();  // for ExpectReference
    ExpectReference(sim, kStepsWithDeaths);
  }
}

TEST(Return, WithoutTheSettingADeathEndsTheJob) {
  const ToyJob job = RestartedJob(0);
  Simulation sim(job, kStepsWithDeaths, 1, {});
  ASSERT_TRUE(RunUntilStep(sim, 1, 2));
  sim.trainer(1).Die();
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(0).session().status().id(), "E-peer-lost");
}

TEST(Return, AProcessThatDoesNotComeEndsTheJobAtTheDeadline) {
  const ToyJob job = RestartedJob(0);
  Simulation sim(job, kStepsWithDeaths, 1, {}, 2, true, client::Joins::kAtLowest);
  ASSERT_TRUE(RunUntilStep(sim, 1, 2));
  sim.trainer(1).Die();
  sim.net().RunUntil([] { return false; }, std::chrono::minutes(14));
  EXPECT_TRUE(sim.trainer(0).session().status().ok());
  for (int s = 0; s < 2; ++s) {
    sim.net().After(std::chrono::seconds(90), [&, s] { sim.server(s).pserver->Tick(); });
  }
  ASSERT_TRUE(sim.Run());
  const Status why = sim.trainer(0).session().status();
  EXPECT_EQ(why.id(), "E-peer-lost");
  EXPECT_NE(why.message().find("and no new process came within"), std::string::npos) << why.ToString();
}

}  // namespace
}  // namespace penstock::test
