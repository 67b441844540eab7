// The blocking client, with one thread for each of its servers.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include "executor/client/client.h"
#include "executor/protocol/native_codec.h"
#include "tests/unit/client/sink_trainer.h"

namespace penstock::test {
namespace {

// A server that acknowledges everything, and sends version v of a parameter as values v.
std::optional<protocol::Reply> AnswerTo(const protocol::Event& event) {
  if (std::holds_alternative<protocol::Hello>(event)) {
    return protocol::Welcome{
        .body = {.part_bytes = 1000, .window = 2, .chunk_rows = std::vector<std::uint64_t>(1000, 2)}};
  }
  if (const auto* push = std::get_if<protocol::Push>(&event))
    return protocol::Pushed{
        .at = push->at, .step = push->step, .part = push->part, .welcome_below = push->step + 2};
  if (const auto* end = std::get_if<protocol::EndStep>(&event)) return protocol::StepEnded{end->step};
  if (const auto* pull = std::get_if<protocol::Pull>(&event)) {
    Tensor value(DType::kFp32, {2, 2});
    std::fill(value.Span<float>().begin(), value.Span<float>().end(), static_cast<float>(pull->version));
    return protocol::Pulled{
        .at = pull->at, .version = pull->version, .bytes = Payload::Of(value, 0, value.bytes())};
  }
  if (std::holds_alternative<protocol::Complete>(event)) return protocol::Completed{};
  return std::nullopt;
}

class Answering : public Connection, public std::enable_shared_from_this<Answering> {
 public:
  explicit Answering(ConnectionHandler& handler) : handler_(handler) {}
  void Send(Message message) override {
    const std::lock_guard lock(mutex_);
    if (!ended_) sent_.push_back(std::move(message));
    changed_.notify_one();
  }
  void Close() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  void Abort() override { Close(); }

  void Serve() {
    const std::shared_ptr<Answering> self = shared_from_this();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ended_ || !sent_.empty(); });
      if (sent_.empty()) break;
      const Message message = std::move(sent_.front());
      sent_.pop_front();
      lock.unlock();
      const auto event = protocol::DecodeEvent(message).value();
      if (const auto reply = AnswerTo(event.message))
        handler_.OnMessage(self, protocol::Encode(event.sender, *reply));
      lock.lock();
    }
    lock.unlock();
    handler_.OnClosed(self, OkStatus());
  }

 private:
  ConnectionHandler& handler_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> sent_;
  bool ended_ = false;
};

class AnsweringTransport : public Transport {
 public:
  ~AnsweringTransport() override {
    for (std::thread& thread : threads_) thread.join();
  }
  Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override {
    return Unimplemented("E-test", "a trainer does not listen");
  }
  std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler& handler) override {
    auto connection = std::make_shared<Answering>(handler);
    threads_.emplace_back([connection] { connection->Serve(); });
    return connection;
  }

 private:
  std::vector<std::thread> threads_;
};

class TrainerClientTest : public testing::Test {
 protected:
  TrainerClientTest() : job_(SinkJob(24, 4)) {
    EXPECT_TRUE(client_.Attach(job_.Trainer(0)).ok());
    for (const ToyParam& param : job_.params) {
      const std::string& server = job_.servers[static_cast<std::size_t>(param.server)];
      pushes_.push_back(client_.DeclarePush({.pserver = server, .name = job_.GradName(param, 0)}).value());
      pulls_.push_back(client_.DeclarePull({.pserver = server, .name = param.name}).value());
      gradients_.emplace_back().As<Tensor>() = Tensor(DType::kFp32, param.shape);
    }
    values_.resize(job_.params.size());
    peers_ = client_.DeclarePeers(job_.servers, 0).value();
  }

  Status Step() {
    for (std::size_t i = 0; i < pushes_.size(); ++i)
      PENSTOCK_RETURN_IF_ERROR(client_.Push(pushes_[i], gradients_[i]));
    PENSTOCK_RETURN_IF_ERROR(client_.EndStep(peers_));
    for (std::size_t i = 0; i < pulls_.size(); ++i)
      PENSTOCK_RETURN_IF_ERROR(client_.Pull(pulls_[i], values_[i]));
    return client_.CompletePulls(peers_);
  }

  const ToyJob job_;
  client::TrainerClient client_{
      std::make_unique<AnsweringTransport>(),
      {.session = {.job = "job"}, .report = [](const std::string&) {}, .on_trainer = {}}};
  std::vector<PushHandle> pushes_;
  std::vector<PullHandle> pulls_;
  PeersHandle peers_;
  std::vector<Variable> gradients_, values_;
};

TEST_F(TrainerClientTest, ServersMayReplyConcurrently) {
  for (int step = 1; step <= 50; ++step) {
    ASSERT_TRUE(Step().ok());
    for (Variable& value : values_) ASSERT_EQ(value.As<Tensor>().Span<float>()[3], static_cast<float>(step));
  }
  EXPECT_TRUE(client_.Complete().ok());
}

TEST_F(TrainerClientTest, ACancelFromAnotherThreadEndsTheSteps) {
  std::thread other([&] {
    while (client_.step() < 5) std::this_thread::yield();
    client_.Cancel();
  });
  Status status;
  while (status.ok()) status = Step();
  other.join();
  EXPECT_EQ(status.id(), "E-cancelled");
}

}  // namespace
}  // namespace penstock::test
