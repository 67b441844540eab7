// The common part of both ends of a gRPC stream, and the settings of channels and servers.
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
inline constexpr char kPassKey[] = "penstock-pass";  // metadata: the pass of a stream (proof.h)
inline constexpr char kLeadKey[] = "penstock-lead";  // metadata of a further stream: the first one's pass

// Silences gRPC's own log lines, which say less than our errors; GRPC_VERBOSITY enables them.
void QuietGrpc();

// Settings that move the most bytes for the least processor time, through set(name, int).
void TuneUnary(const std::function<void(const char*, int)>& set);
// The same for streams, with the limits of our frames and with keepalive pings, which other implementations
// may take for an attack.
void TuneChannel(const std::function<void(const char*, int)>& set);

// One stream of a PeerConnection: queues and writes outgoing messages, reads frames and calls the handler. At
// most one write is in progress; `open_` allows writes. At most one frame is read ahead while another is
// handled, so two frames per stream wait for a slow handler, and the rest waits in the network.
class Stream : public Connection, public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(ConnectionHandler& handler) : handler_(handler) {}

  void Send(Message message) override;
  void Close() override;

 protected:
  virtual void BeginWrite(const grpc::ByteBuffer* frame) = 0;
  virtual void BeginRead(grpc::ByteBuffer* frame) = 0;
  // The queue is empty and nothing more will be sent. Called once.
  virtual void BeginEnd() = 0;
  // Whether a frame of that size is allowed; if not, the connection is aborted.
  virtual bool MayRead(std::size_t) { return true; }
  // Whether to read the next frame while one is handled.
  virtual bool MayReadAhead() const { return true; }

  void Started();
  void Written(bool ok);
  void Read(bool ok);
  // Releases queued messages, then makes the handler's last call. That call may destroy this stream on
  // another thread, so this function must not use the stream afterwards.
  void Over(const Status& why);

 private:
  void MoveOn();  // call with the lock held: starts whatever can start
  void Handle(const grpc::ByteBuffer& frame);

  ConnectionHandler& handler_;
  std::mutex mutex_;
  std::deque<Message> queue_;
  grpc::ByteBuffer in_, next_, out_;
  bool handling_ = false;   // a thread is in Read, handling a frame
  bool next_came_ = false;  // meanwhile: next_, or (not next_ok_) the end
  bool next_ok_ = false;
  bool started_ = false;
  bool open_ = true;
  bool writing_ = false;
  bool closing_ = false;
  bool ended_ = false;
};

}  // namespace penstock::transport
