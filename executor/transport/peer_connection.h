// One connection of several streams: what its owner and its handler see.
//
//   auto connection = std::make_shared<PeerConnection>(handler);
//   connection->Carry([&](ConnectionHandler& member) { return OpenStream(..., member); });  // and again
//
// Small messages take the first stream, in order. Large bodies take the streams that are for them alone in
// turn, or where there is none all in turn, so that several cores and TCP windows carry them. What is sent
// before the first stream is there waits for it. When one stream breaks, the others are ended, and the
// handler sees one end, after all of them.
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

  // From now on messages take the stream that `open` makes too; its handler is the argument. False, and
  // nothing is opened: this connection ends. An error is that of `open`.
  using Open = std::function<Result<std::shared_ptr<Connection>>(ConnectionHandler&)>;
  enum class Takes { kAll, kLarge };
  Result<bool> Carry(const Open& open, Takes takes = Takes::kAll);

  void Send(Message message) override;
  void Close() override;
  void Abort() override;
  void Admit() override;
  bool local() const override { return local_; }

 protected:
  // A large body comes, or goes after something came; maybe with locks held.
  virtual void OnLarge() {}
  // The last thing that happens: it may be destroyed at once.
  virtual void OnOver() {}
  // It ends without a stream.
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
  Member& ForLarge();  // with the lock held

  void Deliver(Message message);
  void Closed(Member& member, const Status& why);

  ConnectionHandler& handler_;
  std::mutex delivery_;  // calls of the handler come one at a time
  std::atomic<bool> heard_ = false;
  std::atomic<bool> local_ = false;

  std::mutex mutex_;
  std::deque<Member> members_;
  std::vector<Message> early_;
  std::vector<Member*> for_large_;  // those that are for large bodies alone
  std::size_t next_ = 0;            // of large bodies
  std::size_t open_ = 0;            // members that are
  bool closing_ = false, aborted_ = false, ending_ = false;
  Status why_;
};

}  // namespace penstock::transport
