// Keys of a key-value store on the simulated network: whatever is lost, repeated, reordered or broken, a
// worker's pull has the round of its own pushes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "tests/sim/key_job.h"
#include "tests/sim/seeds.h"

namespace penstock::test {
namespace {

constexpr int kRounds = 4;

// What worker `w` pushes of a key in a round; sums of such numbers are exact.
float Pushed(int key, int w, int round) { return static_cast<float>(1 + key + 10 * w + 100 * round); }

const std::vector<KeyType>& KeyTypes() {
  static const std::vector<KeyType> types = {{.name = "small", .shape = {3}},
                                             {.name = "split", .shape = {4, 7}},
                                             {.name = "table", .shape = {6, 2}, .rows = true},
                                             {.name = "tiny", .shape = {1}},
                                             {.name = "long", .shape = {11}}};
  return types;
}

float Sum(int key, int workers, int round) {
  float sum = 0;
  for (int w = 0; w < workers; ++w) sum += Pushed(key, w, round);
  return sum;
}

// A worker that pushes and pulls its keys in an order of its own, waits after some rounds for what it has
// pulled, and checks it.
class RandomScript {
 public:
  RandomScript(int rank, int workers, std::uint64_t seed)
      : rank_(rank), workers_(workers), random_(seed * 64 + static_cast<std::uint64_t>(rank)) {}

  Status operator()(KeyClient& keys) {
    const auto& types = KeyTypes();
    std::vector<int> order(types.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::ranges::shuffle(order, random_);
    handles_.resize(types.size());
    for (const int key : order) {
      const KeyType& type = types[static_cast<std::size_t>(key)];
      PENSTOCK_ASSIGN_OR_RETURN(
          handles_[static_cast<std::size_t>(key)],
          keys.Declare(type, Filled(type.shape, static_cast<float>(rank_ == 0 ? -1 : 77))));
    }
    PENSTOCK_RETURN_IF_ERROR(keys.Barrier());
    for (const int key : order) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t rounds, keys.Rounds(Handle(key)));
      pushed_.resize(types.size());
      pushed_[static_cast<std::size_t>(key)] = static_cast<int>(rounds);
    }
    // Nobody waits in the middle of a round, or workers with different orders might wait for each other.
    for (int round = 0; round < kRounds; ++round) {
      std::ranges::shuffle(order, random_);
      if (random_() % 2 == 0) PENSTOCK_RETURN_IF_ERROR(PushAndPullTogether(keys, order, round));
      for (const int key : order) {
        if (pushed_[static_cast<std::size_t>(key)] > round) continue;  // by the last process
        if (random_() % 3 == 0) PENSTOCK_RETURN_IF_ERROR(Pull(keys, key));
        PENSTOCK_RETURN_IF_ERROR(Push(keys, key));
        if (random_() % 2 == 0) PENSTOCK_RETURN_IF_ERROR(Pull(keys, key));
      }
      if (random_() % 2 == 0) PENSTOCK_RETURN_IF_ERROR(Check(keys));
    }
    for (const int key : order) PENSTOCK_RETURN_IF_ERROR(Pull(keys, key));
    return Check(keys);
  }
  int pulls() const { return pulls_; }

 private:
  struct Pulled {
    KeyClient::Ticket ticket;
    int key = 0, round = 0;
    Tensor out;
  };
  int Handle(int key) const { return handles_[static_cast<std::size_t>(key)]; }

