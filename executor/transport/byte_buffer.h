// Converts payloads to gRPC's byte buffers and back, sharing the memory.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

grpc::ByteBuffer ToByteBuffer(const std::vector<Bytes>& pieces);
// kDataLoss E-rpc-frame: gRPC cannot read the buffer.
Result<std::vector<Bytes>> FromByteBuffer(const grpc::ByteBuffer& buffer);

}  // namespace penstock::transport
