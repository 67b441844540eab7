// The guarantees for a handler while the next frame is read before it has finished the last one.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "executor/transport/grpc_transport.h"
#include "framework/base/strings.h"
#include "tests/support/free_port.h"

namespace penstock::test {
namespace {

class LastHeard : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message message) override {
    const std::lock_guard lock(mutex_);
    last_ = message.head;
    changed_.notify_all();
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool WaitFor(const std::string& head) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return last_ == head; });
  }
  bool WaitForEnd() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return closed_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string last_;
  bool closed_ = false;
};

// Reads every byte, so that the next frame arrives before it has finished.
class InOrder : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    EXPECT_FALSE(busy.exchange(true)) << "two calls at a time";
    if (message.head == "hello") from->Admit();
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back(message.head);
    }
    const std::string body = message.body.ToText();
    EXPECT_EQ(body, std::string(body.size(), message.head.back()));
    EXPECT_FALSE(closed);
    if (message.head == last) from->Send({.head = last, .body = {}});
    EXPECT_TRUE(busy.exchange(false));
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override { closed = true; }

  std::vector<std::string> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

  std::string last;
  std::atomic<bool> busy = false, closed = false;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> seen_;
};

TEST(Stream, DeliversMessagesInOrderAndRepliesBeforeTheEnd) {
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{300'000}, std::size_t{4} << 20}) {
    const auto transport =
        transport::MakeGrpcTransport({.token = "secret", .carrier = transport::Carrier::kTcp, .streams = 1});
    const std::string address = StrCat("127.0.0.1:", FreePort());
    InOrder server;
    LastHeard client;
    constexpr int kMessages = 60;
    server.last = StrCat(kMessages - 1);
    const auto listener = transport->Listen(address, server).value();
    const auto connection = transport->Connect(address, client);
    connection->Send({.head = "hello", .body = {}});
    std::vector<std::string> sent = {"hello"};
    for (int i = 0; i < kMessages; ++i) {
      sent.push_back(StrCat(i));
      connection->Send({.head = sent.back(), .body = Payload::Of(std::string(bytes, sent.back().back()))});
    }
    EXPECT_TRUE(client.WaitFor(server.last));
    connection->Close();
    EXPECT_TRUE(client.WaitForEnd());
    EXPECT_EQ(server.seen(), sent);
  }
}

}  // namespace
}  // namespace penstock::test
