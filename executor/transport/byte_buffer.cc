#include "executor/transport/byte_buffer.h"

#include <grpcpp/support/slice.h>

#include <memory>

namespace penstock::transport {

grpc::ByteBuffer ToByteBuffer(const std::vector<Bytes>& pieces) {
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces.size());
  for (const Bytes& piece : pieces) {
    using Owner = std::shared_ptr<const void>;
    slices.emplace_back(
        const_cast<std::byte*>(piece.data), piece.size,
        [](void* owner) { delete static_cast<Owner*>(owner); }, new Owner(piece.owner));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Result<std::vector<Bytes>> FromByteBuffer(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) return DataLoss("E-rpc-frame", "a frame cannot be read");
  std::vector<Bytes> pieces;
  pieces.reserve(slices->size());
  for (const grpc::Slice& slice : *slices) {
    pieces.push_back({slices, reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
  }
  return pieces;
}

}  // namespace penstock::transport
