// A session without servers: counts the messages that it sends; the test delivers the servers' messages.
//
//   SinkTrainer trainer(100, 2);                   // 100 parameters, 2 servers; already welcomed
//   trainer.PushAll();  trainer.EndStep();
//   trainer.Acknowledge(0, 7, 2);                  // step, gradient, credit
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "executor/client/session.h"
#include "executor/protocol/native_codec.h"
#include "tests/sim/toy_job.h"

namespace penstock::test {

// Accepts messages and keeps only the last one.
class Sink : public Connection {
 public:
  explicit Sink(ConnectionHandler& handler) : handler(handler) {}
  void Send(Message message) override {
    ++sent;
    last = std::move(message);
  }
  void Close() override {}
  void Abort() override {}

  ConnectionHandler& handler;
  int sent = 0;
  Message last;
};

class SinkTransport : public Transport {
 public:
  Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override {
    return Unimplemented("E-test", "a trainer does not listen");
  }
  std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler& handler) override {
    sinks.push_back(std::make_shared<Sink>(handler));
    return sinks.back();
  }
  // Delivers a message from a server, numbered in the order of connections.
  void Deliver(std::size_t server, Message message) {
    sinks[server]->handler.OnMessage(sinks[server], std::move(message));
  }
  std::vector<std::shared_ptr<Sink>> sinks;
};

inline ToyJob SinkJob(int variables, int servers) {
  ToyJob job;
  job.servers.clear();
  for (int i = 0; i < servers; ++i) job.servers.push_back(StrCat("server", 10 + i, ":1"));
  for (int i = 0; i < variables; ++i)
    job.params.push_back({.name = StrCat("w", 10000 + i), .shape = {2, 2}, .server = i % servers});
  return job;
}

// Variable i is on server i % servers, at position i / servers. With options.joins, `steps_ended` says what
// the servers have had of an earlier process of this trainer.
class SinkTrainer {
 public:
  explicit SinkTrainer(int variables, int servers = 1, client::SessionOptions options = {},
                       std::uint64_t steps_ended = 0)
      : session(transport, Named(std::move(options))), servers_(static_cast<std::size_t>(servers)) {
    const ToyJob job = SinkJob(variables, servers);
    const Program program = job.Trainer(0);
    const protocol::TrainerContracts facts = protocol::ReadTrainer(program).value();
    EXPECT_TRUE(session.Attach(program).ok());
    for (std::size_t s = 0; s < servers_; ++s) {
      contracts_.push_back(facts.contracts.at(job.servers[s]));
      senders_.push_back({.contract = contracts_[s].Hash(), .incarnation = 1});
      Deliver(s, protocol::Welcome{
                     .steps_ended = steps_ended,
                     .body = {.part_bytes = 1000,
                              .window = 2,
                              .chunk_rows = std::vector<std::uint64_t>(contracts_[s].variable_count(), 2)}});
    }
    EXPECT_TRUE(session.Join());
    for (std::size_t i = 0; i < static_cast<std::size_t>(variables); ++i) {
      const protocol::Contract& contract = contracts_[i % servers_];
      const std::string& server = job.servers[i % servers_];
      pushes_.push_back(
          session.DeclarePush({.pserver = server, .name = contract.grads[i / servers_].name}).value());
      pulls_.push_back(
          session.DeclarePull({.pserver = server, .name = contract.params[i / servers_].name}).value());
      pulled.emplace_back(DType::kFp32, Shape{2, 2});
    }
    peers_ = session.DeclarePeers(job.servers).value();
    std::fill_n(value_.Span<float>().begin(), 4, 7.0f);
  }

  void Push(std::size_t i) { EXPECT_TRUE(session.Push(pushes_[i], value_).ok()); }
  void PushAll() {
    for (std::size_t i = 0; i < pushes_.size(); ++i) Push(i);
  }
  void EndStep() { EXPECT_TRUE(session.EndStep(peers_).ok()); }
  void Pull(std::size_t i) { EXPECT_TRUE(session.Pull(pulls_[i], pulled[i]).ok()); }
  void PullNext(std::size_t i) { EXPECT_TRUE(session.PullNext(pulls_[i], pulled[i]).ok()); }
  bool IsPulling(std::size_t i) const { return session.IsPulling(pulls_[i]); }
  void Acknowledge(std::uint64_t step, std::size_t i, std::uint64_t credit) {
    transport.Deliver(i % servers_, Pushed(step, i, credit));
  }
  void AnswerPull(std::uint64_t version, std::size_t i) {
    transport.Deliver(i % servers_, Pulled(version, i));
  }
  // The messages that the server of variable i would send.
  Message Pushed(std::uint64_t step, std::size_t i, std::uint64_t credit) const {
    const std::size_t params = contracts_[i % servers_].params.size();
    return Written(i % servers_,
                   protocol::Pushed{.at = {static_cast<std::uint32_t>(params + i / servers_), 0},
                                    .step = step,
                                    .welcome_below = credit});
  }
  Message Pulled(std::uint64_t version, std::size_t i) const {
    return Written(i % servers_, protocol::Pulled{.at = {static_cast<std::uint32_t>(i / servers_), 0},
                                                  .version = version,
                                                  .bytes = Payload::Of(value_, 0, value_.bytes())});
  }
  void Deliver(std::size_t server, const protocol::Reply& reply) {
    transport.Deliver(server, Written(server, reply));
  }
  int sent() const {
    int all = 0;
    for (const auto& sink : transport.sinks) all += sink->sent;
    return all;
  }

  SinkTransport transport;
  client::Session session;
  std::vector<Tensor> pulled;

 private:
  static client::SessionOptions Named(client::SessionOptions options) {
    options.job = "job";
    options.trainers = 2;
    return options;
  }
  Message Written(std::size_t server, const protocol::Reply& reply) const {
    return protocol::Encode(senders_[server], reply);
  }

  const std::size_t servers_;
  std::vector<protocol::Contract> contracts_;
  std::vector<protocol::Sender> senders_;
  std::vector<PushHandle> pushes_;
  std::vector<PullHandle> pulls_;
  PeersHandle peers_;
  Tensor value_{DType::kFp32, {2, 2}};
};

}  // namespace penstock::test