  // The dense keys that the round lacks, as a list.
  Status PushAndPullTogether(KeyClient& keys, const std::vector<int>& order, int round) {
    std::vector<KeyClient::Given> values, outs;
    std::vector<Pulled> pulled;
    for (const int key : order) {
      const KeyType& type = KeyTypes()[static_cast<std::size_t>(key)];
      int& pushed = pushed_[static_cast<std::size_t>(key)];
      if (type.rows || pushed > round) continue;
      values.push_back({Handle(key), Filled(type.shape, Pushed(key, rank_, pushed++))});
      outs.push_back({Handle(key), Filled(type.shape, 99)});
      pulled.push_back({.ticket = {}, .key = key, .round = pushed, .out = outs.back().value});
    }
    if (values.empty()) return OkStatus();
    const int priority = static_cast<int>(random_() % 3);
    PENSTOCK_RETURN_IF_ERROR(keys.PushAll(values, priority).status());
    PENSTOCK_ASSIGN_OR_RETURN(const KeyClient::Ticket ticket, keys.PullAll(outs));
    for (Pulled& each : pulled) {
      each.ticket = ticket;
      pulled_.push_back(std::move(each));
    }
    return OkStatus();
  }
  Status Push(KeyClient& keys, int key) {
    int& round = pushed_[static_cast<std::size_t>(key)];
    const KeyType& type = KeyTypes()[static_cast<std::size_t>(key)];
    const float value = Pushed(key, rank_, round++);
    if (!type.rows) return keys.Push(Handle(key), Filled(type.shape, value)).status();
    // Row 5 is pushed by worker 0 alone, row 1 by nobody, row 0 in two portions.
    std::vector<std::int64_t> rows = {0, 4, 2, 3, 0};
    if (rank_ == 0) rows.push_back(5);
    Tensor values = Filled(type.shape.WithRows(static_cast<Dim>(rows.size())), value);
    for (int i : {0, 1, 8, 9}) values.Span<float>()[static_cast<std::size_t>(i)] = value / 2;
    return keys.PushRows(Handle(key), rows, values).status();
  }
  Status Pull(KeyClient& keys, int key) {
    const KeyType& type = KeyTypes()[static_cast<std::size_t>(key)];
    Pulled pulled{.ticket = {}, .key = key, .round = pushed_[static_cast<std::size_t>(key)]};
    if (type.rows) {
      const std::vector<std::int64_t> rows = {5, 0, 1, 0};
      pulled.out = Filled({4, 2}, 99);
      PENSTOCK_ASSIGN_OR_RETURN(pulled.ticket, keys.PullRows(Handle(key), rows, pulled.out));
    } else {
      pulled.out = Filled(type.shape, 99);
      PENSTOCK_ASSIGN_OR_RETURN(pulled.ticket, keys.Pull(Handle(key), pulled.out));
    }
    pulled_.push_back(std::move(pulled));
    return OkStatus();
  }
  Status Check(KeyClient& keys) {
    for (const Pulled& pulled : pulled_) {
      PENSTOCK_RETURN_IF_ERROR(keys.WaitFor(pulled.ticket));
      ++pulls_;
      const int key = pulled.key, last = pulled.round - 1;
      const float all = pulled.round == 0 ? -1 : Sum(key, workers_, last);
      const float of_0 = pulled.round == 0 ? -1 : Pushed(key, 0, last);
      const float of_nobody = pulled.round == 0 ? -1 : 0;
      const auto values = pulled.out.Span<float>();
      std::vector<float> expected(values.size(), all);
      if (KeyTypes()[static_cast<std::size_t>(key)].rows)
        expected = {of_0, of_0, all, all, of_nobody, of_nobody, all, all};
      EXPECT_TRUE(std::ranges::equal(values, expected))
          << KeyTypes()[static_cast<std::size_t>(key)].name << " of worker " << rank_ << " in round "
          << pulled.round << " is " << values[0] << ", " << values.back() << " instead of " << expected[0];
    }
    pulled_.clear();
    return OkStatus();
  }

