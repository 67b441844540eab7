// What both ends of a gRPC stream share, and the settings of channels and servers.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/runtime/transport.h"

namespace penstock::transport {

inline constexpr char kTalkMethod[] = "/penstock.Peer/Talk";
inline constexpr char kPassKey[] = "penstock-pass";  // metadata: what a stream shows (proof.h)
inline constexpr char kLeadKey[] = "penstock-lead";  // metadata of a further stream: the pass of the first

// gRPC's own log lines say less than our errors do; GRPC_VERBOSITY brings them back.
void QuietGrpc();

// What moves most bytes for the least processor time; set(name, int).
void TuneUnary(const std::function<void(const char*, int)>& set);
// The same for streams, with the limits of our frames and with keepalive pings, which peers of other makes
// may take for an attack.
void TuneChannel(const std::function<void(const char*, int)>& set);

// One stream of a PeerConnection, its handler: the queue of messages to send, and reading. At most one write
// is under way; `open_` says that writes may be started. The next frame is read while one is handled, and no
// further one before that is handled too: two frames a stream is what waits for a slow handler, the rest
// waits in the network.
class Stream : public Connection, public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(ConnectionHandler& handler) : handler_(handler) {}

  void Send(Message message) override;
  void Close() override;

 protected:
  virtual void BeginWrite(const grpc::ByteBuffer* frame) = 0;
  virtual void BeginRead(grpc::ByteBuffer* frame) = 0;
  // The queue is empty and nothing more will be sent; called once.
  virtual void BeginEnd() = 0;
  // Whether a frame of that size may come; if not, the connection is aborted.
  virtual bool MayRead(std::size_t) { return true; }
  // Whether the next frame may come while one is handled.
  virtual bool MayReadAhead() const { return true; }

  void Started();
  void Written(bool ok);
  void Read(bool ok);
  // The last call of the handler, which may destroy this stream elsewhere at once: no pointer to it may be
  // left here. What is still queued is let go of first.
  void Over(const Status& why);

 private:
  void MoveOn();  // with the lock held: starts what can be started
  void Handle(const grpc::ByteBuffer& frame);

  ConnectionHandler& handler_;
  std::mutex mutex_;
  std::deque<Message> queue_;
  grpc::ByteBuffer in_, next_, out_;
  bool handling_ = false;   // a thread is in Read, and handles what comes
  bool next_came_ = false;  // meanwhile: next_, or (not next_ok_) the end
  bool next_ok_ = false;
  bool started_ = false;
  bool open_ = true;
  bool writing_ = false;
  bool closing_ = false;
  bool ended_ = false;
};

}  // namespace penstock::transport
