// Keys of a key-value store: rounds by worker, pulls of a round, and turns.
#include "executor/pserver/machine/policies/key_policy.h"

#include <gtest/gtest.h>

#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

// A job of keys, with one key of a chunk of 8 bytes.
struct KeyDriver : Driver {
  explicit KeyDriver(int workers, bool turns = false,
                     pserver::TrainerLoss loss = pserver::TrainerLoss::kAbort)
      : Driver(ConfigOf(workers, loss), std::make_unique<pserver::KeyPolicy>()) {
    pserver::MachineConfig::Param key{.name = "k", .bytes_of_chunks = {8}};
    key.is_key = true;
    key.turns = turns;
    EXPECT_EQ(machine.AddParam(key, 0), 0);
  }
  static pserver::MachineConfig ConfigOf(int workers, pserver::TrainerLoss loss) {
    pserver::MachineConfig config{.trainers = workers, .window = 2, .part_bytes = 8, .params = {}};
    config.trainer_loss = loss;
    return config;
  }
  // The value of worker 0 is there.
  void Begin() {
    EXPECT_EQ(PushInitial(0), "pushed t0; initial t0 c0 s0");
    EXPECT_EQ(Do([&](pserver::Actions& out) { machine.MergeDone(0, 0, out); }), "");
  }
  std::string Merged() {
    return Do([&](pserver::Actions& out) { machine.MergeDone(0, 0, out); });
  }
  std::string Ran() {
    return Do([&](pserver::Actions& out) { machine.BlockDone(0, 0, OkStatus(), out); });
  }
  std::string Pull(int worker, std::uint64_t version) {
    return Do([&](pserver::Actions& out) { machine.Pull(worker, 0, 0, version, out); });
  }
  std::string Complete(int worker) {
    return Do([&](pserver::Actions& out) { machine.Complete(worker, out); });
  }
};

TEST(KeyPolicy, PullsAndPushesWaitForTheValueOfWorker0) {
  KeyDriver d(2);
  EXPECT_EQ(d.Pull(1, 0), "");
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.PushInitial(1), "pushed t1");  // not the one that counts
  EXPECT_EQ(d.PushInitial(0), "pushed t0; initial t0 c0 s0");
  EXPECT_EQ(d.Merged(), "pulled t1 v0");
}

TEST(KeyPolicy, ARoundIsCountedByWorkerNotByPush) {
  KeyDriver d(2);
  d.Begin();
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.Push(0, 1), "pushed t0");  // it waits for the second round
  EXPECT_EQ(d.Push(0, 1), "pushed t0");  // a repeat
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "credit t0; merge t0 c0 s1");
}

TEST(KeyPolicy, AWorkersPullGetsTheRoundOfItsOwnPushes) {
  KeyDriver d(2);
  d.Begin();
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.Pull(0, 1), "");              // its round is not whole
  EXPECT_EQ(d.Pull(1, 0), "pulled t1 v0");  // it has not pushed
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "pulled t0 v1");
  EXPECT_EQ(d.Pull(1, 0), "newest t1 v0");  // a retry
}

TEST(KeyPolicy, AWorkerThatHasCompletedBringsZeros) {
  KeyDriver d(2);
  d.Begin();
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.Complete(0), "completed t0; merge t0 c0 s0 zeros");
  EXPECT_EQ(d.Merged(), "merge t1 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "");  // no round of nobody begins
  EXPECT_EQ(d.Complete(1), "completed t1; end ok");
}

TEST(KeyPolicy, TheOthersGoOnWithoutAWorkerThatIsLost) {
  KeyDriver d(2, false, pserver::TrainerLoss::kShrink);
  d.Begin();
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "");
  EXPECT_EQ(d.machine.Lacks(0, 0), std::vector<int>{1});
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.Lose(1, out); }), "merge t1 c0 s0 zeros");
  EXPECT_EQ(d.Merged(), "run c0 s0");
}

TEST(KeyPolicy, ANewProcessGoesOnWhereTheServerHasItsPushes) {
  KeyDriver d(2, false, pserver::TrainerLoss::kWait);
  d.Begin();
  EXPECT_EQ(d.Push(1, 0), "pushed t1");
  EXPECT_EQ(d.machine.whole_below(0, 1), 1u);
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.Return(1, out); }), "");
  EXPECT_EQ(d.machine.whole_below(0, 1), 1u);
  EXPECT_EQ(d.Push(1, 0), "pushed t1");  // a repeat
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "merge t1 c0 s0");
}

TEST(KeyPolicy, ANewProcessMayPullTheVersionBeforeTheLast) {
  KeyDriver d(1, false, pserver::TrainerLoss::kWait);
  d.Begin();
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.Pull(0, 0), "pulled t0 v0");
}

TEST(KeyPolicy, InTurnsEachPushIsAnUpdate) {
  KeyDriver d(2, true);
  d.Begin();
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  EXPECT_EQ(d.Pull(1, 1), "");
  EXPECT_EQ(d.Ran(), "newest t1 v1");
  EXPECT_EQ(d.Pull(0, 0), "newest t0 v0");
}

TEST(KeyPolicy, AKeyMayBeAddedWhenOthersAreUpdated) {
  KeyDriver d(1);
  d.Begin();
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "run c0 s0");
  pserver::MachineConfig::Param key{.name = "l", .bytes_of_chunks = {8}};
  key.is_key = true;
  EXPECT_EQ(d.machine.AddParam(key, 0), 1);
  EXPECT_EQ(d.Ran(), "");
  EXPECT_EQ(d.machine.version(0, 0), 1u);
  EXPECT_EQ(d.machine.version(1, 0), 0u);
}

// Of a dense key of f32; the codes of its two elements are 4 bytes.
TEST(KeyPolicy, ACompressedPushHasTheSizeOfItsCodes) {
  for (const bool compressible : {true, false}) {
    KeyDriver d(1);
    d.Begin();
    pserver::MachineConfig::Param key{.name = "l", .bytes_of_chunks = {8}};
    key.is_key = true;
    key.compressible = compressible;
    EXPECT_EQ(d.machine.AddParam(key, 0), 1);
    const auto push = [&](const char* bytes) {
      return d.Do([&](pserver::Actions& out) {
        d.machine.Push({.trainer = 0, .param = 1, .bytes = Payload::Of(bytes), .threshold = 0.5f}, out);
      });
    };
    if (compressible) {
      EXPECT_EQ(push("code"), "pushed t0");  // its value has not come
    }
    EXPECT_NE(push(compressible ? "12345678" : "code").find("E-rpc-size"), std::string::npos);
  }
}

}  // namespace
}  // namespace penstock::test
