// Pulls that a step leaves in flight: who waits for them, and for how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <string>

#include "executor/client/session_client.h"
#include "tests/unit/client/sink_trainer.h"

namespace penstock::test {
namespace {

// A client whose waits let things happen, one after the other, until the answer is there.
class SteppedClient : public client::SessionClient {
 public:
  explicit SteppedClient(client::Session& session) : SessionClient(session), session_(session) {}
  std::deque<std::function<void()>> to_come;

 private:
  Status Wait(const std::function<bool()>& answer) override {
    while (session_.status().ok() && !answer()) {
      if (to_come.empty()) return InternalError("E-test", "a wait for nothing");
      const std::function<void()> next = to_come.front();
      to_come.pop_front();
      next();
    }
    return session_.status();
  }

  client::Session& session_;
};

class LeftPulls : public testing::Test {
 protected:
  // Two parameters are asked for, and nothing has arrived.
  LeftPulls() : job_(SinkJob(2, 1)) {
    push_ =
        client_.DeclarePush({.pserver = job_.servers[0], .name = job_.GradName(job_.params[0], 0)}).value();
    pull_ = client_.DeclarePull({.pserver = job_.servers[0], .name = job_.params[0].name}).value();
    peers_ = client_.DeclarePeers(job_.servers, 0).value();
    for (std::size_t i = 0; i < 2; ++i) params_[i].As<Tensor>() = trainer_.pulled[i];
    gradient_.As<Tensor>() = Tensor(DType::kFp32, {2, 2});
    trainer_.PushAll();
    trainer_.PullNext(1);
    trainer_.PullNext(0);
    trainer_.EndStep();
    client_.to_come = {[this] { trainer_.Acknowledge(0, 0, 2); }, [this] { trainer_.Acknowledge(0, 1, 2); }};
    EXPECT_TRUE(client_.LeavePulls(peers_).ok());
  }

  void Arrive(std::size_t i) { trainer_.AnswerPull(1, i); }
  std::size_t to_come() const { return client_.to_come.size(); }

