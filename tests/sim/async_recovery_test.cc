// Asynchronous jobs whose servers are killed and started again by themselves, whose trainers die and return,
// and that are killed as a whole and continue from a checkpoint: what a server holds at the end is each
// gradient of each trainer, applied once.
//
// To run one seed:  simulation_test --gtest_filter='AsyncRecovery.*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/checkpoint/folder.h"
#include "tests/sim/async_recorder.h"
#include "tests/sim/deaths.h"
#include "tests/sim/seeds.h"

namespace penstock::test {
namespace {

constexpr std::uint64_t kTrained = 6;  // steps of each trainer

ToyJob AsyncRecoveryJob(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1"};
  job.async = true;
  if (seed % 4 == 2) job.staleness = static_cast<int>(seed % 3);
  job.lr_block = seed % 2 == 1;
  job.checkpoint_every = 1 + seed % 4;
  if (seed % 5 == 3) {  // only full logs bring checkpoints
    job.checkpoint_every = 1000;
    job.retention_bytes = 100 + seed % 7 * 60;
  }
  job.params = {
      {.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
      {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam"},
      {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"},
      {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
      {.name = "table.0", .shape = {40, 3}, .server = 0, .optimizer = "adam", .table = true, .salt = seed},
      {.name = "table.1", .shape = {9, 2}, .server = 1, .optimizer = "sgd", .table = true, .salt = seed},
      {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
  return job;
}

// A server may be out of reach at any time.
Faults AsyncRecoveryFaults(std::uint64_t seed) {
  return seed % 3 == 2 ? kBreaking : Faults{.lost = 0.05, .twice = 0.1, .late = 0.02, .breaks = 1e-6};
}

// The starts of one job, one after the other.
struct Start {
  Simulation& sim;
  AsyncRecorder& recorder;
};

// What happened to one chunk over all starts.
class ChunkHistory {
 public:
  ChunkHistory(std::vector<Start> starts, const ToyParam& param, Dim begin)
      : starts_(std::move(starts)), param_(param), begin_(begin) {}

  void Check() {
    const AsyncRecorder::Chunk* last = nullptr;
    for (const Start& start : starts_) {
      const auto& chunks = start.recorder.chunks(param_.name);
      const auto found = chunks.find(begin_);
      ASSERT_NE(found, chunks.end());
      const AsyncRecorder::Chunk& chunk = found->second;
      if (last != nullptr) GoBackTo(chunk.restored.front().second, chunk);
      std::size_t from = 0;
      for (std::size_t i = last == nullptr ? 0 : 1; i < chunk.restored.size(); ++i) {
        const auto& [until, value] = chunk.restored[i];
        Append(chunk, from, until);
        from = until;
        GoBackTo(value, chunk);
        if (testing::Test::HasFailure()) return;
      }
      Append(chunk, from, chunk.updates.size());
      last = &chunk;
    }
    ExpectEachOnce();
    const Start& end = starts_.back();
    EXPECT_TRUE(Same(end.recorder.ValueOf(param_, *last), Versions(*last).back())) << param_.name;
  }

 private:
  void Append(const AsyncRecorder::Chunk& chunk, std::size_t from, std::size_t until) {
    kept_.insert(kept_.end(), chunk.updates.begin() + static_cast<std::ptrdiff_t>(from),
                 chunk.updates.begin() + static_cast<std::ptrdiff_t>(until));
  }
  std::vector<std::vector<float>> Versions(const AsyncRecorder::Chunk& chunk) const {
    return AsyncChunk(param_, chunk.begin, chunk.end).Replay(kept_);
  }
  // What came after the version that a checkpoint has is undone.
  void GoBackTo(const std::vector<float>& value, const AsyncRecorder::Chunk& chunk) {
    const auto versions = Versions(chunk);
    const auto found =
        std::find_if(versions.rbegin(), versions.rend(), [&](const auto& one) { return Same(one, value); });
    ASSERT_NE(found, versions.rend())
        << "a server began with another value of " << param_.name << ", row " << begin_;
    kept_.resize(static_cast<std::size_t>(versions.rend() - found) - 1);
  }
  bool IsGradient(const AsyncUpdate& update, int trainer, std::uint64_t step) const {
    for (const Start& start : starts_) {
      for (int i = 0; i < start.sim.trainer_count(); ++i) {
        const Trainer& process = start.sim.trainer(i);
        if (process.id() == trainer && IsGradientOf(process, start.sim.job(), update, step)) return true;
      }
    }
    return false;
  }
  bool IsGradientOf(const Trainer& process, const ToyJob& job, const AsyncUpdate& update,
                    std::uint64_t step) const {
    const std::uint64_t first = process.resumed_at() + process.first_step();
    if (step < first || step - first >= process.seen().size()) return false;
    const ToyValues& values = process.seen()[step - first];
    const auto seen = values.find(param_.table ? StrCat("rows of ", param_.name) : param_.name);
    if (seen == values.end()) return false;
    const std::vector<float> sent = ToyGradient(seen->second, param_.name, process.id(), step);
    if (param_.table)
      return update.rows == job.IdsOf(param_, process.id(), step) && Same(update.gradient, sent);
    const Dim width = param_.shape.rank() > 1 ? param_.shape.RowWidth() : 1;
    const auto* const slice = sent.data() + begin_ * width;
    return Same(update.gradient, {slice, slice + update.gradient.size()});
  }
  void ExpectEachOnce() const {
    std::vector<std::uint64_t> steps(static_cast<std::size_t>(starts_.front().sim.job().trainers));
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      bool found = false;
      for (std::size_t t = 0; t < steps.size() && !found; ++t) {
        found = steps[t] < kTrained && IsGradient(kept_[i], static_cast<int>(t), steps[t]);
        steps[t] += found ? 1 : 0;
      }
      EXPECT_TRUE(found) << "update " << i << " of " << param_.name << ", row " << begin_
                         << " is no trainer's next gradient";
    }
    for (const std::uint64_t of_trainer : steps) EXPECT_EQ(of_trainer, kTrained) << param_.name;
  }

  const std::vector<Start> starts_;
  const ToyParam& param_;
  const Dim begin_;
  std::vector<AsyncUpdate> kept_;
};

void ExpectEachGradientOnce(const std::vector<Start>& starts) {
  Simulation& end = starts.back().sim;
  for (int i = 0; i < end.trainer_count(); ++i) {
    if (end.trainer(i).dead()) continue;
    ASSERT_TRUE(end.trainer(i).session().status().ok()) << end.trainer(i).session().status().ToString();
  }
  for (int s = 0; s < 2; ++s)
    ASSERT_TRUE(end.server(s).pserver->Ended()->ok()) << end.server(s).pserver->Ended()->ToString();
  for (const ToyParam& param : end.job().params) {
    if (param.start) continue;
    ASSERT_FALSE(starts.front().recorder.chunks(param.name).empty()) << param.name;
    for (const auto& [row, chunk] : starts.front().recorder.chunks(param.name)) {
      ChunkHistory(starts, param, row).Check();
      if (testing::Test::HasFailure()) return;
    }
  }
  for (int s = 0; end.job().lr_block && s < 2; ++s) {
    for (int t = 0; t < end.job().trainers; ++t)
      EXPECT_EQ(end.server(s).scope.Find(ToyCounter(t))->As<Tensor>().Span<std::int64_t>()[0], 1 + kTrained);
  }
}

bool AnyIsDone(Simulation& sim) {
  for (int t = 0; t < sim.job().trainers; ++t)
    if (sim.trainer(t).session().CompleteDone()) return true;
  return false;
}

std::string WhatServersDo(Simulation& sim) {
  std::string text;
  for (int s = 0; s < 2; ++s) {
    const Server& server = sim.server(s);
    text += StrCat("\n  server ", s, server.killed ? " is killed" : server.listener ? " listens" : " starts");
    if (const std::optional<Status> end = server.pserver->Ended())
      text += StrCat(", ended: ", end->ToString());
  }
  return text + sim.story();
}

// Kills servers after so many messages.
class Killer {
 public:
  Killer(Simulation& sim, AsyncRecorder& recorder, std::uint64_t seed) : sim_(sim), random_(seed) {
    for (std::uint64_t kills = 1 + seed % 3; kills > 0; --kills) at_.push_back(random_() % 1500);
    std::sort(at_.begin(), at_.end());
    sim.after_restart = [&recorder](int server) { recorder.NoteRestart(server); };
  }
  void operator()() {
    if (killed_ == at_.size() || sim_.net().messages() < at_[killed_] || AnyIsDone(sim_)) return;
    const int index = static_cast<int>(random_() % 2);
    if (sim_.server(index).killed || sim_.server(index).pserver->Ended()) return;
    ++killed_;
    sim_.KillAndRestart(index);
  }
  // Also in an operation of its disk.
  void KillInOperation() {
    const int index = static_cast<int>(random_() % 2), operation = static_cast<int>(random_() % 25);
    sim_.disk(index).before_operation = [this, index, operation, done = false]() mutable {
      FaultyDisk& disk = sim_.disk(index);
      if (done || disk.operations() != operation || AnyIsDone(sim_) || sim_.server(index).killed) return;
      done = true;
      disk.CrashAt(operation);
      sim_.KillAndRestart(index);
    };
  }

 private:
  Simulation& sim_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> at_;
  std::size_t killed_ = 0;
};

void RunKilledServers(std::uint64_t seed, std::uint64_t& restarts) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  Simulation sim(AsyncRecoveryJob(seed), kTrained, seed, AsyncRecoveryFaults(seed));
  AsyncRecorder recorder(sim);
  Killer kill(sim, recorder, seed);
  if (seed % 2 == 0) kill.KillInOperation();
  ASSERT_TRUE(sim.Run([&] { kill(); })) << "the job did not end: " << sim.Waiting() << WhatServersDo(sim);
  restarts += sim.restarts();
  ExpectEachGradientOnce({{sim, recorder}});
}

// All processes end at once. Returns whether the checkpoint with which the job continues is of steps that
// differ by trainer.
bool RunKilledJob(std::uint64_t seed, int& resumed) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  ToyJob job = AsyncRecoveryJob(seed);
  job.disk = std::make_shared<FaultyDisk>(seed);
  Simulation first(job, kTrained, seed, AsyncRecoveryFaults(seed));
  AsyncRecorder before(first);
  Killer kill(first, before, seed);
  const std::uint64_t end = 500 + seed % 13 * 80;
  (void)first.net().RunUntil(
      [&] {
        if (seed % 2 == 0) kill();
        return first.net().messages() >= end || AnyIsDone(first);
      },
      std::chrono::minutes(10));
  const Result<std::optional<std::uint64_t>> newest = checkpoint::NewestWhole(*job.disk, "ckpt");
  if (!newest.ok() || !*newest) return false;
  ++resumed;
  job.resume = **newest;
  job.run = "sim.1";
  Simulation second(job, kTrained, seed + 1, AsyncRecoveryFaults(seed));
  AsyncRecorder after(second);
  for (const ToyParam& param : job.params) {
    for (const auto& [row, chunk] : before.chunks(param.name)) after.Expect(param, chunk);
  }
  after.NoteRestart(0);
  after.NoteRestart(1);
  Killer kill_again(second, after, seed + 7);
  const bool ended = second.Run([&] {
    if (seed % 3 == 0) kill_again();
  });
  EXPECT_TRUE(ended) << "the job did not end: " << second.Waiting() << WhatServersDo(second);
  if (testing::Test::HasFailure()) return false;
  ExpectEachGradientOnce({{first, before}, {second, after}});
  return second.trainer(0).resumed_at() != second.trainer(1).resumed_at();
}

// Each runs up to two jobs.
std::uint64_t Seeds() { return SeedCount() / 2; }

TEST(AsyncRecovery, EverySeedWithKilledServersAppliesEachGradientOnce) {
  std::uint64_t restarts = 0;
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED"))
    return RunKilledServers(std::strtoull(seed, nullptr, 10), restarts);
  for (std::uint64_t seed = 0; seed < Seeds() && !HasFailure(); ++seed) RunKilledServers(seed, restarts);
  EXPECT_GT(restarts, Seeds()) << "most seeds kill servers";
}

// Half of the jobs make checkpoints.
int RunDeadTrainers(std::uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  ToyJob job = AsyncRecoveryJob(seed);
  if (seed % 2 == 0) job.checkpoint_every = 0;
  Simulation sim(job, kTrained, seed, FaultsOf(seed), job.trainers, true, client::Joins::kAtLowest);
  AsyncRecorder recorder(sim);
  Deaths deaths(sim, kTrained, seed);
  EXPECT_TRUE(sim.Run([&] { deaths.Check(); }))
      << "the job did not end: " << sim.Waiting() << WhatServersDo(sim);
  if (!testing::Test::HasFailure()) ExpectEachGradientOnce({{sim, recorder}});
  return deaths.died();
}

TEST(AsyncRecovery, EverySeedWithTrainersThatReturnAppliesEachGradientOnce) {
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED")) {
    RunDeadTrainers(std::strtoull(seed, nullptr, 10));
    return;
  }
  int died = 0;
  for (std::uint64_t seed = 0; seed < Seeds() && !HasFailure(); ++seed) died += RunDeadTrainers(seed);
  EXPECT_GT(died, static_cast<int>(Seeds())) << "most seeds have a death";
}

TEST(AsyncRecovery, EverySeedOfAKilledJobAppliesEachGradientOnce) {
  int resumed = 0, differ = 0;
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED")) {
    RunKilledJob(std::strtoull(seed, nullptr, 10), resumed);
    return;
  }
  for (std::uint64_t seed = 0; seed < Seeds() && !HasFailure(); ++seed)
    differ += RunKilledJob(seed, resumed) ? 1 : 0;
  EXPECT_GT(resumed, static_cast<int>(Seeds() / 2)) << "most seeds have a checkpoint to continue from";
  EXPECT_GT(differ, 0);
}

// In this seed a server begins with a step more of a trainer than the other one, makes a checkpoint before
// the trainer has repeated that step, and is killed.
TEST(AsyncRecovery, AServerThatIsAheadMayBeKilledToo) {
  int resumed = 0;
  RunKilledJob(918, resumed);
  EXPECT_EQ(resumed, 1);
}

}  // namespace
}  // namespace penstock::test