  const int rank_, workers_;
  std::mt19937_64 random_;
  std::vector<int> handles_, pushed_;
  std::vector<Pulled> pulled_;
  int pulls_ = 0;
};

TEST(KeysOnANetwork, EveryPullHasTheRoundOfItsWorkersPushes) {
  const std::uint64_t seeds = SeedCount() / 40;
  for (std::uint64_t seed = 0; seed < seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const int workers = 1 + static_cast<int>(seed % 3), servers = 1 + static_cast<int>(seed / 3 % 2);
    KeySimulation sim(workers, servers, seed, FaultsOf(seed));
    std::vector<std::shared_ptr<RandomScript>> scripts;
    for (int w = 0; w < workers; ++w) {
      scripts.push_back(std::make_shared<RandomScript>(w, workers, seed));
      sim.Add(w, [script = scripts.back()](KeyClient& keys) { return (*script)(keys); });
    }
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    for (int s = 0; s < servers; ++s)
      EXPECT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
    for (const auto& script : scripts) EXPECT_GE(script->pulls(), 3);
  }
}

// Each worker pushes 0.5 in each round: with a threshold of 1, codes for 0 in one round and 1 in the next.
TEST(KeysOnANetwork, CompressedPushesAreSummedAsTheirCodes) {
  for (std::uint64_t seed = 0; seed < 12 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const int workers = 1 + static_cast<int>(seed % 3);
    KeySimulation sim(workers, 1 + static_cast<int>(seed / 3 % 2), seed, FaultsOf(seed));
    for (int w = 0; w < workers; ++w) {
      sim.Add(w, [workers](KeyClient& keys) -> Status {
        std::vector<KeyClient::Given> values, outs;
        for (const KeyType& type : KeyTypes()) {
          if (type.rows) continue;
          PENSTOCK_ASSIGN_OR_RETURN(const int key, keys.Declare(type, Filled(type.shape, 5)));
          values.push_back({key, Filled(type.shape, 0.5f)});
          outs.push_back({key, Filled(type.shape, 99)});
        }
        PENSTOCK_RETURN_IF_ERROR(keys.SetCompression(1.0f));
        for (int round = 1; round <= 4; ++round) {
          PENSTOCK_RETURN_IF_ERROR(keys.PushAll(values).status());
          PENSTOCK_ASSIGN_OR_RETURN(const KeyClient::Ticket ticket, keys.PullAll(outs));
          PENSTOCK_RETURN_IF_ERROR(keys.WaitFor(ticket));
          const float expected = round % 2 == 0 ? static_cast<float>(workers) : 0.0f;
          for (const KeyClient::Given& out : outs) {
            const auto got = out.value.Span<float>();
            EXPECT_TRUE(std::ranges::all_of(got, [&](float value) { return value == expected; }))
                << "round " << round << ": " << got[0];
          }
        }
        return OkStatus();
      });
    }
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    for (int s = 0; s < 1 + static_cast<int>(seed / 3 % 2); ++s)
      EXPECT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
  }
}

TEST(KeysOnANetwork, ABarrierIsPassedWhenAllHaveCome) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    KeySimulation sim(3, 2, seed, FaultsOf(seed));
    std::vector<int> entered(3, 0);
    for (int w = 0; w < 3; ++w) {
      sim.Add(w, [&entered, w](KeyClient& keys) {
        for (int barrier = 1; barrier <= 4; ++barrier) {
          entered[static_cast<std::size_t>(w)] = barrier;
          PENSTOCK_RETURN_IF_ERROR(keys.Barrier());
          EXPECT_GE(std::ranges::min(entered), barrier);
        }
        return OkStatus();
      });
    }
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    EXPECT_EQ(entered, std::vector<int>(3, 4));
  }
}

// The rows of a table that all workers push in each round, and one that each pushes alone. A row is the sum
// of what was pushed of it.
class TableScript {
 public:
  // `waits`: for each push, before the next one.
  TableScript(int rank, int workers, std::uint64_t seed, bool waits = false)
      : rank_(rank),
        workers_(workers),
        waits_(waits),
        random_(seed * 64 + static_cast<std::uint64_t>(rank)) {}

  Status operator()(KeyClient& keys) {
    PENSTOCK_ASSIGN_OR_RETURN(
        table_, keys.DeclareTable("t", DType::kFp32, 1, "constant 0 0 seed 0\n\ntest {rescale_grad=1}"));
    PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t begin, keys.Rounds(table_));  // of the last process
    for (int round = static_cast<int>(begin); round < kRounds; ++round) {
      if (random_() % 3 == 0) PENSTOCK_RETURN_IF_ERROR(Look(keys, round));
      const std::vector<std::int64_t> ids = {kOfAll, rank_, kOfAll + 1, kOfAll};
      const float value = Pushed(0, rank_, round);
      Tensor values = Filled({4, 1}, value);
      values.Span<float>()[0] = values.Span<float>()[3] = value / 2;
      PENSTOCK_ASSIGN_OR_RETURN(const KeyClient::Ticket pushed, keys.PushRows(table_, ids, values));
      if (waits_) PENSTOCK_RETURN_IF_ERROR(keys.WaitFor(pushed));
      if (random_() % 2 == 0) PENSTOCK_RETURN_IF_ERROR(Look(keys, round + 1));
    }
    return Look(keys, kRounds);
  }
  int lookups() const { return lookups_; }

 private:
  static constexpr std::int64_t kOfAll = std::int64_t{1} << 40;

  Status Look(KeyClient& keys, int rounds) {
    const std::vector<std::int64_t> ids = {rank_, kOfAll + 1, -1, kOfAll};
    Tensor out = Filled({4, 1}, 99);
    PENSTOCK_ASSIGN_OR_RETURN(const KeyClient::Ticket ticket, keys.PullRows(table_, ids, out));
    PENSTOCK_RETURN_IF_ERROR(keys.WaitFor(ticket));
    ++lookups_;
    float own = 0, all = 0;
    for (int round = 0; round < rounds; ++round) {
      own += Pushed(0, rank_, round);
      all += Sum(0, workers_, round);
    }
    EXPECT_TRUE(std::ranges::equal(out.Span<float>(), std::vector<float>{own, all, 0, all}))
        << "worker " << rank_ << " after " << rounds << " rounds: " << out.Span<float>()[0] << " and "
        << out.Span<float>()[3] << " instead of " << own << " and " << all;
    return OkStatus();
  }

  const int rank_, workers_;
  const bool waits_;
  std::mt19937_64 random_;
  int table_ = 0, lookups_ = 0;
};

