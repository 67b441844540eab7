// The cost of a message for a trainer, counted in allocations and visited queue entries: the same with a
// hundred or ten thousand variables, and with 1 or 32 servers.
#include <gtest/gtest.h>

#include "tests/support/allocations/allocations.h"
#include "tests/unit/client/sink_trainer.h"

namespace penstock::test {
namespace {

constexpr int kMeasured = 50;

struct Cost {
  std::uint64_t allocations = 0, visits = 0;
};

// The cost of kMeasured messages.
template <typename Work>
Cost CostOf(SinkTrainer& trainer, const Work& work) {
  const std::uint64_t before = AllocationsSoFar().count, visits = trainer.session.entries_visited();
  for (std::uint32_t i = 0; i < kMeasured; ++i) work(i);
  return {AllocationsSoFar().count - before, trainer.session.entries_visited() - visits};
}

Cost OfPushes(int variables, int servers = 1) {
  SinkTrainer trainer(variables, servers);
  trainer.PushAll();
  trainer.EndStep();
  return CostOf(trainer, [&](std::uint32_t i) { trainer.Push(i); });
}

Cost OfAcknowledgements(int variables, int servers = 1) {
  SinkTrainer trainer(variables, servers);
  trainer.PushAll();
  trainer.EndStep();
  std::vector<Message> messages;
  for (std::uint32_t i = 0; i < kMeasured; ++i) messages.push_back(trainer.Pushed(0, i, 2));
  return CostOf(trainer, [&](std::uint32_t i) {
    trainer.transport.Deliver(i % static_cast<std::size_t>(servers), std::move(messages[i]));
    EXPECT_FALSE(trainer.session.EarlierPushesDone(1));
  });
}

void ExpectTheSame(const Cost& few, const Cost& many) {
  EXPECT_LE(many.allocations, few.allocations + kMeasured / 10);  // containers grow now and then
  EXPECT_LE(many.visits, few.visits);
  EXPECT_LE(many.visits, kMeasured * 2u);
}

TEST(SessionCost, PushCostIsIndependentOfTheVariableCount) { ExpectTheSame(OfPushes(100), OfPushes(10000)); }

TEST(SessionCost, AcknowledgementCostIsConstant) {
  ExpectTheSame(OfAcknowledgements(100), OfAcknowledgements(10000));
}

TEST(SessionCost, MessageCostIsIndependentOfTheServerCount) {
  ExpectTheSame(OfPushes(100), OfPushes(10000, 32));
  ExpectTheSame(OfAcknowledgements(100), OfAcknowledgements(10000, 32));
}

// The cost per message in a step like the previous one.
struct StepCost {
  Cost push, pushed, pull, pulled;
};

StepCost OfASecondStep(int variables, int servers) {
  SinkTrainer trainer(variables, servers);
  StepCost cost;
  for (std::uint64_t step = 0; step < 2; ++step) {
    std::vector<Message> pushed, pulled;
    for (std::uint32_t i = 0; i < kMeasured; ++i) {
      pushed.push_back(trainer.Pushed(step, i, step + 3));
      pulled.push_back(trainer.Pulled(step + 1, i));
    }
    const auto server = [&](std::uint32_t i) { return i % static_cast<std::size_t>(servers); };
    cost.push = CostOf(trainer, [&](std::uint32_t i) { trainer.Push(i); });
    trainer.EndStep();
    cost.pushed =
        CostOf(trainer, [&](std::uint32_t i) { trainer.transport.Deliver(server(i), std::move(pushed[i])); });
    for (std::size_t s = 0; s < static_cast<std::size_t>(servers); ++s)
      trainer.Deliver(s, protocol::StepEnded{.step = step});
    cost.pull = CostOf(trainer, [&](std::uint32_t i) { trainer.Pull(i); });
    cost.pulled =
        CostOf(trainer, [&](std::uint32_t i) { trainer.transport.Deliver(server(i), std::move(pulled[i])); });
    EXPECT_TRUE(trainer.session.PullsDone() && trainer.session.EarlierPushesDone(step + 1));
  }
  return cost;
}

// A message is a head and, if it has a body, a list of pieces; for a push, the log keeps another list.
TEST(SessionCost, ARepeatedStepAllocatesOnlyItsMessages) {
  for (const auto& [variables, servers] : {std::pair(100, 1), std::pair(10000, 1), std::pair(10000, 32)}) {
    SCOPED_TRACE(StrCat(variables, " variables on ", servers, " servers"));
    const StepCost cost = OfASecondStep(variables, servers);
    EXPECT_LE(cost.push.allocations, kMeasured * 3u + kMeasured / 10);  // containers grow now and then
    EXPECT_LE(cost.pushed.allocations, 0u);
    EXPECT_LE(cost.pull.allocations, kMeasured * 1u);
    EXPECT_LE(cost.pulled.allocations, kMeasured * 1u);  // the decoded reply's list of pieces
    EXPECT_EQ(cost.push.visits + cost.pull.visits, kMeasured * 2u);
    EXPECT_EQ(cost.pushed.visits + cost.pulled.visits, 0u);
  }
}

// Messages that lack credit are visited only when their own variable gets some.
TEST(SessionCost, AcknowledgementsSkipPushesWithoutCredit) {
  SinkTrainer trainer(1000);
  for (int step = 0; step < 3; ++step) {
    trainer.PushAll();
    trainer.EndStep();
  }
  const int sent = trainer.sent();
  EXPECT_EQ(sent, 1 + 2 * 1000 + 3);  // the window is two steps
  const Cost without = CostOf(trainer, [&](std::uint32_t i) { trainer.Acknowledge(0, i, 2); });
  EXPECT_LE(without.visits, kMeasured * 2u);
  EXPECT_EQ(trainer.sent(), sent);
  const Cost with = CostOf(trainer, [&](std::uint32_t i) { trainer.Acknowledge(1, i, 3); });
  EXPECT_LE(with.visits, kMeasured * 2u);
  EXPECT_EQ(trainer.sent(), sent + kMeasured);
}

TEST(SessionCost, EarlierPushesAreDoneWhenTheLastIsAcknowledged) {
  SinkTrainer trainer(3);
  trainer.PushAll();
  trainer.EndStep();
  EXPECT_TRUE(trainer.session.EarlierPushesDone(0));
  for (std::uint32_t grad = 0; grad < 3; ++grad) {
    EXPECT_FALSE(trainer.session.EarlierPushesDone(1));
    trainer.Acknowledge(0, grad, 2);
    trainer.Acknowledge(0, grad, 2);  // a repeat counts once
  }
  EXPECT_TRUE(trainer.session.EarlierPushesDone(1));
  trainer.Push(0);
  EXPECT_TRUE(trainer.session.EarlierPushesDone(1));
  EXPECT_FALSE(trainer.session.EarlierPushesDone(2));
}

}  // namespace
}  // namespace penstock::test
