#include "framework/runtime/transport.h"

#include <algorithm>
#include <cstring>

namespace penstock {

Payload Payload::Of(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  const auto* data = reinterpret_cast<const std::byte*>(owner->data());
  const std::size_t size = owner->size();
  return Payload(Bytes{std::move(owner), data, size});
}

Payload Payload::Of(const Tensor& tensor, std::size_t offset, std::size_t size) {
  PENSTOCK_CHECK(offset + size <= tensor.bytes(), "a payload reaches past its tensor");
  return Payload(Bytes{tensor.buffer(), tensor.raw() + offset, size});
}

void Payload::Append(Bytes bytes) {
  if (bytes.size == 0) return;
  crc32c_.reset();
  size_ += bytes.size;
  pieces_.push_back(std::move(bytes));
}

void Payload::Append(const Payload& more) {
  for (const Bytes& piece : more.pieces_) Append(piece);
}

Payload Payload::Part(std::size_t begin, std::size_t size) const {
  PENSTOCK_CHECK(begin <= size_ && size <= size_ - begin, "a part reaches past its payload");
  Payload part;
  for (const Bytes& piece : pieces_) {
    if (size == 0) break;
    if (begin >= piece.size) {
      begin -= piece.size;
      continue;
    }
    const std::size_t take = std::min(size, piece.size - begin);
    part.Append({piece.owner, piece.data + begin, take});
    size -= take;
    begin = 0;
  }
  return part;
}

void Payload::CopyTo(std::byte* to) const {
  for (const Bytes& piece : pieces_) {
    std::memcpy(to, piece.data, piece.size);
    to += piece.size;
  }
}

std::string Payload::ToText() const {
  std::string text;
  text.reserve(size_);
  for (const Bytes& piece : pieces_) text.append(reinterpret_cast<const char*>(piece.data), piece.size);
  return text;
}

}  // namespace penstock
