// With which step a new process of a trainer begins, and what it tells the servers.
#include <gtest/gtest.h>

#include "executor/protocol/any_step.h"
#include "tests/unit/client/sink_trainer.h"

namespace penstock::test {
namespace {

using client::Joins;

// A session of two servers, which answer as the test says.
class Joining {
 public:
  explicit Joining(Joins joins)
      : session_(transport_, {.job = "job", .reconnect_deadline = std::chrono::seconds(60), .joins = joins}) {
    EXPECT_TRUE(session_.Attach(job_.TrainerStartup(0)).ok());
  }

  void Welcome(std::size_t server, std::uint64_t steps_ended) { Welcome(server, server, steps_ended, 1, 0); }
  // The connection with the server has broken; it was started again, and has so many steps.
  void ComesBack(std::size_t server, std::uint64_t version) {
    const std::shared_ptr<Sink> broken = transport_.sinks[server];
    broken->handler.OnClosed(broken, OkStatus());
    session_.Tick();
    Welcome(server, transport_.sinks.size() - 1, version, 2, version);
  }
  void Welcome(std::size_t server, std::size_t connection, std::uint64_t steps_ended,
               std::uint64_t incarnation, std::uint64_t version) {
    const protocol::TrainerContracts facts = protocol::ReadTrainer(job_.TrainerStartup(0)).value();
    const std::uint64_t contract = facts.contracts.at(job_.servers[server]).Hash();
    transport_.Deliver(
        connection,
        protocol::Encode({.contract = contract, .incarnation = 1},
                         protocol::Welcome{.steps_ended = steps_ended,
                                           .first_step = 10,
                                           .body = {.part_bytes = 1000,
                                                    .window = 2,
                                                    .chunk_rows = std::vector<std::uint64_t>(2, 2),
                                                    .incarnation = incarnation,
                                                    .version = version}}));
  }
  void Gone(std::size_t server, std::uint64_t version) {
    const protocol::TrainerContracts facts = protocol::ReadTrainer(job_.TrainerStartup(0)).value();
    const std::uint64_t contract = facts.contracts.at(job_.servers[server]).Hash();
    transport_.Deliver(server, protocol::Encode({.contract = contract, .incarnation = 1},
                                                protocol::Gone{.at = {0, 0}, .version = version}));
  }
  // The step in the last hello to the server; nullopt: its last message is another one.
  std::optional<std::uint64_t> Told(std::size_t server) {
    const protocol::Event event = protocol::DecodeEvent(transport_.sinks[server]->last).value().message;
    const auto* hello = std::get_if<protocol::Hello>(&event);
    return hello == nullptr ? std::nullopt : std::optional(hello->step);
  }
  // The answer of an asynchronous server; `connection`: the number of it.
  void AnswerWithNewest(std::size_t connection, std::uint64_t version, std::uint64_t updates) {
    const protocol::TrainerContracts facts = protocol::ReadTrainer(job_.TrainerStartup(0)).value();
    const std::uint64_t contract = facts.contracts.at(job_.servers[0]).Hash();
    const Tensor value(DType::kFp32, {2, 2});
    transport_.Deliver(
        connection, protocol::Encode({.contract = contract, .incarnation = 1},
                                     protocol::PulledNewest{.at = {0, 0},
                                                            .version = version,
                                                            .updates = updates,
                                                            .bytes = Payload::Of(value, 0, value.bytes())}));
  }
  std::uint64_t PulledVersion(std::size_t server) {
    const PullHandle pull =
        session_.DeclarePull({.pserver = job_.servers[server], .name = job_.params[server].name}).value();
    EXPECT_TRUE(session_.Pull(pull, values_[server]).ok());
    const protocol::Event event = protocol::DecodeEvent(transport_.sinks[server]->last).value().message;
    const auto* asked = std::get_if<protocol::Pull>(&event);
    return asked == nullptr ? protocol::kAnyStep : asked->version;
  }
  client::Session& session() { return session_; }
  std::size_t connections() const { return transport_.sinks.size(); }
  int SentTo(std::size_t server) const { return transport_.sinks[server]->sent; }

