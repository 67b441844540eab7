// Checkpoints of keys on the simulated network: a job whose processes are all killed continues from a cut at
// a round of each key, and ends with the values of an undisturbed one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "executor/checkpoint/folder.h"
#include "tests/sim/key_job.h"
#include "tests/sim/restarted_job.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

constexpr int kSteps = 9;
constexpr float kMomentum = 0.5f;

// `keyed_update` by sgd with momentum, for rows too; each rate is that of the schedule.
class KeyBlockRunner : public BlockRunner {
 public:
  Status RunBlock(const Program& program, int block, Scope& scope) override {
    for (const OpEntry& entry : program.block(block).ops()) {
      const Op& op = *entry.op;
      if (op.type() == "fill_constant") {
        const auto* const dims = std::get_if<std::vector<std::int64_t>>(op.FindAttr("shape"));
        Tensor& state = scope.FindOrCreate(op.Output("Out")[0])->As<Tensor>();
        state = Tensor(DType::kFp32, Shape(std::span<const Dim>(*dims)));
        std::ranges::fill(state.Span<float>(), 0.0f);
        continue;
      }
      const auto at = [&](const char* slot) -> Variable& { return *scope.Find(op.Input(slot)[0]); };
      Tensor& param = at("Param").As<Tensor>();
      Tensor none = Filled(param.shape(), 0);  // without momentum there is no state
      Tensor& state = op.Input("State1").empty() ? none : at("State1").As<Tensor>();
      Tensor gradient = Filled(param.shape(), 0);
      if (const auto* const rows = std::as_const(at("Grad")).If<SelectedRows>()) {
        const auto width = static_cast<std::size_t>(param.shape().RowWidth());
        for (std::size_t i = 0; i < rows->rows.size(); ++i)
          std::copy_n(rows->value.Span<float>().data() + i * width, width,
                      gradient.Data<float>() + static_cast<std::size_t>(rows->rows[i]) * width);
      } else {
        gradient = at("Grad").As<Tensor>();
      }
      const auto rate = static_cast<float>(*at("LearningRate").As<Tensor>().Data<double>());
      for (std::int64_t i = 0; i < param.count(); ++i) {
        float& velocity = state.Data<float>()[i];
        velocity = kMomentum * velocity + gradient.Data<float>()[i];
        param.Data<float>()[i] -= rate * velocity;
      }
    }
    return OkStatus();
  }
  Result<std::unique_ptr<PreparedBlock>> PrepareBlock(const Program& program, int block,
                                                      std::vector<std::string>) override {
    class Prepared : public PreparedBlock {
     public:
      Prepared(KeyBlockRunner& runner, const Program& program, int block)
          : runner_(runner), program_(program), block_(block) {}
      Status Run(Scope& scope) override { return runner_.RunBlock(program_, block_, scope); }

     private:
      KeyBlockRunner& runner_;
      const Program program_;
      const int block_;
    };
    return std::unique_ptr<PreparedBlock>(std::make_unique<Prepared>(*this, program, block));
  }
};

// A key of the script: when it is declared, and how often it is pushed.
struct ScriptKey {
  KeyType type;
  int from = 0;   // the step before which it is declared
  int every = 1;  // it is pushed in each step that this divides, from there on

  bool IsPushedIn(int step) const { return step >= from && (step - from) % every == 0; }
  int PushesBefore(int step) const { return step <= from ? 0 : (step - from + every - 1) / every; }
};

const std::vector<ScriptKey>& ScriptKeys() {
  static const std::vector<ScriptKey> keys = {{.type = {.name = "first", .shape = {3}}},
                                              {.type = {.name = "split", .shape = {4, 7}}},
                                              {.type = {.name = "rows", .shape = {6, 2}, .rows = true}},
                                              {.type = {.name = "rare", .shape = {2}}, .every = 3},
                                              {.type = {.name = "late", .shape = {5}}, .from = 4}};
  return keys;
}

float PushedIn(int key, int worker, int step) {
  return static_cast<float>(1 + key + 4 * worker + 16 * (step % 5));
}
float Initial(int key) { return static_cast<float>(-1 - key); }

// The rate of the update that follows so many of the key with most.
float RateOf(int most, bool has_schedule) {
  if (!has_schedule) return 0.5f;
  return most > 8 ? 0.125f : most > 4 ? 0.25f : 0.5f;
}

// The key's value after so many rounds of an undisturbed job; of rows, that of one that all workers push.
float Expected(int key, int workers, int rounds, bool has_optimizer, bool has_schedule) {
  const ScriptKey& of = ScriptKeys()[static_cast<std::size_t>(key)];
  float value = Initial(key), velocity = 0;
  int step = of.from;
  for (int round = 0; round < rounds; ++round, step += of.every) {
    float sum = 0;
    for (int w = 0; w < workers; ++w) sum += PushedIn(key, w, step);
    velocity = kMomentum * velocity + sum;
    value = has_optimizer ? value - RateOf(step + 1, has_schedule) * velocity : sum;
  }
  return value;
}

