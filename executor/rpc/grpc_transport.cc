#include "executor/rpc/grpc_transport.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "executor/rpc/frame.h"

namespace penstock {
namespace {

constexpr char kMethod[] = "/penstock.Peer/Talk";
constexpr std::size_t kFrameBytes = std::size_t{256} << 10;  // small messages are joined up to this
constexpr int kMiB = 1 << 20;

// peers/RESULTS.md, section 5: what moved most bytes for the least processor time.
template <typename SetInt>
void Tune(SetInt set) {
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kMaxBodyBytes + kFrameBytes + 4096));
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  set("grpc.experimental.tcp_read_chunk_size", 4 * kMiB);
  set("grpc.experimental.tcp_max_read_chunk_size", 16 * kMiB);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16 * kMiB - 1);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 * kMiB);
  set(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 16 * kMiB);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A host that is gone without a word is found after at most 5 + 8 seconds, by either side.
  set(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 8000);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, 4000);
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
}

// gRPC's own log lines say less than our errors do; GRPC_VERBOSITY brings them back.
void QuietGrpc() {
  static const bool once = [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  (void)once;
}

grpc::ByteBuffer ToByteBuffer(const std::vector<Bytes>& pieces) {
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces.size());
  for (const Bytes& piece : pieces) {
    using Owner = std::shared_ptr<const void>;
    slices.emplace_back(
        const_cast<std::byte*>(piece.data), piece.size,
        [](void* owner) { delete static_cast<Owner*>(owner); }, new Owner(piece.owner));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Result<std::vector<Message>> FromByteBuffer(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) return DataLoss("E-rpc-frame", "a frame cannot be read");
  std::vector<Bytes> pieces;
  pieces.reserve(slices->size());
  for (const grpc::Slice& slice : *slices) {
    pieces.push_back({slices, reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
  }
  return SplitFrame(pieces);
}

// What both ends of a stream share: the queue of messages to send, and reading. At most one write is under
// way; `open_` says that writes may be started.
class Stream : public Connection, public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(ConnectionHandler& handler) : handler_(handler) {}

  void Send(Message message) override {
    const std::lock_guard lock(mutex_);
    if (!open_ || closing_) return;
    queue_.push_back(std::move(message));
    MoveOn();
  }
  void Close() override {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    MoveOn();
  }

 protected:
  virtual void BeginWrite(const grpc::ByteBuffer* frame) = 0;
  virtual void BeginRead(grpc::ByteBuffer* frame) = 0;
  // The queue is empty and nothing more will be sent; called once.
  virtual void BeginEnd() = 0;

  // With the lock held: starts what can be started.
  void MoveOn() {
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
    } while (!queue_.empty() && bytes + FrameBytes(queue_.front()) <= kFrameBytes);
    out_ = ToByteBuffer(JoinFrame(joined));
    writing_ = true;
    BeginWrite(&out_);
  }

  void Started() {
    const std::lock_guard lock(mutex_);
    started_ = true;
    BeginRead(&in_);
    MoveOn();
  }
  void Written(bool ok) {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    out_.Clear();
    if (!ok) open_ = false;
    MoveOn();
  }
  void Read(bool ok) {
    if (!ok) {  // the other side has sent its last
      const std::lock_guard lock(mutex_);
      open_ = false;
      MoveOn();
      return;
    }
    const Result<std::vector<Message>> messages = FromByteBuffer(in_);
    in_.Clear();
    if (messages.ok()) {
      for (const Message& message : *messages) handler_.OnMessage(shared_from_this(), message);
    } else {
      Abort();
    }
    const std::lock_guard lock(mutex_);
    BeginRead(&in_);
  }
  void Over(const Status& why) { handler_.OnClosed(shared_from_this(), why); }

  std::mutex mutex_;
  bool started_ = false;

 private:
  ConnectionHandler& handler_;
  std::deque<Message> queue_;
  grpc::ByteBuffer in_, out_;
  bool open_ = true;
  bool writing_ = false;
  bool closing_ = false;
  bool ended_ = false;
};

// The client streams of one transport. What is over is kept here until the transport takes it down: the last
// owner of a channel must not be one of gRPC's own threads, which would have to wait for itself, nor outlive
// the process's main.
class ClientStreams {
 public:
  void Begin() {
    const std::lock_guard lock(mutex_);
    ++live_;
  }
  void End(std::shared_ptr<Connection> stream) {
    const std::lock_guard lock(mutex_);
    over_.push_back(std::move(stream));
    --live_;
    changed_.notify_all();
  }
  std::vector<std::shared_ptr<Connection>> TakeOver() {
    const std::lock_guard lock(mutex_);
    return std::exchange(over_, {});
  }
  void WaitForAll() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return live_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int live_ = 0;
  std::vector<std::shared_ptr<Connection>> over_;
};

// What gRPC's words for the end of a stream mean.
Status Loss(const std::string& words) {
  const auto says = [&](const char* text) { return words.find(text) != std::string::npos; };
  if (says("DNS resolution failed"))
    return Unavailable("E-rpc-unreachable", "its host name does not resolve");
  for (const char* text : {"No route to host", "Network is unreachable", "Host is unreachable"}) {
    if (says(text)) return Unavailable("E-rpc-unreachable", "there is no route to its address: ", text);
  }
  if (says("keepalive watchdog")) return Unavailable("E-rpc-stream", "its connection broke");
  return Unavailable("E-rpc-stream", words);
}

// Why nothing can listen at an address.
std::string ListenTrouble(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon == std::string::npos ? address.size() : colon);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) return StrCat("its host name does not resolve: ", gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  const int probe = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_ours = probe >= 0 && bind(probe, found->ai_addr, found->ai_addrlen) == 0;  // to any port
  if (probe >= 0) close(probe);
  return is_ours ? "the port is in use" : "the address is not this machine's";
}

