#include "executor/transport/grpc_listen.h"

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "executor/transport/gate.h"
#include "executor/transport/grpc_stream.h"
#include "executor/transport/tls.h"

namespace penstock::transport {
namespace {

// Of one that has not been admitted, all together.
constexpr std::size_t kStrangerBytesMax = std::size_t{64} << 10;

class ServerStream : public Stream, public grpc::ServerGenericBidiReactor {
 public:
  ServerStream(grpc::CallbackServerContext* context, ConnectionHandler& handler, Gate& gate, std::string id,
               std::function<void()> on_over)
      : Stream(handler), context_(context), gate_(gate), id_(std::move(id)), on_over_(std::move(on_over)) {}

  void Start() {
    self_ = shared_from_this();
    Started();
  }
  void Abort() override { context_->TryCancel(); }
  void Admit() override {
    if (!admitted_.exchange(true)) gate_.Admit(id_);
  }

  void OnReadDone(bool ok) override { Read(ok); }
  void OnWriteDone(bool ok) override { Written(ok); }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override {
    Over(cancelled_ ? Unavailable("E-rpc-stream", "its connection broke") : OkStatus());
    gate_.Leave(id_);
    const auto self = std::move(self_);
    on_over_();
  }

 protected:
  void BeginWrite(const grpc::ByteBuffer* frame) override { StartWrite(frame); }
  void BeginRead(grpc::ByteBuffer* frame) override { StartRead(frame); }
  void BeginEnd() override { Finish(grpc::Status::OK); }
  bool MayRead(std::size_t bytes) override {
    if (admitted_) return true;
    read_ += bytes;
    return read_ <= kStrangerBytesMax;
  }
  // Of a stranger no more than one frame is held.
  bool MayReadAhead() const override { return admitted_; }

 private:
  grpc::CallbackServerContext* const context_;
  Gate& gate_;
  const std::string id_;
  const std::function<void()> on_over_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> admitted_ = false;
  std::size_t read_ = 0;  // before it was admitted
  std::shared_ptr<Connection> self_;
};

// Ends a stream that nobody knows.
class Refused : public grpc::ServerGenericBidiReactor {
 public:
  Refused() {
    Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "E-rpc-token: the stream shows no pass"));
  }
  void OnDone() override { delete this; }
};

class Service : public grpc::CallbackGenericService {
 public:
  Service(ConnectionHandler& handler, Gate& gate) : handler_(handler), gate_(gate) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() != kTalkMethod) return CallbackGenericService::CreateReactor(context);
    const auto pass = context->client_metadata().find(kPassKey);
    std::optional<std::string> id;
    if (pass != context->client_metadata().end())
      id = gate_.Claim({pass->second.data(), pass->second.size()});
    if (!id) return new Refused();
    {
      const std::lock_guard lock(mutex_);
      ++streams_;
    }
    const auto stream = std::make_shared<ServerStream>(context, handler_, gate_, *id, [this] {
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
  Gate& gate_;
  std::mutex mutex_;
  std::condition_variable gone_;
  int streams_ = 0;
};

class GrpcListener : public Listener {
 public:
  GrpcListener(ConnectionHandler& handler, std::unique_ptr<Gate> gate)
      : gate_(std::move(gate)), service_(handler, *gate_) {}
  ~GrpcListener() override {
    gate_->Stop();
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    server_->Wait();
    service_.WaitForStreams();  // after this the handler is not called any more
  }

  Status Start(const std::string& address, const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    TuneChannel([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5000);
    using Builder = grpc::ServerBuilder::experimental_type;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Builder::ExternalConnectionType::FROM_FD,
                                                                     credentials);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {  // of all that it needs, only this can be wrong
      return InvalidArgument("E-rpc-tls-files", "the certificate or key of ", address,
                             " is not one, or they do not belong together");
    }
    return gate_->Start([this](Descriptor socket) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = socket.Release();
      acceptor_->HandleNewConnection(&connection);
    });
  }

 private:
  const std::unique_ptr<Gate> gate_;
  Service service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<Listener>> ListenByGrpc(const std::string& address, ConnectionHandler& handler,
                                               const GrpcTransportOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                            ServerCredentialsOf(options.tls));
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Gate> gate,
                            Gate::Open(address, {.token = options.token,
                                                 .tls = ServerSpeaksTls(options.tls),
                                                 .patience = options.patience,
                                                 .report = options.report}));
  auto listener = std::make_unique<GrpcListener>(handler, std::move(gate));
  PENSTOCK_RETURN_IF_ERROR(listener->Start(address, credentials));
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace penstock::transport
