// Messages between processes, whatever carries them: gRPC, shared memory, or a simulated network.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen("127.0.0.1:6174", handler));    // a server
//   std::shared_ptr<Connection> server = transport.Connect("127.0.0.1:6174", handler);        // a client
//   server->Send({.head = head, .body = Payload::Of(gradient)});
//
// A connection may lose, repeat or reorder messages (the simulated one does); whoever uses it counts on
// nothing more than that a message arrives whole or not at all.
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

// Bytes that stay as they are while `owner` lives.
struct Bytes {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

// The large part of a message: pieces of memory in order, shared and not copied. It may carry its
// checksum, so that a body that goes to several receivers is read for it once.
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
  Payload Part(std::size_t begin, std::size_t size) const;  // of it; shared
  void CopyTo(std::byte* to) const;                         // size() bytes
  std::string ToText() const;

  // CRC-32C of all the bytes, where somebody has told it. Append forgets it.
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
  // Queues the message; never waits. Thread-safe. After the end it does nothing.
  virtual void Send(Message message) = 0;
  // Sends what is queued, then ends the connection; the other side sees OnClosed. Returns at once.
  virtual void Close() = 0;
  // Ends it now, whatever is queued or hangs. Returns at once.
  virtual void Abort() = 0;
  // Its handler accepts what the other side has said of itself: bounds on time and bytes that a transport
  // has for strangers end.
  virtual void Admit() {}
  // Whether messages never leave this machine's memory: then they need no checksum. May become true when
  // the connection comes about, and then stays so.
  virtual bool local() const { return false; }
};

// Memory that bytes are to be received into; none if `data` is null.
struct Room {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
};

// Gets what arrives. Calls for one connection come one at a time, from any thread but never inside a call
// of Connection or Transport, and must not wait. OnClosed is the last one, comes once, and comes also
// after this side's own Close; its status says why (ok: in order).
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  virtual void OnMessage(const std::shared_ptr<Connection>& from, Message message) = 0;
  virtual void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) = 0;
  // Where the body of a message, whose head has come, is to be received, so that nobody need copy it; none:
  // in new memory. Nothing of the head is verified. The message comes as any other, after the body is there;
  // where the connection breaks first it never comes, and the memory may be written in part. Not every
  // transport asks. From any thread, also beside OnMessage, but not after OnClosed.
  virtual Room RoomFor(const std::shared_ptr<Connection>& /*from*/, const std::string& /*head*/,
                       std::size_t /*body*/) {
    return {};
  }
};

// Accepts connections until it is destroyed; that closes what is still open, and returns when no call of
// the handler is running or will come.
class Listener {
 public:
  virtual ~Listener() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // kUnavailable E-rpc-bind: the address is in use or not this machine's.
  virtual Result<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                   ConnectionHandler& handler) = 0;
  // Returns at once; tries until the server is there or the connection is closed. The handler must outlive
  // OnClosed.
  virtual std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) = 0;
};

}  // namespace penstock
