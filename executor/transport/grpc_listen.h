// The server's part of the transport: a gate, and the gRPC server behind it.
#pragma once

#include <memory>
#include <string>

#include "executor/transport/grpc_transport.h"
#include "framework/base/status.h"

namespace penstock::transport {

Result<std::unique_ptr<Listener>> ListenByGrpc(const std::string& address, ConnectionHandler& handler,
                                               const GrpcTransportOptions& options);

}  // namespace penstock::transport
