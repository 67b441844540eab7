// The transport over gRPC: one bidirectional stream of the generic service per connection, messages as
// ByteBuffers that share the tensors' memory. Keepalive pings find a dead host within 15 s; a dead process is
// found at once, and a slow one never is.
#pragma once

#include <memory>

#include "framework/runtime/transport.h"

namespace penstock {

std::unique_ptr<Transport> MakeGrpcTransport();

}  // namespace penstock
