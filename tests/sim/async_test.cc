// Asynchronous training under any network faults: every update of a server is a gradient that a trainer sent,
// applied once; and everything that a trainer reads is one version of a chunk that contains the trainer's own
// gradients and, if staleness is bounded, the gradients of the others that the bound requires.
//
// To run one seed:  simulation_test --gtest_filter='Async*' with PENSTOCK_SIM_SEED=17
#include "tests/sim/references/async.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/async_recorder.h"
#include "tests/sim/references/delay.h"
#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

constexpr int kSteps = 4;

ToyJob Job(std::uint64_t seed, std::optional<int> staleness) {
  return {
      .trainers = 2 + static_cast<int>(seed % 3 == 2),
      .servers = {"ps0:1", "ps1:1"},
      .params =
          {{.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
           {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"},
           {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
           {.name = "table.0",
            .shape = {40, 3},
            .server = 0,
            .optimizer = "adam",
            .table = true,
            .salt = seed},
           {.name = "table.1", .shape = {9, 2}, .server = 1, .optimizer = "sgd", .table = true, .salt = seed},
           {.name = "frozen", .shape = {7, 3}, .server = 1, .start = true}},
      .lr_block = seed % 2 == 1,
      .async = true,
      .staleness = staleness};
}

// A job with delay compensation, in chunks.
ToyJob DelayJob(std::uint64_t seed) {
  ToyJob job = Job(seed, {});
  std::erase_if(job.params, [](const ToyParam& param) { return param.table; });
  job.params.front().decay = false;  // the reference corrects the received gradient
  job.delay = 0.5f;
  return job;
}

// Checks one chunk of a parameter: its versions, and the versions that each trainer read.
class ChunkCheck {
 public:
  ChunkCheck(Simulation& sim, const ToyParam& param, const AsyncRecorder::Chunk& chunk)
      : sim_(sim), param_(param), chunk_(chunk) {}

  void Run() {
    FindUpdates();
    if (testing::Test::HasFailure()) return;
    const AsyncChunk reference(param_, chunk_.begin, chunk_.end);
    versions_ = sim_.job().delay ? ReplayDelayed(reference, *sim_.job().delay, Delayed())
                                 : reference.Replay(chunk_.updates);
    for (int t = 0; t < sim_.job().trainers; ++t) {
      for (std::size_t v = 0; v <= kSteps; ++v) {
        if (!param_.table || v < kSteps) ExpectRead(t, v);
      }
    }
    const auto now = sim_.server(param_.server).scope.Find(param_.name)->As<Tensor>().Span<float>();
    EXPECT_TRUE(Same(SliceOf({now.begin(), now.end()}), versions_.back())) << "at the end";
  }

 private:
  std::vector<float> SliceOf(const std::vector<float>& whole) const {
    const Dim width = param_.shape.rank() > 1 ? param_.shape.RowWidth() : 1;
    return {whole.begin() + chunk_.begin * width, whole.begin() + chunk_.end * width};
  }
  const std::vector<float>& Seen(int trainer, std::size_t version) const {
    const ToyValues& seen = sim_.trainer(trainer).seen()[version];
    return seen.at(param_.table ? StrCat("rows of ", param_.name) : param_.name);
  }
  bool IsGradient(const AsyncUpdate& update, int trainer, std::uint64_t step) const {
    const std::vector<float> sent = ToyGradient(Seen(trainer, step), param_.name, trainer, step);
    if (!param_.table) return Same(update.gradient, SliceOf(sent));
    return update.rows == sim_.job().IdsOf(param_, trainer, step) && Same(update.gradient, sent);
  }

  // Finds the update of each trainer's step: all updates must belong to one, in order.
  void FindUpdates() {
    after_.resize(static_cast<std::size_t>(sim_.job().trainers));
    for (std::size_t i = 0; i < chunk_.updates.size(); ++i) {
      bool found = false;
      for (int t = 0; t < sim_.job().trainers && !found; ++t) {
        auto& of = after_[static_cast<std::size_t>(t)];
        if (of.size() == kSteps || !IsGradient(chunk_.updates[i], t, of.size())) continue;
        reads_.emplace_back(t, of.size());
        of.push_back(i + 1);
        found = true;
      }
      EXPECT_TRUE(found) << "update " << i << " is no trainer's next gradient";
    }
    for (const auto& of : after_) EXPECT_EQ(of.size(), kSteps);
  }

  std::vector<DelayedUpdate> Delayed() const {
    std::vector<DelayedUpdate> updates;
    for (std::size_t i = 0; i < reads_.size(); ++i)
      updates.push_back({chunk_.updates[i], SliceOf(Seen(reads_[i].first, reads_[i].second))});
    return updates;
  }

  // The version that it read, or a later one with the same bytes, must satisfy the bound.
  void ExpectRead(int trainer, std::size_t version) const {
    const std::size_t from = LeastVersion(trainer, version);
    const std::vector<float>& seen = Seen(trainer, version);
    for (std::size_t i = from; i < versions_.size(); ++i) {
      if (Same(seen, param_.table ? ToyRows(param_, versions_[i], sim_.job().IdsOf(param_, trainer, version))
                                  : versions_[i]) ||
          (!param_.table && Same(SliceOf(seen), versions_[i])))
        return;
    }
    ADD_FAILURE() << "what trainer " << trainer << " read before step " << version << " of " << param_.name
                  << " from row " << chunk_.begin << " is none of versions " << from << " to "
                  << versions_.size() - 1;
  }
  std::size_t LeastVersion(int trainer, std::size_t version) const {
    std::size_t least = 0;
    const std::optional<int> staleness = sim_.job().staleness;
    for (int t = 0; t < sim_.job().trainers; ++t) {
      std::size_t steps = t == trainer ? version : 0;
      if (staleness && t != trainer) steps = version - std::min<std::size_t>(version, *staleness);
      if (steps > 0) least = std::max(least, after_[static_cast<std::size_t>(t)][steps - 1]);
    }
    return least;
  }

  Simulation& sim_;
  const ToyParam& param_;
  const AsyncRecorder::Chunk& chunk_;
  std::vector<std::vector<std::size_t>> after_;     // by trainer and step: the version with its gradient
  std::vector<std::pair<int, std::size_t>> reads_;  // by update: trainer and step of its gradient
  std::vector<std::vector<float>> versions_;
};

void RunSeed(std::uint64_t seed, const ToyJob& of_seed) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  Simulation sim(of_seed, kSteps, seed, FaultsOf(seed));
  AsyncRecorder recorder(sim);
  ASSERT_TRUE(sim.Run()) << "the job did not end: " << sim.Waiting();
  const ToyJob& job = sim.job();
  for (int t = 0; t < job.trainers; ++t)
    ASSERT_TRUE(sim.trainer(t).session().status().ok()) << sim.trainer(t).session().status().ToString();
  for (const ToyParam& param : job.params) {
    if (param.start) continue;
    ASSERT_FALSE(recorder.chunks(param.name).empty()) << param.name;
    for (const auto& [row, chunk] : recorder.chunks(param.name)) ChunkCheck(sim, param, chunk).Run();
  }
  if (!job.lr_block) return;
  EXPECT_EQ(recorder.rate_runs(), 2 * (1 + job.trainers * kSteps)) << "each server: once, and for each step";
  for (int s = 0; s < 2; ++s) {
    for (int t = 0; t < job.trainers; ++t)
      EXPECT_EQ(sim.server(s).scope.Find(ToyCounter(t))->As<Tensor>().Span<std::int64_t>()[0], 1 + kSteps);
  }
}

template <typename JobOf>
void RunSeeds(const JobOf& job_of, std::uint64_t begin, std::uint64_t end) {
  if (const char* text = std::getenv("PENSTOCK_SIM_SEED")) {
    const std::uint64_t seed = std::strtoull(text, nullptr, 10);
    return RunSeed(seed, job_of(seed));
  }
  for (std::uint64_t seed = begin; seed < end && !testing::Test::HasFailure(); ++seed)
    RunSeed(seed, job_of(seed));
}

TEST(Async, EverySeedAppliesEachGradientOnce) {
  RunSeeds([](std::uint64_t seed) { return Job(seed, {}); }, 0, SeedCount());
}

TEST(Async, StalenessIsBoundedForEveryTrainer) {
  RunSeeds([](std::uint64_t seed) { return Job(seed, static_cast<int>(seed % 3)); }, 0, SeedCount());
}

TEST(Async, GradientsAreCorrectedForDelay) { RunSeeds(DelayJob, 0, SeedCount()); }

TEST(Async, ALoneTrainerEqualsSynchronousTraining) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ToyJob job = Job(0, {});
    job.trainers = 1;
    std::erase_if(job.params, [](const ToyParam& param) { return param.table; });
    ToyJob sync = job;
    sync.async = false;
    Simulation sim(job, kSteps, seed, FaultsOf(seed));
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    ASSERT_TRUE(sim.trainer(0).session().status().ok()) << sim.trainer(0).session().status().ToString();
    const std::vector<ToyValues> reference = ToyReference(sync, kSteps);
    for (std::size_t v = 0; v <= kSteps; ++v) {
      for (const ToyParam& param : job.params)
        EXPECT_TRUE(Same(sim.trainer(0).seen()[v].at(param.name), reference[v].at(param.name)))
            << param.name << " before step " << v;
    }
  }
}

TEST(Async, AStepMayLackAGradient) {
  Simulation sim(Job(0, 1), kSteps, 3, kRough);
  sim.trainer(1).SkipGradient(1, 2);
  sim.trainer(0).SkipGradient(0, 4);
  ASSERT_TRUE(sim.Run()) << sim.Waiting();
  for (int t = 0; t < 2; ++t)
    EXPECT_TRUE(sim.trainer(t).session().status().ok()) << sim.trainer(t).session().status().ToString();
}

TEST(Async, ADeadTrainerIsReportedToTheOthers) {
  Simulation sim(Job(0, {}), 1000, 1, {});
  sim.net().After(std::chrono::seconds(2), [&] { sim.trainer(0).session().Abort(); });
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(1).session().status().id(), "E-peer-lost");
}

}  // namespace
}  // namespace penstock::test