struct KeyJob {
  explicit KeyJob(std::uint64_t seed)
      : seed(seed),
        workers(1 + static_cast<int>(seed % 3)),
        servers(1 + static_cast<int>(seed / 3 % 2)),
        every(2 + seed % 3),
        has_optimizer(seed % 4 != 3),
        has_schedule(seed % 2 == 0) {}

  const std::uint64_t seed;
  const int workers, servers;
  const std::uint64_t every;
  const bool has_optimizer, has_schedule;

  std::string Optimizer() const {
    return StrCat("sgd {learning_rate=0.5, momentum=0.5, lazy_update=0}",
                  has_schedule ? " schedule factor {base_lr=0.5, factor=0.5, step=4}" : "");
  }
};

// A worker of one start of the job. It begins where the keys say.
class Script {
 public:
  Script(const KeyJob& job, int rank, std::uint64_t seed, bool resumed)
      : job_(job), rank_(rank), resumed_(resumed), random_(seed * 64 + static_cast<std::uint64_t>(rank)) {}

  Status operator()(KeyClient& keys) {
    handles_.assign(ScriptKeys().size(), -1);
    pushed_.assign(ScriptKeys().size(), 0);
    const bool first = random_() % 2 == 0;  // set_optimizer may come before the keys, and behind them
    if (first) PENSTOCK_RETURN_IF_ERROR(SetOptimizer(keys));
    PENSTOCK_RETURN_IF_ERROR(Declare(keys, 0));
    if (!first) PENSTOCK_RETURN_IF_ERROR(SetOptimizer(keys));
    begin_ = pushed_[0];
    for (int step = pushed_[0]; step < kSteps; ++step) {
      PENSTOCK_RETURN_IF_ERROR(Declare(keys, step));
      std::vector<int> order;
      for (std::size_t key = 0; key < handles_.size(); ++key) order.push_back(static_cast<int>(key));
      // With a schedule, the key that counts most comes first, so the rate does not depend on the order.
      std::ranges::shuffle(order.begin() + (job_.has_schedule ? 1 : 0), order.end(), random_);
      for (const int key : order) {
        const ScriptKey& of = ScriptKeys()[static_cast<std::size_t>(key)];
        if (!of.IsPushedIn(step) || pushed_[Of(key)] > of.PushesBefore(step)) continue;
        PENSTOCK_RETURN_IF_ERROR(Push(keys, key, step));
      }
      if (random_() % 2 == 0) PENSTOCK_RETURN_IF_ERROR(Check(keys));
    }
    return Check(keys);
  }
  int begin() const { return begin_; }

 private:
  static std::size_t Of(int key) { return static_cast<std::size_t>(key); }

  Status SetOptimizer(KeyClient& keys) {
    return job_.has_optimizer ? keys.SetOptimizer(job_.Optimizer(), false) : OkStatus();
  }
  // Of a key that a checkpoint has, the value that worker 0 gives is not used.
  Status Declare(KeyClient& keys, int step) {
    bool any = false;
    for (std::size_t key = 0; key < handles_.size(); ++key) {
      const ScriptKey& of = ScriptKeys()[key];
      if (handles_[key] >= 0 || of.from > step) continue;
      const bool is_there = resumed_ && of.from == 0;
      const float value = is_there ? 1000 : Initial(static_cast<int>(key));
      PENSTOCK_ASSIGN_OR_RETURN(handles_[key], keys.Declare(of.type, Filled(of.type.shape, value)));
      any = true;
    }
    if (!any) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(keys.Barrier());
    for (std::size_t key = 0; key < handles_.size(); ++key) {
      if (handles_[key] < 0) continue;
      PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t rounds, keys.Rounds(handles_[key]));
      pushed_[key] = static_cast<int>(rounds);
    }
    return OkStatus();
  }
  Status Push(KeyClient& keys, int key, int step) {
    const KeyType& type = ScriptKeys()[Of(key)].type;
    const float value = PushedIn(key, rank_, step);
    ++pushed_[Of(key)];
    if (!type.rows) return keys.Push(handles_[Of(key)], Filled(type.shape, value)).status();
    const std::vector<std::int64_t> rows = {4, 0};
    return keys.PushRows(handles_[Of(key)], rows, Filled(type.shape.WithRows(2), value)).status();
  }
  Status Check(KeyClient& keys) {
    for (std::size_t key = 0; key < handles_.size(); ++key) {
      if (handles_[key] < 0) continue;
      const KeyType& type = ScriptKeys()[key].type;
      Tensor out = type.rows ? Filled({1, 2}, 99) : Filled(type.shape, 99);
      const std::vector<std::int64_t> rows = {4};
      PENSTOCK_ASSIGN_OR_RETURN(const KeyClient::Ticket ticket, type.rows
                                                                    ? keys.PullRows(handles_[key], rows, out)
                                                                    : keys.Pull(handles_[key], out));
      PENSTOCK_RETURN_IF_ERROR(keys.WaitFor(ticket));
      const float expected =
          Expected(static_cast<int>(key), job_.workers, pushed_[key], job_.has_optimizer, job_.has_schedule);
      EXPECT_TRUE(std::ranges::all_of(out.Span<float>(), [&](float value) { return value == expected; }))
          << type.name << " of worker " << rank_ << " after " << pushed_[key] << " pushes, begun at "
          << begin_ << ", is " << out.Span<float>()[0] << " instead of " << expected;
    }
    return OkStatus();
  }

  const KeyJob& job_;
  const int rank_;
  const bool resumed_;
  std::mt19937_64 random_;
  std::vector<int> handles_, pushed_;
  int begin_ = 0;
};