class ClientStream : public Stream, public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientStream(const std::shared_ptr<grpc::Channel>& channel, ConnectionHandler& handler,
               std::shared_ptr<ClientStreams> streams)
      : Stream(handler), channel_(channel), stub_(channel), streams_(std::move(streams)) {}

  void Start() {
    self_ = shared_from_this();
    streams_->Begin();
    stub_.PrepareBidiStreamingCall(&context_, kMethod, grpc::StubOptions(), this);
    AddHold();  // until BeginEnd: writes are started from any thread
    StartCall();
    Started();
  }
  void Abort() override { context_.TryCancel(); }

  void OnReadDone(bool ok) override { Read(ok); }
  void OnWriteDone(bool ok) override { Written(ok); }
  void OnDone(const grpc::Status& status) override {
    Over(status.ok() ? OkStatus() : Loss(status.error_message()));
    const std::shared_ptr<ClientStreams> streams = streams_;
    streams->End(std::move(self_));
  }

 protected:
  void BeginWrite(const grpc::ByteBuffer* frame) override { StartWrite(frame); }
  void BeginRead(grpc::ByteBuffer* frame) override { StartRead(frame); }
  void BeginEnd() override {
    StartWritesDone();
    RemoveHold();
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  const std::shared_ptr<ClientStreams> streams_;
  std::shared_ptr<Connection> self_;
};

class ServerStream : public Stream, public grpc::ServerGenericBidiReactor {
 public:
  ServerStream(grpc::CallbackServerContext* context, ConnectionHandler& handler,
               std::function<void()> on_over)
      : Stream(handler), context_(context), on_over_(std::move(on_over)) {}

  void Start() {
    self_ = shared_from_this();
    Started();
  }
  void Abort() override { context_->TryCancel(); }

  void OnReadDone(bool ok) override { Read(ok); }
  void OnWriteDone(bool ok) override { Written(ok); }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override {
    Over(cancelled_ ? Unavailable("E-rpc-stream", "its connection broke") : OkStatus());
    const auto self = std::move(self_);
    on_over_();
  }

 protected:
  void BeginWrite(const grpc::ByteBuffer* frame) override { StartWrite(frame); }
  void BeginRead(grpc::ByteBuffer* frame) override { StartRead(frame); }
  void BeginEnd() override { Finish(grpc::Status::OK); }

 private:
  grpc::CallbackServerContext* const context_;
  const std::function<void()> on_over_;
  std::atomic<bool> cancelled_ = false;
  std::shared_ptr<Connection> self_;
};

class Service : public grpc::CallbackGenericService {
 public:
  explicit Service(ConnectionHandler& handler) : handler_(handler) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() != kMethod) return CallbackGenericService::CreateReactor(context);
    {
      const std::lock_guard lock(mutex_);
      ++streams_;
    }
    const auto stream = std::make_shared<ServerStream>(context, handler_, [this] {
      const std::lock_guard lock(mutex_);
      --streams_;
      gone_.notify_all();
    });
    stream->Start();
    return stream.get();
  }
  void WaitForStreams() {
    std::unique_lock lock(mutex_);
    gone_.wait(lock, [&] { return streams_ == 0; });
  }

 private:
  ConnectionHandler& handler_;
  std::mutex mutex_;
  std::condition_variable gone_;
  int streams_ = 0;
};

class GrpcListener : public Listener {
 public:
  explicit GrpcListener(ConnectionHandler& handler) : service_(handler) {}
  ~GrpcListener() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    server_->Wait();
    service_.WaitForStreams();  // after this the handler is not called any more
  }

  Status Start(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    Tune([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port != 0) return OkStatus();
    return Unavailable("E-rpc-bind", "cannot listen on ", address, ": ", ListenTrouble(address));
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcTransport : public Transport {
 public:
  // Its owner has closed or aborted every connection: what is left is the end of gRPC's last calls.
  ~GrpcTransport() override {
    streams_->WaitForAll();
    streams_->TakeOver();
  }

  Result<std::unique_ptr<Listener>> Listen(const std::string& address, ConnectionHandler& handler) override {
    auto listener = std::make_unique<GrpcListener>(handler);
    PENSTOCK_RETURN_IF_ERROR(listener->Start(address));
    return std::unique_ptr<Listener>(std::move(listener));
  }

  std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) override {
    grpc::ChannelArguments arguments;
    Tune([&](const char* name, int value) { arguments.SetInt(name, value); });
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // jobs in one process share no connection
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    auto stream = std::make_shared<ClientStream>(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments), handler, streams_);
    streams_->TakeOver();  // not the last channels: the new one is there
    stream->Start();
    return stream;
  }

 private:
  const std::shared_ptr<ClientStreams> streams_ = std::make_shared<ClientStreams>();
};

}  // namespace

std::unique_ptr<Transport> MakeGrpcTransport() {
  QuietGrpc();
  return std::make_unique<GrpcTransport>();
}

}  // namespace penstock
