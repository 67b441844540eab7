// Sync training with backup trainers under any network faults: each version of a server is made from the
// gradients of some trainers that computed them from the previous version, and the others' steps are counted
// as late.
#include "tests/sim/references/backup.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

constexpr std::uint64_t kBackupSteps = 4;

ToyJob BackupJob(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 3 + static_cast<int>(seed % 4 == 3);
  job.backup_trainers = 1 + static_cast<int>(seed % 8 == 7);
  job.servers = {"ps0:1", "ps1:1"};
  job.lr_block = seed % 2 == 1;
  job.params = {{.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
                {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "momentum", .decay = true},
                {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"},
                {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"}};
  return job;
}

// Reconstructs a server's versions from the versions that trainers read and from its final values.
class History {
 public:
  History(Simulation& sim, int server) : sim_(sim), job_(sim.job()), server_(server) {
    for (const ToyParam& param : job_.params) {
      if (param.server != server) continue;
      const auto values = sim.server(server).scope.Find(param.name)->As<Tensor>().Span<float>();
      final_[param.name].assign(values.begin(), values.end());
    }
  }

  // Finds the version after the known ones; false if no gradients of trainers explain it.
  bool FindNext() {
    if (sets_.size() == kBackupSteps) return false;
    const ToyValues now = values();
    const auto most = static_cast<std::size_t>(job_.trainers - job_.backup_trainers);
    for (std::size_t size = most; size > 0; --size) {
      if (Extend({}, 0, size, now)) return true;
    }
    return false;
  }
  const ToyValues& final_values() const { return final_; }
  ToyValues values() const { return BackupReference(job_, server_, sets_); }
  std::uint64_t merged() const {
    return std::accumulate(sets_.begin(), sets_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const BackupSet& set) { return sum + set.size(); });
  }

 private:
  bool Saw(int trainer, std::uint64_t step, const ToyValues& values) const {
    const ToyValues& seen = sim_.trainer(trainer).seen()[step];
    return std::all_of(values.begin(), values.end(),
                       [&](const auto& param) { return seen.at(param.first) == param.second; });
  }
  bool IsVersion(const ToyValues& values) const {
    if (values == final_) return true;
    for (int t = 0; t < job_.trainers; ++t) {
      for (std::uint64_t step = 1; step <= kBackupSteps; ++step) {
        if (Saw(t, step, values)) return true;
      }
    }
    return false;
  }
  bool Extend(BackupSet set, int trainer, std::size_t size, const ToyValues& now) {
    if (set.size() == size) {
      sets_.push_back(set);
      if (IsVersion(values())) return true;
      sets_.pop_back();
      return false;
    }
    for (; trainer < job_.trainers; ++trainer) {
      if (!Saw(trainer, sets_.size(), now)) continue;
      BackupSet more = set;
      more.emplace_back(trainer, sets_.size());
      if (Extend(more, trainer + 1, size, now)) return true;
    }
    return false;
  }

  Simulation& sim_;
  const ToyJob& job_;
  const int server_;
  ToyValues final_;
  std::vector<BackupSet> sets_;
};

// "pserver ps0:1 dropped the gradients of steps that came late: 1 of trainer 0, 2 of trainer 2" is 3.
std::uint64_t LateSteps(const std::vector<std::string>& reports) {
  std::uint64_t steps = 0;
  for (const std::string& line : reports) {
    const std::size_t at = line.find("came late: ");
    if (at == std::string::npos) continue;
    for (const std::string& part : Split(line.substr(at + 11), ',')) steps += std::stoull(part);
  }
  return steps;
}

// The number of late steps.
std::uint64_t RunBackupSeed(std::uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed));
  Simulation sim(BackupJob(seed), kBackupSteps, seed, FaultsOf(seed));
  std::uint64_t late = 0;
  if (!sim.Run()) {
    ADD_FAILURE() << "the job did not end: " << sim.Waiting();
    return late;
  }
  for (int t = 0; t < sim.job().trainers; ++t) {
    const Status& status = sim.trainer(t).session().status();
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (!status.ok()) return late;
  }
  for (int s = 0; s < 2; ++s) {
    History history(sim, s);
    while (history.FindNext()) {
    }
    EXPECT_EQ(history.values(), history.final_values()) << "server " << s;
    const std::uint64_t dropped = LateSteps(sim.server(s).reports);
    EXPECT_EQ(history.merged() + dropped, kBackupSteps * static_cast<std::uint64_t>(sim.job().trainers));
    late += dropped;
  }
  return late;
}

TEST(BackupTrainers, EachVersionIsAMeanOfTrainersForEverySeed) {
  std::uint64_t late = 0;
  for (std::uint64_t seed = 0; seed < SeedCount() && !HasFailure(); ++seed) late += RunBackupSeed(seed);
  EXPECT_GT(late, 4 * SeedCount()) << "trainers that are late are what this is about";
}

TEST(BackupTrainers, RequiresMergingByMean) {
  ToyJob job = BackupJob(0);
  job.params.push_back({.name = "table", .shape = {9, 2}, .server = 1, .table = true});
  SimBlockRunner runner;
  Scope scope;
  job.Start(1, scope);
  const Program program = job.Pserver(1);
  const auto made =
      pserver::Pserver::Make(program, *program.main().ops().back().op, scope, SimOps(), runner, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().id(), "E-server-backup");
  EXPECT_EQ(made.status().message(),
            "the update of table on pserver ps1:1 merges gradients of rows, which backup_trainers does not "
            "support; "
            "transpile without it");
}

}  // namespace
}  // namespace penstock::test
