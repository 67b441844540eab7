// What a worker of a key-value store sends, message by message. The servers are in the test: they answer
// while the worker waits.
#include "executor/client/key_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <set>

#include "executor/protocol/batch.h"
#include "executor/protocol/native_codec.h"

namespace penstock::test {
namespace {

using client::KeyClient;

// A server: keeps what it gets, and answers declarations.
class KeySink : public Connection {
 public:
  explicit KeySink(ConnectionHandler& handler) : handler(handler) {}
  void Send(Message message) override {
    ++messages;
    if (protocol::IsBatch(message)) {
      auto batch = protocol::DecodeEvents(message).value();
      for (protocol::Event& event : batch.messages) Take(batch.sender, std::move(event));
    } else {
      auto one = protocol::DecodeEvent(message).value();
      Take(one.sender, std::move(one.message));
    }
  }
  void Close() override {}
  void Abort() override {}

  ConnectionHandler& handler;
  protocol::Sender worker;
  std::uint64_t chunk_rows = 1 << 20;  // of keys
  int messages = 0;
  std::vector<protocol::Event> got;  // pushes and pulls, in order
  std::deque<protocol::Reply> answers;

 private:
  void Take(const protocol::Sender& from, protocol::Event event) {
    worker = from;
    if (std::holds_alternative<protocol::Hello>(event)) {
      answers.emplace_back(protocol::Welcome{.body = {.part_bytes = 1 << 22, .window = 2, .chunk_rows = {}}});
    } else if (const auto* declare = std::get_if<protocol::DeclareKey>(&event)) {
      answers.emplace_back(protocol::KeyDeclared{.request = declare->request,
                                                 .variable = declare->request,
                                                 .welcome_below = 2,
                                                 .body = {.status = {}, .chunk_rows = chunk_rows}});
    } else {
      got.push_back(std::move(event));
    }
  }
};

class KeySinks : public Transport {
 public:
  Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override {
    return Unimplemented("E-test", "a worker does not listen");
  }
  std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler& handler) override {
    return sinks.emplace_back(std::make_shared<KeySink>(handler));
  }
  // Delivers the servers' answers, one by one. Returns whether there were any.
  bool DeliverAll() {
    bool any = false;
    for (const std::shared_ptr<KeySink>& sink : sinks) {
      for (; !sink->answers.empty(); any = true) {
        const protocol::Reply answer = std::move(sink->answers.front());
        sink->answers.pop_front();
        sink->handler.OnMessage(sink, protocol::Encode(sink->worker, answer));
      }
    }
    return any;
  }
  std::vector<std::shared_ptr<KeySink>> sinks;
};

class KeyClients : public ::testing::Test {
 protected:
  void Start(int servers = 1, std::size_t push_window = 1 << 20) {
    client::SessionOptions options{.job = "job"};
    options.push_window = push_window;
    session_ = std::make_unique<client::Session>(transport_, std::move(options));
    client::KeyClientOptions keys{.rank = 1, .workers = 2};  // not 0: it sends no initial values
    for (int s = 0; s < servers; ++s) keys.servers.push_back(StrCat("server", s, ":1"));
    const auto wait = [this](const std::function<bool()>& answer) -> Status {
      while (!answer() && transport_.DeliverAll()) continue;
      return answer() ? session_->status() : FailedPrecondition("E-test", "it waits forever");
    };
    keys_ = std::make_unique<KeyClient>(*session_, wait, std::move(keys));
    ASSERT_TRUE(keys_->Attach().ok());
  }
  int Declare(const std::string& name, Dim elements) {
    const int key = keys_->Declare({.name = name, .shape = {elements}}, {}).value();
    EXPECT_TRUE(keys_->WaitUntilReady(key).ok());
    return key;
  }
  static Tensor Filled(Dim elements, float value) {
    Tensor tensor(DType::kFp32, {elements});
    std::ranges::fill(tensor.Span<float>(), value);
    return tensor;
  }
  KeySink& server(std::size_t s = 0) { return *transport_.sinks[s]; }
  // Says that the server has a push.
  void Acknowledge(const protocol::Push& push) {
    server().answers.emplace_back(
        protocol::Pushed{.at = push.at, .step = push.step, .part = push.part, .welcome_below = 9});
    transport_.DeliverAll();
  }
  // "large 0, small 0": the key and the chunk of each push that has come.
  std::string Pushes(const std::vector<std::string>& names) {
    std::string text;
    for (const protocol::Event& event : server().got) {
      const auto* push = std::get_if<protocol::Push>(&event);
      if (push == nullptr) continue;
      // A key's gradient has the number behind that of its value.
      text += StrCat(text.empty() ? "" : ", ", names[push->at.variable / 2], " ", push->at.chunk);
    }
    return text;
  }