// One start of the job. Returns at which step it began; nullopt: it was killed before a worker began.
class JobStart {
 public:
  JobStart(const KeyJob& job, FaultyDisk& disk, int number, std::optional<std::uint64_t> resume)
      : job_(job),
        sim_(
            job.workers, job.servers, job.seed * 16 + static_cast<std::uint64_t>(number), FaultsOf(job.seed),
            job.seed % 2 == 0 ? pserver::TrainerLoss::kAbort : pserver::TrainerLoss::kWait,
            [&](pserver::PserverOptions& options) {
              options.disk = &disk;
              options.checkpoints = {.folder = "c", .every = job.every, .keep = 2, .resume = resume};
              options.checkpoints.run = StrCat("run", number);
              for (int s = 0; s < job.servers; ++s)
                options.checkpoints.servers.push_back(KeySimulation::AddressOf(s));
            },
            &runner_) {
    for (int w = 0; w < job.workers; ++w) {
      scripts_.push_back(std::make_shared<Script>(job, w, job.seed * 16 + static_cast<std::uint64_t>(number),
                                                  resume.value_or(0) > 0));
      sim_.Add(w, [script = scripts_.back()](KeyClient& keys) { return (*script)(keys); });
    }
  }
  KeySimulation& sim() { return sim_; }
  int begin() const { return scripts_.front()->begin(); }

 private:
  const KeyJob& job_;
  KeyBlockRunner runner_;
  KeySimulation sim_;
  std::vector<std::shared_ptr<Script>> scripts_;
};

// Starts the job again and again, and kills all its processes, until the last start; returns the name of the
// checkpoint with which that begins.
std::uint64_t KillStarts(const KeyJob& job, FaultyDisk& disk) {
  std::optional<std::uint64_t> resume;
  for (int number = 0; number < 3; ++number) {
    JobStart start(job, disk, number, resume);
    start.sim().RunUntilKilled(start.sim().net().Delay() * (20 + 30 * number));
    disk.CrashAt(disk.operations());
    disk.Restart();
    disk.CrashAt(1 << 30);
    const auto newest = checkpoint::NewestWhole(disk, "c");
    resume = newest.ok() ? newest->value_or(0) : 0;
  }
  return *resume;
}

void ExpectServersEnded(const KeyJob& job, JobStart& start) {
  for (int s = 0; s < job.servers; ++s)
    EXPECT_TRUE(start.sim().server(s).pserver->Ended()->ok())
        << start.sim().server(s).pserver->Ended()->ToString();
}

TEST(CheckpointsOfKeys, AKilledJobContinuesWithTheRoundsOfItsCut) {
  int continued = 0;
  ForEachSeed([&](std::uint64_t seed) {
    if (seed >= SeedCount() / 2) return;
    const KeyJob job(seed);
    FaultyDisk disk(seed);
    const std::uint64_t resume = KillStarts(job, disk);
    JobStart last(job, disk, 3, resume);
    ASSERT_TRUE(last.sim().Run()) << last.sim().Waiting();
    ExpectServersEnded(job, last);
    EXPECT_EQ(static_cast<std::uint64_t>(last.begin()), resume);
    continued += resume > 0;
    // The last one of the job is there, too.
    const std::uint64_t end = kSteps / job.every * job.every;
    EXPECT_EQ(checkpoint::NewestWhole(disk, "c").value().value_or(0), end);
  });
  if (std::getenv("PENSTOCK_SIM_SEED") == nullptr) {
    EXPECT_GT(continued, 20);
  }
}

}  // namespace
}  // namespace penstock::test
