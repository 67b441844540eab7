// A stream for a connection's large bodies, directly over TCP. Bodies go from the sender's memory to the
// receiver's; gRPC would copy them once more on each side and cut them into frames. It is the second stream
// of a PeerConnection, whose first stream is gRPC's and carries all other messages.
//
//   auto stream = std::make_shared<TcpStream>(std::move(socket), member);
//   stream->Run();     // on a thread of its own: reads until the end, then calls OnClosed
//
// Messages are encoded as in a frame (frame.h): u32 head size, u32 body size, head, body, little endian. A
// side that closes sends a head size of 2^32 - 1 and no body at the end. Sizes are checked before anything is
// allocated. A body is received into the memory that the handler provides, if any. Only one message is read
// while the handler is busy, so a slow handler makes the network wait. A second thread writes, in the order
// of sending. The peer's host counts as lost after 13 s without an answer.
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
  // `socket` must have passed the gate, and both sides must know its connection.
  TcpStream(Descriptor socket, ConnectionHandler& handler);

  void Run();

  void Send(Message message) override;
  void Close() override;
  void Abort() override;

 private:
  Status Read();
  bool Receive(void* to, std::size_t size) const;  // false: the connection broke
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
  Status why_;  // why this side ended it
};

}  // namespace penstock::transport
