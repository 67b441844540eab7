// Trainers die at any point, and new processes take their places. Where the others wait, the job ends with
// the bytes of an undisturbed one: no gradient is lost, none is used twice. Where they go on, the job ends.
//
// To run one seed:  simulation_test --gtest_filter='Return*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

constexpr int kStepsWithDeaths = 5;

ToyJob JobWithDeaths(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1"};
  job.lr_block = seed % 2 == 1;
  job.params = {
      {.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
      {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .decay = true},
      {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
      {.name = "table.0", .shape = {40, 3}, .server = 0, .optimizer = "adam", .table = true, .salt = seed},
      {.name = "table.1", .shape = {9, 2}, .server = 1, .optimizer = "sgd", .table = true, .salt = seed},
      {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
  return job;
}

// Kills up to three trainers, each in the middle of a step, and starts their new processes some time later;
// often before a server has noticed the end. None that completes: a server may have ended, and a new process
// does not find it.
class Deaths {
 public:
  Deaths(Simulation& sim, std::uint64_t seed)
      : sim_(sim), random_(seed), left_(1 + static_cast<int>(seed % 3)) {
    Choose();
  }

  // Before each event.
  void Check() {
    if (left_ == 0) return;
    Trainer* const victim = Living();
    if (victim == nullptr || victim->session().step() < step_ || victim->completing()) return;
    if (events_-- > 0) return;
    victim->Die();
    ++died_;
    const Nanoseconds after = std::chrono::milliseconds(random_() % 400);
    sim_.net().After(after, [this, id = id_, incarnation = incarnation_++] {
      sim_.AddTrainer(id, sim_.job(), kStepsWithDeaths, {.incarnation = incarnation});
    });
    if (--left_ > 0) Choose();
  }
  int died() const { return died_; }

 private:
  void Choose() {
    id_ = static_cast<int>(random_() % static_cast<std::uint64_t>(sim_.job().trainers));
    step_ = random_() % (kStepsWithDeaths + 1);
    events_ = static_cast<int>(random_() % 120);
  }
  Trainer* Living() {
    for (int i = sim_.trainer_count(); i-- > 0;) {
      if (sim_.trainer(i).id() == id_) return sim_.trainer(i).dead() ? nullptr : &sim_.trainer(i);
    }
    return nullptr;
  }

  Simulation& sim_;
  std::mt19937_64 random_;
  int left_, died_ = 0;
  int id_ = 0;
  std::uint64_t step_ = 0;
  int events_ = 0;
  std::uint64_t incarnation_ = 2;
};

void ExpectBytes(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  if (got.empty()) return;
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << what;
}

// What each process saw, and what the servers hold at the end.
void ExpectReference(Simulation& sim) {
  const std::vector<ToyValues> reference = ToyReference(sim.job(), kStepsWithDeaths);
  for (int i = 0; i < sim.trainer_count(); ++i) {
    Trainer& trainer = sim.trainer(i);
    if (!trainer.dead()) {
      ASSERT_TRUE(trainer.session().status().ok()) << trainer.session().status().ToString();
      ASSERT_EQ(trainer.first_step() + trainer.seen().size(), reference.size());
    }
    for (std::size_t n = 0; n < trainer.seen().size(); ++n) {
      const std::size_t version = trainer.first_step() + n;
      for (const ToyParam& param : sim.job().params) {
        const ToyValues& seen = trainer.seen()[n];
        const std::vector<float>& values = reference[version].at(param.name);
        const std::string what = StrCat("process ", i, ", version ", version, " of ", param.name);
        const auto rows = seen.find(StrCat("rows of ", param.name));
        if (param.table && rows != seen.end()) {
          ExpectBytes(rows->second, ToyRows(param, values, ToyIds(param, trainer.id(), version)), what);
        } else if (!param.table) {
          ExpectBytes(seen.at(param.name), values, what);
        }
      }
    }
  }
  for (int s = 0; s < 2; ++s) {
    ASSERT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
    for (const ToyParam& param : sim.job().params) {
      if (param.server != s) continue;
      const auto values = sim.server(s).scope.Find(param.name)->As<Tensor>().Span<float>();
      ExpectBytes({values.begin(), values.end()}, reference.back().at(param.name), param.name);
    }
  }
}

int RunWithDeaths(std::uint64_t seed, client::Joins joins) {
  ToyJob job = JobWithDeaths(seed);
  if (joins == client::Joins::kAtLowest && seed % 3 < 2) job.early_bytes = seed % 3 * 64;
  Faults faults = FaultsOf(seed);
  if (seed % 4 == 1) faults = {};
  Simulation sim(job, kStepsWithDeaths, seed, faults, job.trainers, true, joins);
  Deaths deaths(sim, seed);
  EXPECT_TRUE(sim.Run([&] { deaths.Check(); })) << "the job did not end: " << sim.Waiting();
  if (testing::Test::HasFailure()) return 0;
  if (joins == client::Joins::kAtLowest) ExpectReference(sim);
  for (int s = 0; s < 2; ++s)
    EXPECT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
  return deaths.died();
}

void RunSeeds(client::Joins joins) {
  std::uint64_t died = 0;
  std::uint64_t begin = 0, end = SeedCount();
  if (const char* one = std::getenv("PENSTOCK_SIM_SEED")) end = 1 + (begin = std::strtoull(one, nullptr, 10));
  for (std::uint64_t seed = begin; seed < end && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
    died += static_cast<std::uint64_t>(RunWithDeaths(seed, joins));
  }
  EXPECT_TRUE(end - begin == 1 || died > end - begin) << "most seeds have a death: " << died;
}

TEST(Return, ATrainerThatIsWaitedForLeavesEveryByteAsItWas) { RunSeeds(client::Joins::kAtLowest); }

TEST(Return, AJobThatGoesOnWithoutATrainerEnds) { RunSeeds(client::Joins::kAtHighest); }

TEST(Return, TheWaitNamesTheTrainer) {
  const ToyJob job = JobWithDeaths(0);
  Simulation sim(job, kStepsWithDeaths, 1, {}, 2, true, client::Joins::kAtLowest);
  ASSERT_TRUE(
      sim.net().RunUntil([&] { return sim.trainer(1).session().step() == 2; }, std::chrono::minutes(1)));
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
  ExpectReference(sim);
  EXPECT_NE(Join(sim.server(0).reports, "\n").find("a new process of trainer 1 has come after"),
            std::string::npos);
}

TEST(Return, AnOlderProcessIsFencedAndChangesNothing) {
  for (std::uint64_t seed = 0; seed < SeedCount() / 10 && !HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    const ToyJob job = JobWithDeaths(seed);
    const Faults faults = seed % 2 == 0 ? Faults{} : kBreaking;
    Simulation sim(job, kStepsWithDeaths, seed, faults, job.trainers, true, client::Joins::kAtLowest);
    const std::uint64_t step = seed % 4;
    ASSERT_TRUE(
        sim.net().RunUntil([&] { return sim.trainer(1).session().step() == step; }, std::chrono::minutes(1)));
    sim.AddTrainer(1, sim.job(), kStepsWithDeaths, {.incarnation = 2});  // the older one still lives
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    const Status fenced = sim.trainer(1).session().status();
    EXPECT_EQ(fenced.id(), "E-rpc-fenced") << fenced.ToString();
    sim.trainer(1).Die();  // for ExpectReference
    ExpectReference(sim);
  }
}

TEST(Return, WithoutTheSettingADeathEndsTheJob) {
  const ToyJob job = JobWithDeaths(0);
  Simulation sim(job, kStepsWithDeaths, 1, {});
  ASSERT_TRUE(
      sim.net().RunUntil([&] { return sim.trainer(1).session().step() == 2; }, std::chrono::minutes(1)));
  sim.trainer(1).Die();
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(0).session().status().id(), "E-peer-lost");
}

TEST(Return, AProcessThatDoesNotComeEndsTheJobAtTheDeadline) {
  const ToyJob job = JobWithDeaths(0);
  Simulation sim(job, kStepsWithDeaths, 1, {}, 2, true, client::Joins::kAtLowest);
  ASSERT_TRUE(
      sim.net().RunUntil([&] { return sim.trainer(1).session().step() == 2; }, std::chrono::minutes(1)));
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