  KeySinks transport_;
  std::unique_ptr<client::Session> session_;
  std::unique_ptr<KeyClient> keys_;
};

TEST_F(KeyClients, AListOfSmallKeysIsOneMessageToEachServer) {
  Start(2);
  std::vector<KeyClient::Given> values, outs;
  for (int i = 0; i < 20; ++i) {
    const int key = Declare(StrCat("k", i), 3);
    values.push_back({key, Filled(3, static_cast<float>(i))});
    outs.push_back({key, Filled(3, -1)});
  }
  const int before[] = {server(0).messages, server(1).messages};
  const KeyClient::Ticket pushed = keys_->PushAll(values).value();
  const KeyClient::Ticket pulled = keys_->PullAll(outs).value();
  std::size_t all = 0;
  for (std::size_t s : {0, 1}) {
    EXPECT_EQ(server(s).messages, before[s] + 2);
    all += server(s).got.size();
  }
  EXPECT_EQ(all, 40u);
  EXPECT_FALSE(keys_->Done(pushed));

  // The answers come together, too. The value of a key on server s is its variable there, plus s / 2.
  for (std::size_t s : {0, 1}) {
    protocol::BatchWriter batch;
    for (const protocol::Event& event : server(s).got) {
      if (const auto* push = std::get_if<protocol::Push>(&event)) {
        batch.Add(protocol::Reply(protocol::Pushed{.at = push->at, .welcome_below = 3}));
      } else {
        const auto& pull = std::get<protocol::Pull>(event);
        EXPECT_EQ(pull.version, 1u);
        const Tensor value = Filled(3, static_cast<float>(pull.at.variable) + static_cast<float>(s) / 2);
        batch.Add(protocol::Reply(protocol::Pulled{
            .at = pull.at, .version = 1, .welcome_below = 3, .bytes = Payload::Of(value, 0, value.bytes())}));
      }
    }
    EXPECT_FALSE(keys_->Done(pulled));
    server(s).handler.OnMessage(transport_.sinks[s], batch.Take(server(s).worker));
  }
  EXPECT_TRUE(keys_->Done(pushed));
  EXPECT_TRUE(keys_->Done(pulled));
  EXPECT_TRUE(keys_->WaitForAll().ok());
  std::set<float> values_seen;
  for (const KeyClient::Given& out : outs) values_seen.insert(out.value.Span<float>()[2]);
  EXPECT_EQ(values_seen.size(), 20u);
  EXPECT_FALSE(values_seen.contains(-1));
}

TEST_F(KeyClients, AnErrorInAListPushesNothing) {
  Start();
  const int first = Declare("first", 3), second = Declare("second", 3);
  const std::vector<KeyClient::Given> wrong = {{first, Filled(3, 1)}, {second, Filled(4, 1)}};
  EXPECT_EQ(keys_->PushAll(wrong).status().id(), "E-kv-array");
  EXPECT_EQ(keys_->PullAll(wrong).status().id(), "E-kv-array");
  ASSERT_TRUE(keys_->SetCompression(0.5f).ok());
  const std::vector<KeyClient::Given> infinite = {
      {first, Filled(3, 1)}, {second, Filled(3, std::numeric_limits<float>::infinity())}};
  EXPECT_EQ(keys_->PushAll(infinite).status().id(), "E-compression-finite");
  EXPECT_TRUE(server().got.empty());
  EXPECT_EQ(keys_->Rounds(first).value(), 0u);
}

// 2 bits for each element travel, chunk by chunk; the server's chunks have 100 elements.
TEST_F(KeyClients, CompressedValuesTravelCompressed) {
  Start();
  server().chunk_rows = 100;
  const int key = Declare("k", 250);
  ASSERT_TRUE(keys_->SetCompression(0.5f).ok());
  ASSERT_TRUE(keys_->Push(key, Filled(250, -0.75f)).ok());
  ASSERT_EQ(server().got.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& push = std::get<protocol::Push>(server().got[i]);
    EXPECT_EQ(push.at.chunk, i);
    EXPECT_EQ(push.threshold, 0.5f);
    EXPECT_EQ(push.bytes.size(), i < 2 ? 28u : 16u);  // 100 and 50 elements in words of 16
    EXPECT_EQ(static_cast<unsigned char>(push.bytes.ToText()[0]), 0xaa);  // four times -threshold
  }
}

// 64 KB may be on their way: the first chunk of the large key. Of what waits, the most urgent goes first.
TEST_F(KeyClients, WhatWaitsGoesByPriority) {
  Start(1, 64 << 10);
  server().chunk_rows = 10000;  // 40 KB
  const std::vector<std::string> names = {"large", "urgent", "next"};
  const int large = Declare("large", 40000), urgent = Declare("urgent", 10000), next = Declare("next", 10000);
  ASSERT_TRUE(keys_->Push(large, Filled(40000, 1), -2).ok());
  EXPECT_EQ(Pushes(names), "large 0");
  ASSERT_TRUE(keys_->Push(next, Filled(10000, 1), -1).ok());
  ASSERT_TRUE(keys_->Push(urgent, Filled(10000, 1), 0).ok());
  EXPECT_EQ(Pushes(names), "large 0");
  for (std::size_t i = 0; i < server().got.size(); ++i)
    Acknowledge(std::get<protocol::Push>(server().got[i]));
  EXPECT_EQ(Pushes(names), "large 0, urgent 0, next 0, large 1, large 2, large 3");
  EXPECT_TRUE(keys_->WaitForAll().ok());
}

TEST_F(KeyClients, WithoutPrioritiesPushesGoInTheirOrder) {
  Start(1, 64 << 10);
  server().chunk_rows = 10000;
  const std::vector<std::string> names = {"a", "b", "small"};
  const int a = Declare("a", 20000), b = Declare("b", 20000), small = Declare("small", 20);
  ASSERT_TRUE(keys_->Push(a, Filled(20000, 1)).ok());
  ASSERT_TRUE(keys_->Push(b, Filled(20000, 1)).ok());
  ASSERT_TRUE(keys_->Push(small, Filled(20, 1)).ok());  // too small to wait
  EXPECT_EQ(Pushes(names), "a 0, small 0");
  for (std::size_t i = 0; i < server().got.size(); ++i)
    Acknowledge(std::get<protocol::Push>(server().got[i]));
  EXPECT_EQ(Pushes(names), "a 0, small 0, a 1, b 0, b 1");
}

}  // namespace
}  // namespace penstock::test
