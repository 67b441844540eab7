// Messages between processes, over any carrier: gRPC, shared memory, or a simulated network.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen("127.0.0.1:6174", handler));    // a server
//   std::shared_ptr<Connection> server = transport.Connect("127.0.0.1:6174", handler);        // a client
//   server->Send({.head = head, .body = Payload::Of(gradient, 0, gradient.bytes())});
//
// A connection may lose, repeat or reorder messages (the simulated one does). The only guarantee is that a
// message arrives whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock {

// Bytes that stay valid and unchanged while `owner` lives.
struct Bytes {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

// The large part of a message: pieces of memory in order, shared and not copied. It can carry its checksum,
// so that a body for several receivers is read only once to compute it.
class Payload {
 public:
  Payload() = default;
  explicit Payload(Bytes bytes) { Append(std::move(bytes)); }
  static Payload Of(std::string text);
  // `size` bytes of a tensor from `offset` on; shares its buffer.
  static Payload Of(const Tensor& tensor, std::size_t offset, std::size_t size);

  void Append(Bytes bytes);
  void Append(const Payload& more);
  std::size_t size() const { return size_; }
  const std::vector<Bytes>& pieces() const { return pieces_; }
  Payload Part(std::size_t begin, std::size_t size) const;  // shares the memory
  void CopyTo(std::byte* to) const;                         // size() bytes
  std::string ToText() const;

  // CRC-32C of all bytes, if it was set. Append clears it.
  const std::optional<std::uint32_t>& crc32c() const { return crc32c_; }
  void set_crc32c(std::uint32_t crc) { crc32c_ = crc; }

 private:
  std::vector<Bytes> pieces_;
  std::size_t size_ = 0;
  std::optional<std::uint32_t> crc32c_;
};

struct Message {
  std::string head;  // at most kMaxHeadBytes
  Payload body;      // at most kMaxBodyBytes
};
constexpr std::size_t kMaxHeadBytes = 1024;
constexpr std::size_t kMaxBodyBytes = std::size_t{4} << 20;

class Connection {
 public:
  virtual ~Connection() = default;
  // Queues the message; never waits. Thread-safe. No effect after the connection has ended.
  virtual void Send(Message message) = 0;
  // Sends the queued messages, then ends the connection; the other side gets OnClosed. Returns at once.
  virtual void Close() = 0;
  // Ends the connection at once and drops the queued messages.
  virtual void Abort() = 0;
  // Lifts the transport's limits on time and bytes for unknown peers. Called when the handler has accepted
  // the peer's identity.
  virtual void Admit() {}
  // Whether messages never leave this machine's memory, and so need no checksum. May become true when the
  // connection is established, and then stays true.
  virtual bool local() const { return false; }
  // Of a connection that is not established yet: whether its last attempt was refused, because no process
  // listens at the address.
  virtual bool refused() const { return false; }
};

// Memory into which bytes are received; none if `data` is null.
struct Room {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
};

// Receives messages. Calls for one connection come one at a time, from any thread, but never from inside a
// call of Connection or Transport. The handler must not wait. OnClosed is the last call and comes exactly
// once, even after this side's own Close; its status gives the reason (ok: closed in order).
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  virtual void OnMessage(const std::shared_ptr<Connection>& from, Message message) = 0;
  virtual void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) = 0;
  // Returns memory for the body of a message whose head has arrived, which saves a copy; none: the transport
  // allocates. The head is not verified yet. OnMessage follows when the body is complete; if the connection
  // breaks first, OnMessage is not called and the memory may be partly written. Not every transport calls
  // this. Called from any thread, also concurrently with OnMessage, but not after OnClosed.
  virtual Room RoomFor(const std::shared_ptr<Connection>& /*from*/, const std::string& /*head*/,
                       std::size_t /*body*/) {
    return {};
  }
};

// Accepts connections until it is destroyed. The destructor closes open connections and returns when no call
// of the handler is running or will come.
class Listener {
 public:
  virtual ~Listener() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // kUnavailable E-rpc-bind: the address is in use or does not belong to this machine.
  virtual Result<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                   ConnectionHandler& handler) = 0;
  // Returns at once; keeps trying until the server answers or the connection is closed. The handler must live
  // until OnClosed.
  virtual std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) = 0;
};

}  // namespace penstock