 private:
  const ToyJob job_ = SinkJob(2, 2);
  SinkTransport transport_;
  client::Session session_;
  Tensor values_[2];
};

TEST(Join, ItRepeatsTheLeastStepThatAServerNames) {
  Joining trainer(Joins::kAtLowest);
  EXPECT_FALSE(trainer.session().Join());
  EXPECT_EQ(trainer.session().WaitingFor(), "pserver server10:1 to start (nothing answers there yet)");
  trainer.Welcome(0, 8);
  EXPECT_FALSE(trainer.session().Join());
  EXPECT_EQ(trainer.session().first_step(), std::nullopt);
  trainer.Welcome(1, 7);
  EXPECT_TRUE(trainer.session().Join());
  EXPECT_EQ(trainer.session().step(), 7u);
  EXPECT_EQ(trainer.session().first_step(), 17u);  // after those of the checkpoint
  EXPECT_EQ(trainer.PulledVersion(0), 7u);
  EXPECT_TRUE(trainer.session().status().ok());
}

TEST(Join, AServerThatHasLostStepsOfADeadProcessIsAnError) {
  Joining trainer(Joins::kAtLowest);
  trainer.Welcome(0, 9);
  trainer.Welcome(1, 7);
  EXPECT_FALSE(trainer.session().Join());
  EXPECT_EQ(trainer.session().status().id(), "E-resume-step");
  EXPECT_EQ(
      trainer.session().status().message(),
      "pserver server10:1 has had 9 steps of trainer 0, pserver server11:1 has had 7; the process that sent "
      "those in between has died");
}

TEST(Join, AServerThatIsStartedAgainMayLackOnlyStepsOfThisProcess) {
  for (const std::uint64_t version : {7, 8}) {
    Joining trainer(Joins::kAtLowest);
    trainer.Welcome(0, 8);
    trainer.Welcome(1, 8);
    EXPECT_TRUE(trainer.session().Join());
    trainer.ComesBack(0, version);
    EXPECT_EQ(trainer.session().status().id(), version < 8 ? "E-resume-step" : "") << version;
  }
}

TEST(Join, AServerThatIsStartedAgainCountsItsUpdatesAnew) {
  Joining trainer(Joins::kAtLowest);
  trainer.Welcome(0, 8);
  trainer.Welcome(1, 8);
  EXPECT_TRUE(trainer.session().Join());
  EXPECT_EQ(trainer.PulledVersion(0), 8u);
  trainer.AnswerWithNewest(0, 8, 14);
  EXPECT_TRUE(trainer.session().PullsDone());
  trainer.ComesBack(0, 8);
  trainer.PulledVersion(0);
  EXPECT_FALSE(trainer.session().PullsDone());
  trainer.AnswerWithNewest(trainer.connections() - 1, 8, 3);
  EXPECT_TRUE(trainer.session().PullsDone()) << "the answer counts, although an earlier one had more updates";
}

TEST(Join, AServerThatIsStartedAgainBeforeTheStepIsKnownNamesItsStepAgain) {
  Joining trainer(Joins::kAtLowest);
  trainer.Welcome(0, 8);
  trainer.ComesBack(0, 7);
  EXPECT_FALSE(trainer.session().Join());
  trainer.Welcome(1, 8);
  EXPECT_TRUE(trainer.session().Join());
  EXPECT_EQ(trainer.session().step(), 7u);
}

// The other server lacks the step. This one names the first step of which it has not all gradients, and may
// have updated the parameter with that of the dead process.
TEST(Join, AVersionThatIsGoneIsAStepThatCannotBeRepeated) {
  Joining trainer(Joins::kAtLowest);
  trainer.Welcome(0, 8);
  trainer.Welcome(1, 7);
  EXPECT_TRUE(trainer.session().Join());
  EXPECT_EQ(trainer.PulledVersion(0), 7u);
  trainer.Gone(0, 7);
  EXPECT_EQ(trainer.session().status().id(), "E-resume-step");
  EXPECT_EQ(trainer.session().status().message(),
            "pserver server10:1 has had 8 steps of trainer 0 and no longer has version 7 of w10000, with "
            "which its new "
            "process repeats a step that another pserver lacks");
}

TEST(Join, AServerThatUpdatesNothingNamesNoStep) {
  Joining trainer(Joins::kAtLowest);
  trainer.Welcome(0, protocol::kAnyStep);
  trainer.Welcome(1, 3);
  EXPECT_TRUE(trainer.session().Join());
  EXPECT_EQ(trainer.session().step(), 3u);
}

TEST(Join, WhereOthersGoOnItBeginsWithTheGreatestStepAndSaysSo) {
  Joining trainer(Joins::kAtHighest);
  trainer.Welcome(0, 5);
  trainer.Welcome(1, 6);
  EXPECT_TRUE(trainer.session().Join());
  EXPECT_EQ(trainer.session().step(), 6u);
  EXPECT_EQ(trainer.Told(0), 6u);
  EXPECT_EQ(trainer.SentTo(1), 1);                          // it named the step itself
  EXPECT_EQ(trainer.PulledVersion(0), protocol::kAnyStep);  // waits for the answer
  trainer.Welcome(0, 5);                                    // the first answer, a second time
  EXPECT_EQ(trainer.Told(0), 6u);
  trainer.Welcome(0, 6);
  EXPECT_EQ(trainer.Told(0), std::nullopt);  // it pulls
  EXPECT_EQ(trainer.PulledVersion(1), 6u);
}

TEST(Join, WithoutTheSettingAServerThatKnowsStepsIsAnError) {
  Joining trainer(Joins::kAtZero);
  EXPECT_TRUE(trainer.session().Join());
  trainer.Welcome(0, 1);
  EXPECT_EQ(trainer.session().status().id(), "E-rpc-restart");
}

// Only a later program names the second server, which lacks a gradient of a step that is over.
TEST(Join, AServerThatComesLaterMustAgree) {
  const ToyJob job = SinkJob(2, 2);
  ToyJob first = SinkJob(1, 1);
  for (const std::uint64_t named : {std::uint64_t{3}, std::uint64_t{4}}) {
    SinkTransport transport;
    client::Session session(transport, {.job = "job", .joins = Joins::kAtLowest});
    const auto welcome = [&](std::size_t server, const Program& program, std::uint64_t steps_ended) {
      const protocol::TrainerContracts facts = protocol::ReadTrainer(program).value();
      const std::uint64_t contract = facts.contracts.at(job.servers[server]).Hash();
      transport.Deliver(
          server, protocol::Encode(
                      {.contract = contract, .incarnation = 1},
                      protocol::Welcome{.steps_ended = steps_ended,
                                        .body = {.part_bytes = 1000, .window = 2, .chunk_rows = {2, 2}}}));
    };
    ASSERT_TRUE(session.Attach(first.TrainerStartup(0)).ok());
    welcome(0, first.TrainerStartup(0), 4);
    ASSERT_TRUE(session.Join());
    ASSERT_TRUE(session.Attach(job.TrainerStartup(0)).ok());
    welcome(1, job.TrainerStartup(0), named);
    EXPECT_EQ(session.status().id(), named == 3 ? "E-resume-step" : "");
  }
}

}  // namespace
}  // namespace penstock::test
