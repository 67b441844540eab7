#include "executor/transport/grpc_transport.h"

#include <cstdlib>
#include <utility>

#include "executor/transport/grpc_connect.h"
#include "executor/transport/grpc_listen.h"
#include "executor/transport/grpc_stream.h"
#include "framework/base/log.h"

namespace penstock::transport {
namespace {

class GrpcTransport : public Transport {
 public:
  explicit GrpcTransport(GrpcTransportOptions options) : options_(std::move(options)) {}
  // Its owner has closed or aborted every connection: what is left is the end of gRPC's last calls.
  ~GrpcTransport() override {
    streams_->WaitForAll();
    streams_->TakeOver();
  }

  Result<std::unique_ptr<Listener>> Listen(const std::string& address, ConnectionHandler& handler) override {
    return ListenByGrpc(address, handler, options_);
  }
  std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) override {
    return ConnectByGrpc(address, handler, options_, streams_);
  }

 private:
  const GrpcTransportOptions options_;
  const std::shared_ptr<ClientStreams> streams_ = std::make_shared<ClientStreams>();
};

}  // namespace

TlsFiles TlsFiles::FromEnvironment() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return {.cert = text("PENSTOCK_TLS_CERT"),
          .key = text("PENSTOCK_TLS_KEY"),
          .ca = text("PENSTOCK_TLS_CA"),
          .mutual = text("PENSTOCK_TLS_MUTUAL") == "1"};
}

std::unique_ptr<Transport> MakeGrpcTransport(GrpcTransportOptions options) {
  QuietGrpc();
  if (!options.report) options.report = [](const std::string& line) { Log(LogSeverity::kWarning, line); };
  return std::make_unique<GrpcTransport>(std::move(options));
}

}  // namespace penstock::transport
