#include "executor/transport/grpc_stream.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <new>
#include <utility>

#include "executor/transport/byte_buffer.h"
#include "executor/transport/frame.h"
#include "framework/base/environment.h"

namespace penstock::transport {
namespace {

constexpr std::size_t kFrameBytes = std::size_t{256} << 10;  // small messages are joined up to this
constexpr int kMiB = 1 << 20;

Result<std::vector<Message>> MessagesOf(const grpc::ByteBuffer& buffer) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Bytes> pieces, FromByteBuffer(buffer));
  return SplitFrame(pieces);
}

}  // namespace

void QuietGrpc() {
  static const bool once = [] {
    if (env::Text("GRPC_VERBOSITY").empty()) gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  (void)once;
}

// The settings that moved the most bytes for the least processor time in our measurements.
void TuneUnary(const std::function<void(const char*, int)>& set) {
  set("grpc.experimental.tcp_read_chunk_size", 4 * kMiB);
  set("grpc.experimental.tcp_max_read_chunk_size", 16 * kMiB);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16 * kMiB - 1);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 * kMiB);
  set(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 16 * kMiB);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
}

void TuneChannel(const std::function<void(const char*, int)>& set) {
  TuneUnary(set);
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kMaxBodyBytes + kFrameBytes + 4096));
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  // Either side detects a vanished host within 5 + 8 seconds.
  set(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 8000);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, 4000);
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
}

void Stream::Send(Message message) {
  const std::lock_guard lock(mutex_);
  if (!open_ || closing_) return;
  queue_.push_back(std::move(message));
  MoveOn();
}

void Stream::Close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  MoveOn();
}

void Stream::MoveOn() {
  if (writing_ || ended_ || !started_) return;
  if (queue_.empty() || !open_) {
    if (!closing_ && open_) return;
    ended_ = true;
    BeginEnd();
    return;
  }
  std::vector<Message> joined;
  std::size_t bytes = 0;
  do {
    bytes += FrameBytes(queue_.front());
    joined.push_back(std::move(queue_.front()));
    queue_.pop_front();
  } while (!queue_.empty() && bytes + FrameBytes(queue_.front()) <= kFrameBytes &&
           joined.size() < kFrameMessagesMax);
  out_ = ToByteBuffer(JoinFrame(joined));
  writing_ = true;
  BeginWrite(&out_);
}

void Stream::Started() {
  const std::lock_guard lock(mutex_);
  started_ = true;
  BeginRead(&in_);
  MoveOn();
}

void Stream::Written(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  out_.Clear();
  if (!ok) open_ = false;
  MoveOn();
}

// One thread handles frames. Meanwhile at most one more frame, or the end, arrives and waits for that thread.
void Stream::Read(bool ok) {
  grpc::ByteBuffer frame;
  {
    const std::lock_guard lock(mutex_);
    if (handling_) {
      if (ok) next_.Swap(&in_);
      next_came_ = true;
      next_ok_ = ok;
      return;
    }
    handling_ = true;
    frame.Swap(&in_);
  }
  while (ok) {
    const bool may_read = MayRead(frame.Length());
    const bool ahead = may_read && MayReadAhead();
    if (ahead) BeginRead(&in_);
    if (may_read) {
      Handle(frame);
    } else {
      Abort();
    }
    const std::lock_guard lock(mutex_);
    if (!ahead) {
      handling_ = false;
      BeginRead(&in_);
      return;
    }
    handling_ = std::exchange(next_came_, false);
    if (!handling_) return;
    ok = next_ok_;
    frame.Clear();
    frame.Swap(&next_);
  }
  const std::lock_guard lock(mutex_);  // the other side has ended the stream
  open_ = false;
  MoveOn();
}

void Stream::Over(const Status& why) {
  {
    std::deque<Message> unsent;
    const std::lock_guard lock(mutex_);
    unsent.swap(queue_);
  }
  handler_.OnClosed(nullptr, why);
}

// If memory runs out while a peer sends, only the connection ends, not the process.
void Stream::Handle(const grpc::ByteBuffer& frame) try {
  const Result<std::vector<Message>> messages = MessagesOf(frame);
  if (!messages.ok()) return Abort();
  for (const Message& message : *messages) handler_.OnMessage(shared_from_this(), message);
} catch (const std::bad_alloc&) {
  Abort();
}

}  // namespace penstock::transport
