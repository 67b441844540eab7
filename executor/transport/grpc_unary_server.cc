#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "executor/transport/address.h"
#include "executor/transport/byte_buffer.h"
#include "executor/transport/grpc_stream.h"
#include "executor/transport/unary.h"
#include "framework/base/log.h"

namespace penstock::transport {
namespace {

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), StrCat(status.message(), "   [", status.id(), "]")};
}

class ServerCall : public grpc::ServerGenericBidiReactor, public std::enable_shared_from_this<ServerCall> {
 public:
  ServerCall(grpc::GenericCallbackServerContext* context, std::string method, UnaryHandler& handler,
             std::function<void(const std::shared_ptr<ServerCall>&)> on_over)
      : caller_(context->peer()),
        method_(std::move(method)),
        handler_(handler),
        on_over_(std::move(on_over)) {}

  void Start() { StartRead(&in_); }
  // Only the first call counts. From any thread.
  void Answer(Result<UnaryReply> reply) {
    if (answered_.exchange(true)) return;
    if (!reply.ok()) return Finish(ToGrpc(reply.status()));
    if (!reply->has_value()) return Finish(grpc::Status::OK);
    out_ = ToByteBuffer((*reply)->pieces());
    StartWriteAndFinish(&out_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Answer(DataLoss("E-rpc-frame", "a call without a request"));
    const Result<std::vector<Bytes>> pieces = FromByteBuffer(in_);
    in_.Clear();
    if (!pieces.ok()) return Answer(pieces.status());
    Payload request;
    for (const Bytes& piece : *pieces) request.Append(piece);
    handler_.OnCall(caller_, method_, std::move(request), Done());
  }
  void OnDone() override { on_over_(shared_from_this()); }

 private:
  // Answers the call with an error if it is destroyed before the handler has answered.
  struct Ticket {
    explicit Ticket(std::shared_ptr<ServerCall> answers) : call(std::move(answers)) {}
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    const std::shared_ptr<ServerCall> call;
    ~Ticket() { call->Answer(InternalError("E-rpc-unanswered", "nobody has answered this call")); }
  };
  UnaryDone Done() {
    const auto ticket = std::make_shared<Ticket>(shared_from_this());
    return [ticket](Result<UnaryReply> reply) { ticket->call->Answer(std::move(reply)); };
  }

  const std::string caller_, method_;
  UnaryHandler& handler_;
  const std::function<void(const std::shared_ptr<ServerCall>&)> on_over_;
  grpc::ByteBuffer in_, out_;
  std::atomic<bool> answered_ = false;
};

// Ends a call to a server that is stopping.
class StoppedCall : public grpc::ServerGenericBidiReactor {
 public:
  StoppedCall() { Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server stops")); }
  void OnDone() override { delete this; }
};

class UnaryService : public grpc::CallbackGenericService {
 public:
  UnaryService(UnaryHandler& handler, const UnaryServerOptions& options)
      : handler_(handler), prefix_(StrCat("/", options.service, "/")), methods_(options.methods) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::string& path = context->method();
    if (path.compare(0, prefix_.size(), prefix_) != 0) return CallbackGenericService::CreateReactor(context);
    std::string method = path.substr(prefix_.size());
    if (std::find(methods_.begin(), methods_.end(), method) == methods_.end()) {
      return CallbackGenericService::CreateReactor(context);
    }
    const std::lock_guard lock(mutex_);
    if (stopping_) return new StoppedCall();
    const auto call = std::make_shared<ServerCall>(context, std::move(method), handler_,
                                                   [this](const std::shared_ptr<ServerCall>& over) {
                                                     const std::lock_guard gone(mutex_);
                                                     calls_.erase(over);
                                                     changed_.notify_all();
                                                   });
    calls_.insert(call);
    call->Start();
    return call.get();
  }
  // Answers all calls and waits until gRPC has released them.
  void Stop() {
    for (const std::shared_ptr<ServerCall>& call : StopCalls()) {
      call->Answer(Unavailable("E-rpc-stopping", "the server stops"));
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_.empty(); });
  }

 private:
  std::set<std::shared_ptr<ServerCall>> StopCalls() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    return calls_;
  }

  UnaryHandler& handler_;
  const std::string prefix_;
  const std::vector<std::string> methods_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::set<std::shared_ptr<ServerCall>> calls_;  // owns the calls until gRPC has released them
};

class UnaryListener : public Listener {
 public:
  UnaryListener(UnaryHandler& handler, const UnaryServerOptions& options) : service_(handler, options) {}
  ~UnaryListener() override {
    service_.Stop();
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    server_->Wait();
  }

  Status Start(const std::string& address, const std::vector<SocketAddress>& addresses) {
    grpc::ServerBuilder builder;
    TuneUnary([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
    builder.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    for (const SocketAddress& each : addresses) {
      builder.AddListeningPort(each.ToText(), grpc::InsecureServerCredentials());
    }
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr) return OkStatus();
    return Unavailable("E-rpc-bind", "cannot listen on ", address,
                       ": the address is in use or not this machine's");
  }

 private:
  UnaryService service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<Listener>> ListenUnary(const std::string& address, UnaryHandler& handler,
                                              const UnaryServerOptions& options) {
  QuietGrpc();
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses, Resolve(address, /*to_listen=*/true));
  auto listener = std::make_unique<UnaryListener>(handler, options);
  PENSTOCK_RETURN_IF_ERROR(listener->Start(address, addresses));
  if (!AllLoopback(addresses)) {
    const std::string line =
        StrCat("anybody who reaches ", address,
               " may read and change what this server holds: ", options.service, " has no authentication");
    if (options.report) {
      options.report(line);
    } else {
      Log(LogSeverity::kWarning, line);
    }
  }
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace penstock::transport
