// One connection with several streams, as its owner and its handler see it.
//
//   auto connection = std::make_shared<PeerConnection>(handler);
//   connection->Carry([&](ConnectionHandler& member) { return OpenStream(..., member); });  // and again
//
// Small messages use the first stream, in order. Large bodies use the streams reserved for them in turn, or,
// if there are none, all streams in turn, so that several cores and TCP windows carry them. Messages sent
// before the first stream exists wait for it. When one stream breaks, the others are ended, and the handler
// is told once, after all have ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

inline constexpr std::size_t kLargeBytes = std::size_t{256} << 10;

class PeerConnection : public Connection, public std::enable_shared_from_this<PeerConnection> {
 public:
  explicit PeerConnection(ConnectionHandler& handler) : handler_(handler) {}

  // Adds the stream that `open` makes; `open` gets the stream's handler. Returns false without calling `open`
  // if this connection is ending; an error is that of `open`.
  using Open = std::function<Result<std::shared_ptr<Connection>>(ConnectionHandler&)>;
  enum class Takes { kAll, kLarge };
  Result<bool> Carry(const Open& open, Takes takes = Takes::kAll);

  void Send(Message message) override;
  void Close() override;
  void Abort() override;
  void Admit() override;
  bool local() const override { return local_; }

 protected:
  // Called when a large body arrives, or is sent after a first message arrived. Locks may be held.
  virtual void OnLarge() {}
  // The last call: the object may be destroyed at once.
  virtual void OnOver() {}
  // Ends the connection without a stream.
  void EndWithout(const Status& why);

 private:
  struct Member final : ConnectionHandler {
    explicit Member(PeerConnection& of) : connection(of) {}
    void OnMessage(const std::shared_ptr<Connection>&, Message message) override {
      connection.Deliver(std::move(message));
    }
    void OnClosed(const std::shared_ptr<Connection>&, const Status& why) override {
      connection.Closed(*this, why);
    }
    Room RoomFor(const std::shared_ptr<Connection>&, const std::string& head, std::size_t body) override {
      return connection.handler_.RoomFor(connection.shared_from_this(), head, body);
    }
    PeerConnection& connection;
    std::shared_ptr<Connection> stream;
    bool open = true;
  };
  Member& ForLarge();  // call with the lock held

  void Deliver(Message message);
  void Closed(Member& member, const Status& why);

  ConnectionHandler& handler_;
  std::mutex delivery_;  // serialises calls of the handler
  std::atomic<bool> heard_ = false;
  std::atomic<bool> local_ = false;

  std::mutex mutex_;
  std::deque<Member> members_;
  std::vector<Message> early_;
  std::vector<Member*> for_large_;  // streams reserved for large bodies
  std::size_t next_ = 0;            // the next one for a large body
  std::size_t open_ = 0;            // open members
  bool closing_ = false, aborted_ = false, ending_ = false;
  Status why_;
};

}  // namespace penstock::transport
