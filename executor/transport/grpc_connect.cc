#include "executor/transport/grpc_connect.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <optional>
#include <utility>

#include "executor/transport/address.h"
#include "executor/transport/grpc_stream.h"
#include "executor/transport/relay.h"

namespace penstock::transport {
namespace {

class ClientStream : public Stream, public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientStream(ConnectionHandler& handler, std::unique_ptr<Relay> relay,
               std::shared_ptr<grpc::Channel> channel)
      : Stream(handler), relay_(std::move(relay)), channel_(std::move(channel)), stub_(channel_) {}

  void Start(const std::string& pass, const std::string& lead) {
    context_.AddMetadata(kPassKey, pass);
    if (!lead.empty()) context_.AddMetadata(kLeadKey, lead);
    stub_.PrepareBidiStreamingCall(&context_, kTalkMethod, grpc::StubOptions(), this);
    AddHold();  // until BeginEnd, because any thread may start a write
    StartCall();
    Started();
  }
  void Abort() override {
    aborted_ = true;
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (ok) heard_ = true;
    Read(ok);
  }
  void OnWriteDone(bool ok) override { Written(ok); }
  // The last call of gRPC. The owner may destroy this object during Over.
  void OnDone(const grpc::Status& status) override {
    if (status.ok()) return Over(OkStatus());
    // The gate accepted the connection but nothing arrived: with TLS, one side rejects the other's
    // certificate.
    if (relay_ != nullptr && !heard_ && !aborted_) {
      return Over(FailedPrecondition("E-rpc-tls", "the TLS handshake failed (", status.error_message(),
                                     "); check the certificates, their names, and PENSTOCK_TLS_MUTUAL"));
    }
    const std::string& why = status.error_message();
    const bool says = !why.empty() && why.find("keepalive watchdog") == std::string::npos;
    Over(Unavailable("E-rpc-stream", "its connection broke", says ? StrCat(" (", why, ")") : std::string()));
  }

 protected:
  void BeginWrite(const grpc::ByteBuffer* frame) override { StartWrite(frame); }
  void BeginRead(grpc::ByteBuffer* frame) override { StartRead(frame); }
  void BeginEnd() override {
    StartWritesDone();
    RemoveHold();
  }

 private:
  std::atomic<bool> aborted_ = false;
  std::atomic<bool> heard_ = false;
  const std::unique_ptr<Relay> relay_;  // outlives the channel
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
};

}  // namespace

Result<std::shared_ptr<Connection>> OpenStream(const std::string& address, Dialed dialed,
                                               ConnectionHandler& handler,
                                               const std::shared_ptr<grpc::ChannelCredentials>& tls,
                                               const std::string& lead) {
  grpc::ChannelArguments arguments;
  TuneChannel([&](const char* name, int value) { arguments.SetInt(name, value); });
  std::unique_ptr<Relay> relay;
  std::shared_ptr<grpc::Channel> channel;
  if (tls != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(relay, Relay::Start(std::move(dialed.socket)));
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetSslTargetNameOverride(HostOf(address));
    channel = grpc::CreateCustomChannel(relay->target(), tls, arguments);
  } else {
    channel = grpc::CreateCustomInsecureChannelFromFd(address, dialed.socket.Release(), arguments);
  }
  auto stream = std::make_shared<ClientStream>(handler, std::move(relay), std::move(channel));
  stream->Start(dialed.pass, lead);
  return std::shared_ptr<Connection>(std::move(stream));
}

}  // namespace penstock::transport
