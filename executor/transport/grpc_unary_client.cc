#include <grpc/grpc.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "executor/transport/byte_buffer.h"
#include "executor/transport/grpc_stream.h"
#include "executor/transport/unary.h"

namespace penstock::transport {
namespace {

constexpr int kReconnectWithinMs = 2000;

Status FromGrpc(const std::string& address, const grpc::Status& status) {
  const std::string& text = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Unavailable("E-rpc-unavailable", "pserver ", address, ": ", text);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return DeadlineExceeded("E-rpc-deadline", "pserver ", address, " has not answered in time");
    case grpc::StatusCode::CANCELLED:
      return Cancelled("E-rpc-cancelled", "the call of pserver ", address, " was cancelled");
    default:
      return FailedPrecondition("E-rpc-refused", "pserver ", address, " answers with code ",
                                static_cast<int>(status.error_code()), ": ", text);
  }
}

// The calls in progress. A call enters, ends, and leaves once its `done` has returned.
class LiveCalls {
 public:
  void Enter(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex_);
    ++count_;
    contexts_.insert(context);
    if (cancelled_) context->TryCancel();
  }
  void End(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex_);
    contexts_.erase(context);
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_all();
  }
  void CancelAll() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
  }
  void WaitForAll() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<grpc::ClientContext*> contexts_;  // of calls that have not ended
  int count_ = 0;                            // number of calls that have not left
  bool cancelled_ = false;
};

// One call; owns itself until it has ended. A stub's own unary call would treat a reply without a message as
// an error.
class ClientCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientCall(std::string address, const Payload& request, UnaryDone done, LiveCalls& calls)
      : address_(std::move(address)),
        out_(ToByteBuffer(request.pieces())),
        done_(std::move(done)),
        calls_(calls) {}

  void Start(grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>& stub, const std::string& path,
             Nanoseconds timeout) {
    context_.set_wait_for_ready(true);
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
    stub.PrepareBidiStreamingCall(&context_, path, grpc::StubOptions(), this);
    calls_.Enter(&context_);
    StartWriteLast(&out_, grpc::WriteOptions());
    StartRead(&in_);
    StartCall();
  }

  void OnReadDone(bool ok) override { has_message_ = ok; }
  void OnDone(const grpc::Status& status) override {
    calls_.End(&context_);
    const UnaryDone done = std::move(done_);
    Result<UnaryReply> outcome = Outcome(status);
    LiveCalls& calls = calls_;
    delete this;
    done(std::move(outcome));
    calls.Leave();
  }

 private:
  Result<UnaryReply> Outcome(const grpc::Status& status) const {
    if (!status.ok()) return FromGrpc(address_, status);
    if (!has_message_) return UnaryReply();
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Bytes> pieces, FromByteBuffer(in_));
    Payload reply;
    for (const Bytes& piece : pieces) reply.Append(piece);
    return UnaryReply(std::move(reply));
  }

  const std::string address_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_, out_;
  bool has_message_ = false;
  UnaryDone done_;
  LiveCalls& calls_;
};

class GrpcUnaryClient : public UnaryClient {
 public:
  GrpcUnaryClient(const std::string& address, const std::string& service)
      : address_(address), prefix_(StrCat("/", service, "/")), stub_(Channel(address)) {}
  ~GrpcUnaryClient() override {
    calls_.CancelAll();
    calls_.WaitForAll();
  }

  void Call(const std::string& method, const Payload& request, Nanoseconds timeout, UnaryDone done) override {
    auto* const call = new ClientCall(address_, request, std::move(done), calls_);
    call->Start(stub_, prefix_ + method, timeout);
  }
  void Cancel() override { calls_.CancelAll(); }

 private:
  static std::shared_ptr<grpc::Channel> Channel(const std::string& address) {
    grpc::ChannelArguments arguments;
    TuneUnary([&](const char* name, int value) { arguments.SetInt(name, value); });
    arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectWithinMs);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectWithinMs / 10);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  const std::string address_;
  const std::string prefix_;
  LiveCalls calls_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
};

}  // namespace

std::unique_ptr<UnaryClient> MakeUnaryClient(const std::string& address, const std::string& service) {
  QuietGrpc();
  return std::make_unique<GrpcUnaryClient>(address, service);
}

}  // namespace penstock::transport
