// All faults in one job: messages are lost, repeated and late, connections break, processes cannot reach each
// other, trainers die and come back, pservers are killed, also while they write, and lose what their disks
// have not synced. The job ends with the bytes of one thread, or, where nobody has a step any more that a
// pserver lacks, with the error that says so.
//
// To run one seed:  simulation_test --gtest_filter='AllFaults.*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/checkpoint/own_part.h"
#include "tests/sim/deaths.h"
#include "tests/sim/expect_reference.h"
#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

constexpr int kStepsWithAll = 6;

ToyJob JobWithAllFaults(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1"};
  job.lr_block = seed % 2 == 1;
  job.checkpoint_every = 1 + seed % 3;
  if (seed % 7 == 3) {  // only full logs and new processes of trainers bring checkpoints
    job.checkpoint_every = 1000;
    job.retention_bytes = 100 + seed % 11 * 60;
  }
  if (seed % 3 < 2) job.early_bytes = seed % 3 * 64;
  job.params = {
      {.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
      {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .decay = true},
      {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
      {.name = "table.0", .shape = {40, 3}, .server = 0, .optimizer = "adam", .table = true, .salt = seed},
      {.name = "table.1", .shape = {9, 2}, .server = 1, .optimizer = "sgd", .table = true, .salt = seed},
      {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
  return job;
}

Faults NetworkFaults(std::uint64_t seed) {
  return seed % 3 == 2 ? kBreaking : Faults{.lost = 0.05, .twice = 0.1, .late = 0.02, .breaks = 1e-6};
}

// What a simulated job went through, and what came of it.
struct Tally {
  std::uint64_t restarts = 0, deaths = 0, both = 0, breaks = 0, cut_off = 0, parts = 0, whole = 0,
                lacking = 0;
};

// Kills pservers and cuts processes off from each other, at times that the seed chooses.
class Incidents {
 public:
  Incidents(Simulation& sim, std::uint64_t seed) : sim_(sim), random_(seed) {
    for (std::uint64_t n = seed % 3; n > 0; --n) kills_.push_back(random_() % 1500);
    for (std::uint64_t n = 1 + random_() % 3; n > 0; --n) partitions_.push_back(random_() % 1500);
    for (auto* times : {&kills_, &partitions_}) std::ranges::sort(*times, std::greater());
    if (seed % 2 == 0) CrashInAnOperation();
  }

  // Before each event.
  void Check() {
    if (!partitions_.empty() && sim_.net().messages() >= partitions_.back()) {
      partitions_.pop_back();
      CutOff();
    }
    if (kills_.empty() || sim_.net().messages() < kills_.back() || JobIsDone()) return;
    const int index = static_cast<int>(random_() % 2);
    if (sim_.server(index).killed || sim_.server(index).pserver->Ended()) return;
    kills_.pop_back();
    FaultyDisk& disk = sim_.disk(index);
    if (random_() % 2 == 0) disk.CrashAt(disk.operations());  // its host loses power
    sim_.KillAndRestart(index);
  }

 private:
  // Afterwards a pserver is not started again.
  bool JobIsDone() {
    for (int i = 0; i < sim_.trainer_count(); ++i)
      if (sim_.trainer(i).session().CompleteDone() || !sim_.trainer(i).session().status().ok()) return true;
    return false;
  }
  void CrashInAnOperation() {
    const int index = static_cast<int>(random_() % 2);
    const int operation = static_cast<int>(random_() % 25);
    sim_.disk(index).before_operation = [this, index, operation, done = false]() mutable {
      FaultyDisk& disk = sim_.disk(index);
      if (done || disk.operations() != operation || JobIsDone() || sim_.server(index).killed) return;
      done = true;
      disk.CrashAt(operation);
      sim_.KillAndRestart(index);
    };
  }
  // Some processes do not reach the others, or are not reached, or both.
  void CutOff() {
    std::vector<std::string> processes = sim_.job().servers;
    for (int t = 0; t < sim_.job().trainers; ++t) processes.push_back(StrCat("trainer ", t));
    const std::uint64_t side = random_() % (1U << processes.size()), directions = 1 + random_() % 3;
    const double seconds = random_() % 4 == 0 ? 20 : 2;
    const Nanoseconds duration(static_cast<std::int64_t>(sim_.net().Uniform() * seconds * 1e9));
    sim_.Note(StrCat("processes of the set ", side, " are cut off from the others, in the directions ",
                     directions));
    for (std::size_t i = 0; i < processes.size(); ++i) {
      for (std::size_t k = 0; k < processes.size(); ++k) {
        if ((side >> i & 1) == 0 || (side >> k & 1) == 1) continue;
        if (directions & 1) sim_.net().Cut(processes[i], processes[k], duration);
        if (directions & 2) sim_.net().Cut(processes[k], processes[i], duration);
      }
    }
  }

  Simulation& sim_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> kills_, partitions_;  // numbers of messages, the next one last
};

// A part of a checkpoint is there at any time, never an older one than before, and has the step's values.
class Parts {
 public:
  explicit Parts(Simulation& sim) : sim_(sim), reference_(ToyReference(sim.job(), kStepsWithAll)) {}

  // Returns whether the server has one.
  bool Check(int server) {
    FaultyDisk& disk = sim_.disk(server);
    const auto part =
        checkpoint::NewestOwnPart(disk, "ckpt", {.server = server, .servers = 2, .run = "sim.0"});
    EXPECT_TRUE(part.ok()) << part.status().ToString();
    const std::uint64_t step = part.ok() && *part ? (*part)->manifest.step : 0;
    EXPECT_GE(step, newest_[server]) << "server " << server << " has lost its last checkpoint";
    newest_[server] = std::max(newest_[server], step);
    if (step == 0) return false;
    const auto values = checkpoint::ReadPart(disk, (*part)->folder, (*part)->manifest);
    EXPECT_TRUE(values.ok()) << values.status().ToString();
    std::size_t params = 0;
    for (const checkpoint::Value& value : values.ok() ? *values : std::vector<checkpoint::Value>()) {
      if (value.entry.kind != checkpoint::ValueKind::kParam) continue;
      const auto got = value.value.If<Tensor>()->Span<float>();
      ExpectBytes({got.begin(), got.end()}, reference_[step].at(value.entry.name),
                  StrCat("the checkpoint of step ", step, " on server ", server, ", ", value.entry.name));
      ++params;
    }
    EXPECT_EQ(params, std::ranges::count(sim_.job().params, server, &ToyParam::server));
    return true;
  }
  std::uint64_t newest(int server) const { return newest_[server]; }

 private:
  Simulation& sim_;
  const std::vector<ToyValues> reference_;
  std::uint64_t newest_[2] = {0, 0};
};

// Whether the job has ended because a pserver lacks a step that was sent by a process that has died. That
// message, too, may be lost: then the others end at their deadlines.
bool LacksAStep(Simulation& sim, const Tally& now) {
  bool lacks = false, all_know = true;
  for (int i = 0; i < sim.trainer_count(); ++i) {
    const Status& why = sim.trainer(i).session().status();
    if (sim.trainer(i).dead()) continue;
    lacks |= why.id() == "E-resume-step";
    all_know &= why.id() == "E-resume-step" || StartsWith(why.id(), "E-peer-");
  }
  return now.deaths > 0 && now.restarts > 0 && lacks && all_know;
}

std::string HowItStands(Simulation& sim) {
  std::string text = sim.Waiting();
  for (int i = 0; i < sim.trainer_count(); ++i)
    text += StrCat("\n  process ", i, " of trainer ", sim.trainer(i).id(),
                   sim.trainer(i).dead() ? " died " : " ", sim.trainer(i).session().status().ToString());
  for (int s = 0; s < 2; ++s) {
    const Server& server = sim.server(s);
    const std::optional<Status> end = server.pserver->Ended();
    text += StrCat("\n  server ", s,
                   server.killed     ? " is killed"
                   : server.listener ? " listens"
                                     : " starts",
                   end ? StrCat(", ended: ", end->ToString()) : "");
  }
  return text + sim.story();
}

void RunWithAllFaults(std::uint64_t seed, Tally& tally) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  const ToyJob job = JobWithAllFaults(seed);
  Simulation sim(job, kStepsWithAll, seed, NetworkFaults(seed), job.trainers, true, client::Joins::kAtLowest);
  Parts parts(sim);
  sim.before_restart = [&](int server) { parts.Check(server); };
  Deaths deaths(sim, kStepsWithAll, seed, static_cast<int>(seed / 3 % 3));
  Incidents incidents(sim, seed);
  // A pserver that nobody can tell why the job has ended waits 15 minutes for new processes of trainers.
  const auto check = [&] {
    deaths.Check();
    incidents.Check();
  };
  ASSERT_TRUE(sim.Run(check, std::chrono::minutes(20))) << "the job did not end: " << HowItStands(sim);
  const Tally now{.restarts = sim.restarts(), .deaths = static_cast<std::uint64_t>(deaths.died())};
  tally.restarts += now.restarts;
  tally.deaths += now.deaths;
  tally.breaks += sim.net().breaks();
  tally.cut_off += sim.net().cut_off();
  if (LacksAStep(sim, now)) {
    ++tally.lacking;
  } else {
    ++tally.whole;
    tally.both += now.restarts > 0 && now.deaths > 0 ? 1 : 0;
    ExpectReference(sim, kStepsWithAll);
    if (testing::Test::HasFailure()) ADD_FAILURE() << HowItStands(sim);
  }
  for (int s = 0; s < 2; ++s) tally.parts += parts.Check(s) ? 1 : 0;
}

TEST(AllFaults, EverySeedEqualsTheOneThreadReference) {
  Tally tally;
  std::uint64_t begin = 0, end = SeedCount();
  if (const char* one = std::getenv("PENSTOCK_SIM_SEED")) end = 1 + (begin = std::strtoull(one, nullptr, 10));
  for (std::uint64_t seed = begin; seed < end && !HasFailure(); ++seed) RunWithAllFaults(seed, tally);
  if (HasFailure() || end - begin == 1) return;
  EXPECT_GT(tally.restarts, end) << "most seeds kill pservers";
  EXPECT_GT(tally.deaths, end / 2) << "most seeds kill trainers";
  EXPECT_GT(tally.both, end / 5) << "many jobs go through both";
  EXPECT_GT(tally.breaks, end / 3);
  EXPECT_GT(tally.cut_off, end) << "most seeds have partitions";
  EXPECT_GT(tally.parts, end) << "most pservers have made checkpoints";
  EXPECT_LT(tally.lacking, end / 5) << "few jobs lack what a dead process has sent";
}

}  // namespace
}  // namespace penstock::test
