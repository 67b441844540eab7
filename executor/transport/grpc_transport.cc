#include "executor/transport/grpc_transport.h"

#include <malloc.h>

#include <utility>

#include "executor/transport/connect.h"
#include "executor/transport/grpc_listen.h"
#include "executor/transport/grpc_stream.h"
#include "framework/base/environment.h"
#include "framework/base/log.h"

namespace penstock::transport {
namespace {

// Makes glibc keep up to 64 MB of free memory at the end of each heap. gRPC allocates memory for each large
// message; glibc would return it to the system afterwards and fault it in again for the next message, a fifth
// of the cost of receiving.
void KeepFreedPages() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

class GrpcTransport : public Transport {
 public:
  explicit GrpcTransport(GrpcTransportOptions options) : options_(std::move(options)) {}
  // The owner has closed or aborted every connection; this waits for gRPC's last calls to end.
  ~GrpcTransport() override {
    connections_->WaitForAll();
    connections_->TakeOver();
  }

  Result<std::unique_ptr<Listener>> Listen(const std::string& address, ConnectionHandler& handler) override {
    return ListenByGrpc(address, handler, options_);
  }
  std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) override {
    return ConnectTo(address, handler, options_, connections_);
  }

 private:
  const GrpcTransportOptions options_;
  const std::shared_ptr<ClientConnections> connections_ = std::make_shared<ClientConnections>();
};

}  // namespace

Result<TlsFiles> TlsFiles::FromEnvironment() {
  PENSTOCK_ASSIGN_OR_RETURN(const bool mutual, env::Flag("PENSTOCK_TLS_MUTUAL"));
  return TlsFiles{.cert = env::Text("PENSTOCK_TLS_CERT"),
                  .key = env::Text("PENSTOCK_TLS_KEY"),
                  .ca = env::Text("PENSTOCK_TLS_CA"),
                  .mutual = mutual};
}

Result<Carrier> CarrierOf(const std::string& text) {
  if (text.empty() || text == "auto") return Carrier::kAuto;
  if (text == "tcp") return Carrier::kTcp;
  return InvalidArgument("E-rpc-transport", "PENSTOCK_TRANSPORT is ", Quote(text), "; it may be auto or tcp");
}

std::unique_ptr<Transport> MakeGrpcTransport(GrpcTransportOptions options) {
  QuietGrpc();
  KeepFreedPages();
  if (!options.report) options.report = [](const std::string& line) { Log(LogSeverity::kWarning, line); };
  if (!options.tell) options.tell = [](const std::string& line) { Log(LogSeverity::kInfo, line); };
  return std::make_unique<GrpcTransport>(std::move(options));
}

}  // namespace penstock::transport