TEST(KeysOnANetwork, ALookupOfATableHasTheRoundsOfItsWorkersPushes) {
  const std::uint64_t seeds = SeedCount() / 40;
  for (std::uint64_t seed = 0; seed < seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const int workers = 1 + static_cast<int>(seed % 3), servers = 1 + static_cast<int>(seed / 3 % 2);
    KeySimulation sim(workers, servers, seed, FaultsOf(seed));
    std::vector<std::shared_ptr<TableScript>> scripts;
    for (int w = 0; w < workers; ++w) {
      scripts.push_back(std::make_shared<TableScript>(w, workers, seed));
      sim.Add(w, [script = scripts.back()](KeyClient& keys) { return (*script)(keys); });
    }
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    for (int s = 0; s < servers; ++s)
      EXPECT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
    for (const auto& script : scripts) EXPECT_GE(script->lookups(), 1);
  }
}

// The new process is told how many of the pushes of the last one are in, and goes on from there.
TEST(KeysOnANetwork, ANewProcessOfAWorkerGoesOnWhereItsPushesAreIn) {
  int restarted_late = 0;
  for (std::uint64_t seed = 0; seed < 20 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    KeySimulation sim(2, 1 + static_cast<int>(seed % 2), seed, FaultsOf(seed), pserver::TrainerLoss::kWait);
    const auto script = std::make_shared<RandomScript>(0, 2, seed);
    sim.Add(0, [script](KeyClient& keys) { return (*script)(keys); });
    const auto first = std::make_shared<RandomScript>(1, 2, seed);
    const auto second = std::make_shared<RandomScript>(1, 2, seed + 1000);
    KeyWorker& dies = sim.Add(1, [first](KeyClient& keys) { return (*first)(keys); });
    sim.net().After(sim.net().Delay() * 60, [&, second] {
      if (dies.ended()) return;
      dies.Die();
      sim.net().After(sim.net().Delay() * 20, [&, second] {
        sim.Add(
            1, [second](KeyClient& keys) { return (*second)(keys); }, 2);
        ++restarted_late;
      });
    });
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    EXPECT_GE(script->pulls(), 3);
  }
  EXPECT_GT(restarted_late, 3);
}

// It may begin one push behind, and then looks rows up as they were before the last update. The shards of a
// process that does not wait for its pushes may differ by more.
TEST(KeysOnANetwork, ANewProcessOfAWorkerGoesOnWithATable) {
  int restarted = 0;
  for (std::uint64_t seed = 0; seed < 20 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    KeySimulation sim(2, 1 + static_cast<int>(seed % 2), seed, FaultsOf(seed), pserver::TrainerLoss::kWait);
    const auto stays = std::make_shared<TableScript>(0, 2, seed);
    sim.Add(0, [stays](KeyClient& keys) { return (*stays)(keys); });
    const auto first = std::make_shared<TableScript>(1, 2, seed, true);
    const auto second = std::make_shared<TableScript>(1, 2, seed + 1000);
    KeyWorker& dies = sim.Add(1, [first](KeyClient& keys) { return (*first)(keys); });
    sim.net().After(sim.net().Delay() * 30, [&, second] {
      if (dies.ended()) return;
      dies.Die();
      sim.net().After(sim.net().Delay() * 20, [&, second] {
        sim.Add(
            1, [second](KeyClient& keys) { return (*second)(keys); }, 2);
        ++restarted;
      });
    });
    ASSERT_TRUE(sim.Run()) << sim.Waiting();
    EXPECT_GE(stays->lookups(), 1);
  }
  EXPECT_GT(restarted, 3);
}

}  // namespace
}  // namespace penstock::test
