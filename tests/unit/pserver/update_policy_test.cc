// Decisions that an update policy may make beyond those of sync training: each policy here is the smallest
// that uses one of them.
#include "executor/pserver/machine/update_policy.h"

#include <gtest/gtest.h>

#include "executor/pserver/machine/policies/sync_policy.h"
#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

using pserver::ChunkId;
using pserver::ChunkLedger;
using pserver::PullAnswer;
using pserver::Turn;

// Every gradient is a separate update; a pull gets the current version as soon as it can be sent.
class Eager : public pserver::UpdatePolicy {
 public:
  Turn Next(const ChunkLedger& ledger, ChunkId at) const override {
    if (ledger.chunk(at).merged() > 0) return {Turn::Kind::kRun};
    for (int t = 0; t < ledger.trainers(); ++t) {
      if (ledger.chunk(at).here(t)) return {Turn::Kind::kMerge, t};
    }
    return {Turn::Kind::kWait};
  }
  std::uint64_t RateRuns(const ChunkLedger&, ChunkId) const override { return 1; }  // once, at the start
  PullAnswer Pull(const ChunkLedger&, ChunkId, int, std::uint64_t, bool readable) const override {
    return readable ? PullAnswer::kNow : PullAnswer::kWait;
  }
  std::uint64_t WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const override {
    return ledger.chunk(at).taken(trainer) + ledger.config().window;
  }
  bool RateMayRun(const ChunkLedger&, std::uint64_t) const override { return true; }
  bool TellsWelcome(const ChunkLedger&, ChunkId, int) const override { return true; }
  bool MergesInTurn() const override { return false; }
  bool StepsAreWhole() const override { return true; }
  std::vector<int> Lacks(const ChunkLedger&, ChunkId) const override { return {}; }
  bool CountsTheCompleted() const override { return false; }
};

TEST(UpdatePolicy, APolicyMayUpdateForEachGradient) {
  Driver d(Config(2), std::make_unique<Eager>());
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  EXPECT_EQ(d.Push(1, 1), "pushed t1");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Pull(0, 7), "") << "its block runs, and there is no copy";
  EXPECT_EQ(d.Push(1, 0), "pushed t1") << "a repeat";
  EXPECT_EQ(d.Ran(), "credit t0; credit t1; pulled t0 v7; merge t1 c0 s1");
  EXPECT_EQ(d.machine.credit(0, 0, 0), 2u) << "a trainer is welcome as far as itself has come";
  EXPECT_EQ(d.machine.credit(0, 0, 1), 4u);
  EXPECT_EQ(d.Push(0, 0), "pushed t0");
  EXPECT_EQ(d.Merged(), "run c0 s1");
  EXPECT_EQ(d.Pull(0, 1), "pulled t0 v1") << "a copy was made for somebody";
  EXPECT_EQ(d.Ran(), "credit t0; credit t1; merge t0 c0 s0");
}

TEST(UpdatePolicy, APolicyMayComputeTheRateOnce) {
  Driver d(Config(1, true), std::make_unique<Eager>());
  d.Push(0, 0);
  EXPECT_EQ(d.Merged(), "lr s0");
  EXPECT_EQ(d.LrRan(), "run c0 s0");
  d.Ran();
  d.Push(0, 1);
  EXPECT_EQ(d.Merged(), "run c0 s1");
}

// A version is complete with one gradient fewer than trainers; the last gradient is dropped.
class OneBackup : public pserver::SyncPolicy {
 public:
  Turn Next(const ChunkLedger& ledger, ChunkId at) const override {
    const pserver::ChunkAccount& chunk = ledger.chunk(at);
    if (chunk.merged() == ledger.trainers() - 1) return {Turn::Kind::kRun};
    for (int t = 0; t < ledger.trainers(); ++t) {
      if (!chunk.here(t) || chunk.taken(t) > chunk.version()) continue;
      return {chunk.taken(t) < chunk.version() ? Turn::Kind::kDrop : Turn::Kind::kMerge, t};
    }
    return {Turn::Kind::kWait};
  }
};

TEST(UpdatePolicy, APolicyMaySkipTheSlowestGradient) {
  Driver d(Config(3), std::make_unique<OneBackup>());
  EXPECT_EQ(d.Push(2, 0), "pushed t2; merge t2 c0 s0");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Push(1, 0), "pushed t1") << "too late";
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.Push(1, 1), "pushed t1; merge t1 c0 s1") << "the late one is in no version";
  EXPECT_EQ(d.machine.version(0, 0), 1u);
}

// A pull of step k waits until no trainer is more than one step behind, and then gets the current version.
class OneStale : public Eager {
 public:
  PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int, std::uint64_t version,
                  bool readable) const override {
    for (int t = 0; t < ledger.trainers(); ++t) {
      const std::uint64_t clock = ledger.chunk(at).taken(t);
      if (!ledger.IsAbsent(t, clock) && clock + 1 < version) return PullAnswer::kWait;
    }
    return readable ? PullAnswer::kNow : PullAnswer::kWait;
  }
};

TEST(UpdatePolicy, APolicyMayDelayPullsForTheSlowestTrainer) {
  Driver d(Config(2), std::make_unique<OneStale>());
  for (std::uint64_t step = 0; step < 2; ++step) {
    EXPECT_EQ(d.Push(0, step), StrCat("pushed t0; merge t0 c0 s", step));
    d.Merged();
    d.Ran();
    EXPECT_EQ(d.Pull(0, step + 1), step == 0 ? "pulled t0 v1" : "") << "trainer 1 is at step 0";
  }
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  d.Merged();
  EXPECT_EQ(d.Ran(), "credit t0; credit t1; pulled t0 v2");
  EXPECT_EQ(d.Pull(0, 3), "");
  EXPECT_EQ(d.Complete(1), "completed t1; pulled t0 v3") << "nobody waits for who has left";
}

}  // namespace
}  // namespace penstock::test
