#include "executor/pserver/machine/policies/turn_credit.h"

#include <gtest/gtest.h>

#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

// Chunks of 8 and 4 bytes; at most 8 bytes may be held early.
pserver::MachineConfig ByTurn(int trainers) {
  pserver::MachineConfig config = Config(trainers);
  config.early_bytes = 8;
  config.params.front().by_turn = true;
  return config;
}

TEST(TurnCredit, InitialCreditIsTheFirstTurnWithinTheBytes) {
  Driver d(ByTurn(3));
  EXPECT_EQ(d.machine.credit(0, 0, 0), 1u);
  EXPECT_EQ(d.machine.credit(0, 1, 0), 1u) << "its gradient becomes the sum";
  EXPECT_EQ(d.machine.credit(0, 0, 1), 1u);
  EXPECT_EQ(d.machine.credit(0, 1, 1), 0u) << "8 bytes are given";
  EXPECT_EQ(d.machine.credit(0, 0, 2), 0u) << "its turn is not near";
}

TEST(TurnCredit, PushingWithoutCreditEndsTheJob) {
  Driver second(ByTurn(2));
  EXPECT_EQ(second.Push(1, 0, 1), "error t0 E-rpc-credit; error t1 E-rpc-credit; end E-rpc-credit");
  Driver first(ByTurn(2));
  EXPECT_EQ(first.Push(0, 1), "error t0 E-rpc-credit; error t1 E-rpc-credit; end E-rpc-credit")
      << "the step after the one in the making";
}

TEST(TurnCredit, CreditFollowsThePreviousTurnAndFreeBytes) {
  Driver d(ByTurn(3));
  EXPECT_EQ(d.Push(0, 0), "pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "") << "trainer 2's turn is near; the bytes are trainer 1's";
  EXPECT_EQ(d.Push(1, 0), "pushed t1; merge t1 c0 s0");
  EXPECT_EQ(d.Merged(), "credit t1") << "who has waited longer, of chunk 1";
  EXPECT_EQ(d.Push(0, 0, 1), "pushed t0; merge t0 c1 s0");
  EXPECT_EQ(d.Push(1, 0, 1), "pushed t1");
  EXPECT_EQ(d.Merged(1), "merge t1 c1 s0");
  EXPECT_EQ(d.Merged(1), "credit t2") << "of chunk 0";
  EXPECT_EQ(d.Push(2, 0), "pushed t2; merge t2 c0 s0");
  EXPECT_EQ(d.Merged(), "credit t2; run c0 s0");
  EXPECT_EQ(d.Ran(), "credit t0") << "its next turn has begun";
  EXPECT_EQ(d.machine.credit(0, 0, 1), 1u) << "not before all chunks have version 1";
  EXPECT_EQ(d.Push(2, 0, 1), "pushed t2; merge t2 c1 s0");
  EXPECT_EQ(d.Merged(1), "run c1 s0");
  EXPECT_EQ(d.Ran(1), "credit t0; credit t1");
  EXPECT_EQ(d.machine.credit(0, 0, 1), 2u);
}

TEST(TurnCredit, TrainersWithoutCreditAreNotAwaited) {
  Driver d(ByTurn(3));
  EXPECT_EQ(d.machine.Lacks(0, 0), (std::vector<int>{0, 1}));
  EXPECT_EQ(d.machine.Lacks(0, 1), std::vector<int>{0});
  for (int t = 0; t < 2; ++t) {
    d.Push(t, 0);
    d.Merged();
  }
  EXPECT_EQ(d.machine.Lacks(0, 0), (std::vector<int>{0, 1}))
      << "trainer 2 waits for the bytes that chunk 1 has";
}

TEST(TurnCredit, CompletionReturnsBytes) {
  Driver d(ByTurn(3));
  d.Complete(1);
  EXPECT_EQ(d.Push(0, 0), "left t1 s0; pushed t0; merge t0 c0 s0");
  EXPECT_EQ(d.Merged(), "merge t1 c0 s0 zeros");
  EXPECT_EQ(d.Merged(), "credit t2");
  EXPECT_EQ(d.machine.credit(0, 0, 2), 1u);
}

}  // namespace
}  // namespace penstock::test
