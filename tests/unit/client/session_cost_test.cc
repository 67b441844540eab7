// What a message costs a trainer, counted in allocations and in entries of queues looked at: the same whether
// it has a hundred variables or ten thousand.
#include <gtest/gtest.h>

#include "executor/client/session.h"
#include "tests/sim/toy_job.h"
#include "tests/support/allocations/allocations.h"

namespace penstock::test {
namespace {

constexpr int kMeasured = 50;

// Takes what is sent and keeps nothing.
class Sink : public Connection {
 public:
  void Send(Message) override { ++sent; }
  void Close() override {}
  void Abort() override {}
  int sent = 0;
};

class SinkTransport : public Transport {
 public:
  Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override {
    return Unimplemented("E-test", "a trainer does not listen");
  }
  std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler&) override { return connection; }
  std::shared_ptr<Sink> connection = std::make_shared<Sink>();
};

// A trainer with `variables` parameters on one server, welcomed.
class Trainer {
 public:
  explicit Trainer(int variables) : variables_(static_cast<std::uint32_t>(variables)) {
    ToyJob job;
    job.servers = {"a:1"};
    for (int i = 0; i < variables; ++i)
      job.params.push_back({.name = StrCat("w", 10000 + i), .shape = {2, 2}});
    const Program program = job.Trainer(0);
    facts_ = protocol::ReadTrainer(program).value();
    EXPECT_TRUE(session.Attach(program).ok());
    protocol::WelcomeBody welcome{.part_bytes = 1000, .window = 2, .chunk_rows = {}};
    welcome.chunk_rows.assign(OfTheServer().variable_count(), 2);
    Deliver({.kind = protocol::MessageKind::kWelcome}, Payload::Of(protocol::WriteWelcome(welcome)));
    for (const protocol::ContractPiece& grad : OfTheServer().grads)
      pushes_.push_back(session.DeclarePush({.pserver = "a:1", .name = grad.name}).value());
    peers_ = session.DeclarePeers({"a:1"}).value();
    value_ = Tensor(DType::kFp32, {2, 2});
  }

  const protocol::Contract& OfTheServer() const { return facts_.contracts.at("a:1"); }
  void Push(std::size_t grad) { EXPECT_TRUE(session.Push(pushes_[grad], value_).ok()); }
  void PushAll() {
    for (std::size_t i = 0; i < pushes_.size(); ++i) Push(i);
  }
  void EndStep() { EXPECT_TRUE(session.EndStep(peers_).ok()); }
  void Acknowledge(std::uint64_t step, std::uint32_t grad, std::uint64_t credit) {
    Deliver({.kind = protocol::MessageKind::kPushed,
             .step = step,
             .credit = credit,
             .variable = variables_ + grad},
            {});
  }

  SinkTransport transport;
  client::Session session{transport, {.job = "job", .trainers = 2}};

 private:
  void Deliver(protocol::Envelope envelope, Payload body) {
    envelope.contract = OfTheServer().Hash();
    envelope.incarnation = 1;
    session.OnMessage(transport.connection, protocol::Seal(envelope, std::move(body)));
  }

  const std::uint32_t variables_;
  protocol::TrainerContracts facts_;
  std::vector<PushHandle> pushes_;
  PeersHandle peers_;
  Tensor value_;
};

struct Cost {
  std::uint64_t allocations = 0, visits = 0;
};

// What kMeasured messages cost.
template <typename Work>
Cost CostOf(Trainer& trainer, const Work& work) {
  const std::uint64_t before = AllocationsSoFar().count, visits = trainer.session.entries_visited();
  for (std::uint32_t i = 0; i < kMeasured; ++i) work(i);
  return {AllocationsSoFar().count - before, trainer.session.entries_visited() - visits};
}

Cost OfPushes(int variables) {
  Trainer trainer(variables);
  trainer.PushAll();
  trainer.EndStep();
  return CostOf(trainer, [&](std::uint32_t i) { trainer.Push(i); });
}

// The test's own envelope is the same at both sizes but for the contract's text, which is hashed before.
Cost OfAcknowledgements(int variables) {
  Trainer trainer(variables);
  trainer.PushAll();
  trainer.EndStep();
  std::vector<Message> messages;
  for (std::uint32_t i = 0; i < kMeasured; ++i) {
    messages.push_back(protocol::Seal({.kind = protocol::MessageKind::kPushed,
                                       .incarnation = 1,
                                       .credit = 2,
                                       .variable = static_cast<std::uint32_t>(variables) + i},
                                      {}));
  }
  return CostOf(trainer, [&](std::uint32_t i) {
    trainer.session.OnMessage(trainer.transport.connection, std::move(messages[i]));
    EXPECT_FALSE(trainer.session.EarlierPushesDone(1));
  });
}

void ExpectTheSame(const Cost& few, const Cost& many) {
  EXPECT_LE(many.allocations, few.allocations + kMeasured / 10);  // containers grow now and then
  EXPECT_LE(many.visits, few.visits);
  EXPECT_LE(many.visits, kMeasured * 2u);
}

TEST(SessionCost, APushCostsTheSameHoweverManyVariablesThereAre) {
  ExpectTheSame(OfPushes(100), OfPushes(10000));
}

TEST(SessionCost, AnAcknowledgementCostsTheSameHoweverManyPushesAreUnderWay) {
  ExpectTheSame(OfAcknowledgements(100), OfAcknowledgements(10000));
}

// Those that lack credit are looked at when their own variable gets some.
TEST(SessionCost, PushesWithoutCreditAreLeftAloneByAcknowledgementsOfOthers) {
  Trainer trainer(1000);
  for (int step = 0; step < 3; ++step) {
    trainer.PushAll();
    trainer.EndStep();
  }
  const int sent = trainer.transport.connection->sent;
  EXPECT_EQ(sent, 1 + 2 * 1000 + 3);  // the window is two steps
  const Cost without = CostOf(trainer, [&](std::uint32_t i) { trainer.Acknowledge(0, i, 2); });
  EXPECT_LE(without.visits, kMeasured * 2u);
  EXPECT_EQ(trainer.transport.connection->sent, sent);
  const Cost with = CostOf(trainer, [&](std::uint32_t i) { trainer.Acknowledge(1, i, 3); });
  EXPECT_LE(with.visits, kMeasured * 2u);
  EXPECT_EQ(trainer.transport.connection->sent, sent + kMeasured);
}

TEST(SessionCost, EarlierPushesAreDoneWhenTheLastIsAcknowledged) {
  Trainer trainer(3);
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
