// A stream of a connection for its large bodies, straight over TCP: what gRPC would copy once more on each
// side, and cut into frames, goes from the sender's memory to the receiver's. A further stream of a
// PeerConnection, whose first is gRPC's and carries all else.
//
//   auto stream = std::make_shared<TcpStream>(std::move(socket), member);
//   stream->Run();     // a thread of its own: reads until the end, whose last act is OnClosed
//
// Messages as in a frame (frame.h): u32 head size, u32 body size, head, body, little endian; the last
// thing that a side says that closes is a head of 2^32 - 1 bytes and no body. Sizes are checked before
// anything is allocated. A body is received where the handler has room for it. One message is read while
// the handler has none: what is slow makes the network wait. A second thread writes, what was sent first
// first. The peer's host is lost after 13 s without an answer.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "executor/transport/descriptor.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

class TcpStream : public Connection, public std::enable_shared_from_this<TcpStream> {
 public:
  // The socket is past the gate, and both sides know which connection it belongs to.
  TcpStream(Descriptor socket, ConnectionHandler& handler);

  void Run();

  void Send(Message message) override;
  void Close() override;
  void Abort() override;

 private:
  Status Read();
  bool Receive(void* to, std::size_t size) const;  // false: it broke
  void Write();
  bool WriteAll(const std::deque<Message>& messages) const;
  void SayEnd() const;
  void EndNow(const Status& why);

  const Descriptor socket_;
  ConnectionHandler& handler_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> queue_;
  bool closing_ = false;
  bool said_end_ = false;
  bool ended_ = false;
  Status why_;  // what ended it from this side
};

}  // namespace penstock::transport
