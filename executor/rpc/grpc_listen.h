// The server's part of the transport: a gate, and the gRPC server behind it.
#pragma once

#include <memory>
#include <string>

#include "executor/rpc/grpc_transport.h"
#include "framework/base/status.h"

namespace penstock::rpc {

Result<std::unique_ptr<Listener>> ListenByGrpc(const std::string& address, ConnectionHandler& handler,
                                               const GrpcTransportOptions& options);

}  // namespace penstock::rpc
