#include "executor/transport/grpc_listen.h"

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "executor/transport/bodies_listen.h"
#include "executor/transport/gate.h"
#include "executor/transport/grpc_stream.h"
#include "executor/transport/local_listen.h"
#include "executor/transport/peer_connection.h"
#include "executor/transport/tls.h"

namespace penstock::transport {
namespace {

// A client's connection as the handler sees it: its first stream, and the streams opened after its admission.
class ServerConnection : public PeerConnection {
 public:
  using PeerConnection::PeerConnection;
  void Admit() override {
    admitted_ = true;
    PeerConnection::Admit();
  }
  bool admitted() const { return admitted_; }

 private:
  std::atomic<bool> admitted_ = false;
};

class ServerStream : public Stream, public grpc::ServerGenericBidiReactor {
 public:
  ServerStream(grpc::CallbackServerContext* context, ConnectionHandler& member,
               std::shared_ptr<ServerConnection> connection, Gate& gate, std::string id,
               std::function<void()> on_over)
      : Stream(member),
        context_(context),
        gate_(gate),
        id_(std::move(id)),
        on_over_(std::move(on_over)),
        connection_(std::move(connection)) {}

  void Start() {
    if (connection_->admitted()) Admit();
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
    const auto connection = std::move(connection_);  // owns this stream
    Over(cancelled_ ? Unavailable("E-rpc-stream", "its connection broke") : OkStatus());
    gate_.Leave(id_);
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
  // Before its admission, only one frame of a connection is held.
  bool MayReadAhead() const override { return admitted_; }

 private:
  grpc::CallbackServerContext* const context_;
  Gate& gate_;
  const std::string id_;
  const std::function<void()> on_over_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> admitted_ = false;
  std::size_t read_ = 0;  // bytes read before its admission
  std::shared_ptr<ServerConnection> connection_;
};

// Refuses a stream that has no valid pass, or whose connection has ended.
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
    const std::string pass = Metadata(*context, kPassKey), lead = Metadata(*context, kLeadKey);
    const std::optional<std::string> id = gate_.Claim(pass);
    if (!id) return new Refused();
    const std::shared_ptr<ServerConnection> connection =
        lead.empty() ? std::make_shared<ServerConnection>(handler_) : Admitted(lead);
    std::shared_ptr<ServerStream> stream;
    if (connection != nullptr) {
      {
        const std::lock_guard lock(mutex_);
        ++streams_;
        if (lead.empty()) leads_[pass] = connection;
      }
      const Result<bool> carried =
          connection->Carry([&](ConnectionHandler& member) -> Result<std::shared_ptr<Connection>> {
            stream = std::make_shared<ServerStream>(context, member, connection, gate_, *id,
                                                    [this, pass] { Forget(pass); });
            stream->Start();
            return std::shared_ptr<Connection>(stream);
          });
      if (!carried.ok() || !*carried) Forget(pass);
    }
    if (stream != nullptr) return stream.get();
    gate_.Leave(*id);
    return new Refused();
  }
  // Returns the connection whose first stream has this pass, if it may have more streams; else null.
  std::shared_ptr<ServerConnection> Admitted(const std::string& lead) {
    const std::lock_guard lock(mutex_);
    const auto found = leads_.find(lead);
    std::shared_ptr<ServerConnection> connection = found == leads_.end() ? nullptr : found->second.lock();
    return connection != nullptr && connection->admitted() ? connection : nullptr;
  }
  void WaitForStreams() {
    std::unique_lock lock(mutex_);
    gone_.wait(lock, [&] { return streams_ == 0; });
  }

 private:
  static std::string Metadata(const grpc::GenericCallbackServerContext& context, const char* key) {
    const auto found = context.client_metadata().find(key);
    if (found == context.client_metadata().end()) return {};
    return {found->second.data(), found->second.size()};
  }
  void Forget(const std::string& pass) {
    const std::lock_guard lock(mutex_);
    leads_.erase(pass);
    --streams_;
    gone_.notify_all();
  }

  ConnectionHandler& handler_;
  Gate& gate_;
  std::mutex mutex_;
  std::condition_variable gone_;
  std::map<std::string, std::weak_ptr<ServerConnection>> leads_;  // by pass
  int streams_ = 0;
};

class GrpcListener : public Listener {
 public:
  GrpcListener(ConnectionHandler& handler, std::unique_ptr<Gate> gate)
      : gate_(std::move(gate)),
        service_(handler, *gate_),
        local_(std::in_place, handler, *gate_),
        bodies_(std::in_place, *gate_, [this](const std::string& lead) { return service_.Admitted(lead); }) {}
  ~GrpcListener() override {
    gate_->Stop();
    local_.reset();
    if (server_ == nullptr) return;
    // Gives closed connections this time to send their queued messages. The end of one stream of a connection
    // ends the others.
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    server_->Wait();
    bodies_.reset();
    service_.WaitForStreams();  // afterwards the handler is not called any more
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
    if (server_ == nullptr) {  // only the certificates can be the reason
      return InvalidArgument("E-rpc-tls-files", "the certificate or key of ", address,
                             " is not one, or they do not belong together");
    }
    return gate_->Start(
        {.grpc =
             [this](Descriptor socket) {
               grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
               connection.fd = socket.Release();
               acceptor_->HandleNewConnection(&connection);
             },
         .local = [this](Descriptor socket, const std::string& id) { local_->Enter(std::move(socket), id); },
         .bodies = [this](Descriptor socket,
                          const std::string& id) { bodies_->Enter(std::move(socket), id); }});
  }

 private:
  const std::unique_ptr<Gate> gate_;
  Service service_;
  std::optional<LocalServer> local_;
  std::optional<BodiesServer> bodies_;
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
                                                 .report = options.report,
                                                 .local = options.carrier == Carrier::kAuto}));
  auto listener = std::make_unique<GrpcListener>(handler, std::move(gate));
  PENSTOCK_RETURN_IF_ERROR(listener->Start(address, credentials));
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace penstock::transport
