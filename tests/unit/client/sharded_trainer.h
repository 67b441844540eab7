// A trainer of one table, and its server, which the test plays.
//
//   ShardedTrainer trainer;
//   trainer.Welcome({3, 1});                              // the table has 3 shards
//   trainer.PullRows(ids, out);
//   for (const auto& request : trainer.Sent<protocol::PullRows>()) trainer.AnswerRows(request);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/client/sink_trainer.h"

namespace penstock::test {

constexpr std::size_t kRowBytes = 12;  // does not divide the size of a part

inline std::vector<std::int64_t> IdsIn(const Payload& payload) {
  std::vector<std::int64_t> ids(payload.size() / sizeof(std::int64_t));
  payload.CopyTo(reinterpret_cast<std::byte*>(ids.data()));
  return ids;
}

// The row of an id, as the test's server has it.
inline std::vector<float> RowOf(std::int64_t id) {
  const auto value = static_cast<float>(id);
  return {value, value + 0.25f, value + 0.5f};
}

// Keeps all messages.
class KeepingSink : public Connection {
 public:
  explicit KeepingSink(ConnectionHandler& handler) : handler(handler) {}
  void Send(Message message) override { all.push_back(std::move(message)); }
  void Close() override {}
  void Abort() override {}
  ConnectionHandler& handler;
  std::vector<Message> all;
};

class KeepingTransport : public Transport {
 public:
  Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override {
    return Unimplemented("E-test", "a trainer does not listen");
  }
  std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler& handler) override {
    return sink = std::make_shared<KeepingSink>(handler);
  }
  std::shared_ptr<KeepingSink> sink;
};

// A trainer of one table of rows of 3 floats, and what its server sends and receives.
class ShardedTrainer {
 public:
  explicit ShardedTrainer(client::SessionOptions options = {})
      : session(transport_, Named(std::move(options))), job_(SinkJob(1, 1)) {
    job_.params[0].table = true;
    job_.params[0].shape = {100, 3};
    const Program program = job_.Trainer(0);
    EXPECT_TRUE(session.Attach(program).ok());
    contract_ = protocol::ReadTrainer(program).value().contracts.at(job_.servers[0]);
    RemotePiece piece{.pserver = job_.servers[0], .name = job_.params[0].name};
    rows_ = session.DeclareRows(piece).value();
    piece.name = job_.GradName(job_.params[0], 0);
    push_ = session.DeclarePush(piece).value();
    peers_ = session.DeclarePeers(job_.servers).value();
  }
  void Welcome(std::vector<std::uint32_t> shards) {
    Deliver(
        protocol::Welcome{.body = {.part_bytes = 100,
                                   .window = 2,
                                   .chunk_rows = std::vector<std::uint64_t>(contract_.variable_count(), 100),
                                   .shards = std::move(shards)}});
  }
  void Deliver(const protocol::Reply& reply) {
    transport_.sink->handler.OnMessage(
        transport_.sink, protocol::Encode({.contract = contract_.Hash(), .incarnation = 1}, reply));
  }
  Status PullRows(std::span<const std::int64_t> ids, Tensor& out) {
    return session.PullRows(rows_, ids, out);
  }
  Status PullRowsAhead(std::span<const std::int64_t> ids) { return session.PullRowsAhead(rows_, ids); }
  // Answers all parts of a request.
  void AnswerRows(const protocol::PullRows& request) {
    std::string rows;
    for (const std::int64_t id : IdsIn(request.ids))
      rows.append(reinterpret_cast<const char*>(RowOf(id).data()), kRowBytes);
    for (std::uint32_t part = 0; part * std::size_t{100} < rows.size(); ++part) {
      Deliver(protocol::Rows{.request = request.request,
                             .version = request.version,
                             .part = part,
                             .bytes = Payload::Of(rows.substr(part * std::size_t{100}, 100))});
    }
  }
  void EndStep() { EXPECT_TRUE(session.EndStep(peers_).ok()); }
  Status PushRows(const SelectedRows& rows) { return session.PushRows(push_, rows); }
  // What was sent since the last call.
  template <typename E>
  std::vector<E> Sent() {
    std::vector<E> events;
    for (; seen_ < transport_.sink->all.size(); ++seen_) {
      const protocol::Event event = protocol::DecodeEvent(transport_.sink->all[seen_]).value().message;
      if (const E* const one = std::get_if<E>(&event)) events.push_back(*one);
    }
    return events;
  }

 private:
  static client::SessionOptions Named(client::SessionOptions options) {
    options.job = "job";
    return options;
  }
  KeepingTransport transport_;

 public:
  client::Session session;

 private:
  ToyJob job_;
  protocol::Contract contract_;
  RowsHandle rows_;
  PushHandle push_;
  PeersHandle peers_;
  std::size_t seen_ = 0;
};

}  // namespace penstock::test
