// The client's end of a gRPC stream over a socket that has passed the server's gate.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "executor/transport/dial.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/status.h"

namespace penstock::transport {

// Opens the stream and starts to read. `tls` is null for no TLS. For a further stream of a connection, `lead`
// is the pass of the first. The caller keeps the stream until OnClosed, and must not destroy it on a thread
// of gRPC.
Result<std::shared_ptr<Connection>> OpenStream(const std::string& address, Dialed dialed,
                                               ConnectionHandler& handler,
                                               const std::shared_ptr<grpc::ChannelCredentials>& tls,
                                               const std::string& lead = {});

}  // namespace penstock::transport