  const ToyJob job_;
  SinkTrainer trainer_{2};
  SteppedClient client_{trainer_.session};
  PushHandle push_;
  PullHandle pull_;
  PeersHandle peers_;
  Variable params_[2], gradient_;
};

TEST_F(LeftPulls, AStepEndsWhenTheServersHaveItsGradients) {
  EXPECT_EQ(to_come(), 0u);
  EXPECT_TRUE(client_.HasLeft());
  EXPECT_TRUE(client_.HasLeftInto(params_[0]));
  EXPECT_TRUE(client_.HasLeftInto(params_[1]));
}

TEST_F(LeftPulls, AVariableIsAwaitedByItsMemory) {
  Variable rows, other, empty;
  rows.As<Tensor>() = trainer_.pulled[0].Rows(1, 2);
  other.As<Tensor>() = Tensor(DType::kFp32, {2, 2});
  EXPECT_TRUE(client_.HasLeftInto(rows)) << "rows of a parameter";
  EXPECT_FALSE(client_.HasLeftInto(other));
  EXPECT_TRUE(client_.CompleteLeftInto(other).ok());
  EXPECT_TRUE(client_.CompleteLeftInto(empty).ok());
  client_.to_come = {[this] { Arrive(1); }};
  EXPECT_TRUE(client_.CompleteLeftInto(params_[1]).ok()) << "without waiting for the other one";
  EXPECT_FALSE(client_.HasLeftInto(params_[1]));
  EXPECT_TRUE(client_.HasLeftInto(params_[0]));
}

TEST_F(LeftPulls, ArrivalsAreSignalledWhileOneIsAwaited) {
  int changes = 0;
  client::SessionOptions options;
  options.on_change = [&] { ++changes; };
  SinkTrainer trainer(3, 1, options);
  SteppedClient client(trainer.session);
  for (std::size_t i = 0; i < 3; ++i) trainer.PullNext(i);
  trainer.EndStep();
  ASSERT_TRUE(client.LeavePulls({}).ok());
  changes = 0;
  trainer.AnswerPull(1, 0);
  EXPECT_EQ(changes, 0) << "nobody waits";
  Variable second;
  second.As<Tensor>() = trainer.pulled[1];
  client.to_come = {[&] { trainer.AnswerPull(1, 1); }};
  EXPECT_TRUE(client.CompleteLeftInto(second).ok());
  EXPECT_EQ(changes, 1);
}

class CallsAfterAStep : public LeftPulls, public testing::WithParamInterface<std::string> {
 protected:
  Status Call(const std::string& name) {
    if (name == "push") return client_.Push(push_, gradient_);
    if (name == "count") return client_.CountStep(peers_);
    if (name == "pull") return client_.PullNext(pull_, params_[0]);
    if (name == "attach") return client_.Attach(job_.Trainer(0));
    if (name == "end") return client_.EndStep(peers_);
    return client_.CompleteLeft();
  }
};

TEST_P(CallsAfterAStep, WaitUntilAllHaveArrived) {
  client_.to_come = {[this] { Arrive(1); }, [this] { Arrive(0); }};
  EXPECT_TRUE(Call(GetParam()).ok());
  EXPECT_EQ(to_come(), 0u);
  EXPECT_FALSE(client_.HasLeft());
  EXPECT_FALSE(client_.HasLeftInto(params_[0])) << "what the open step pulls is not left";
}

INSTANTIATE_TEST_SUITE_P(LeftPulls, CallsAfterAStep,
                         testing::Values("push", "count", "pull", "attach", "end", "complete left"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST_F(LeftPulls, AnErrorIsReportedByTheFirstWaitAndByTheNextStep) {
  client_.to_come = {[this] { trainer_.session.Cancel(); }};
  EXPECT_EQ(client_.CompleteLeftInto(params_[0]).id(), "E-cancelled");
  EXPECT_TRUE(client_.CompleteLeftInto(params_[0]).ok()) << "it was reported";
  EXPECT_EQ(client_.Push(push_, gradient_).id(), "E-cancelled");
}

TEST_F(LeftPulls, AnErrorBetweenTwoRunsIsNotLost) {
  trainer_.session.Cancel();
  EXPECT_TRUE(client_.HasLeft());
  EXPECT_TRUE(client_.HasLeftInto(params_[0]));
  EXPECT_EQ(client_.CompleteLeft().id(), "E-cancelled");
}

// The others may wait for something else of this process before they end the step whose result it has asked
// for.
TEST(LeftPullsOfAStartup, ANewProcessOfATrainerDoesNotWaitForTheStepInWhichTheOthersAre) {
  client::SessionOptions options;
  options.joins = client::Joins::kAtLowest;
  SinkTrainer trainer(1, 1, options, 3);
  SteppedClient client(trainer.session);
  trainer.Pull(0);
  ASSERT_TRUE(client.LeavePulls({}).ok()) << "a wait for the answer";
  Variable param;
  param.As<Tensor>() = trainer.pulled[0];
  EXPECT_TRUE(client.HasLeftInto(param));
  client.to_come = {[&] { trainer.AnswerPull(3, 0); }};
  EXPECT_TRUE(client.CompleteLeftInto(param).ok());
  EXPECT_FALSE(client.HasLeftInto(param));
}

TEST(LeftPullsOfAStartup, InitialValuesAreAwaited) {
  SinkTrainer trainer(1);
  SteppedClient client(trainer.session);
  trainer.Pull(0);
  client.to_come = {[&] { trainer.AnswerPull(0, 0); }};
  EXPECT_TRUE(client.LeavePulls({}).ok());
  EXPECT_TRUE(client.to_come.empty());
  EXPECT_FALSE(client.HasLeft());
}

TEST_F(LeftPulls, ATrainerCompletesWhenAllHaveArrived) {
  client_.to_come = {[this] { Arrive(0); }, [this] { Arrive(1); },
                     [this] { trainer_.Deliver(0, protocol::StepEnded{0}); },
                     [this] { trainer_.Deliver(0, protocol::Completed{}); }};
  EXPECT_TRUE(client_.Complete().ok());
  EXPECT_EQ(to_come(), 0u);
}

}  // namespace
}  // namespace penstock::test
