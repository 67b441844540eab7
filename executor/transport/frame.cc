#include "executor/transport/frame.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::transport {
namespace {

constexpr std::size_t kSizesBytes = 8;
constexpr std::size_t kCopyBelow = 4096;  // sharing a piece costs about as much as copying this many bytes

// Reads bytes across pieces.
class Cursor {
 public:
  explicit Cursor(const std::vector<Bytes>& pieces) : pieces_(pieces) {
    for (const Bytes& piece : pieces) left_ += piece.size;
  }

  std::size_t left() const { return left_; }

  void Copy(std::size_t size, char* to) {
    Each(size, [&](const Bytes& piece) {
      std::memcpy(to, piece.data, piece.size);
      to += piece.size;
    });
  }
  Payload Share(std::size_t size) {
    Payload payload;
    Each(size, [&](Bytes piece) { payload.Append(std::move(piece)); });
    return payload;
  }

 private:
  template <typename Visit>
  void Each(std::size_t size, Visit visit) {
    left_ -= size;
    while (size > 0) {
      const Bytes& piece = pieces_[at_];
      const std::size_t take = std::min(size, piece.size - offset_);
      if (take > 0) visit(Bytes{piece.owner, piece.data + offset_, take});
      size -= take;
      offset_ += take;
      if (offset_ == piece.size) {
        ++at_;
        offset_ = 0;
      }
    }
  }

  const std::vector<Bytes>& pieces_;
  std::size_t at_ = 0;
  std::size_t offset_ = 0;
  std::size_t left_ = 0;
};

}  // namespace

std::size_t FrameBytes(const Message& message) {
  return kSizesBytes + message.head.size() + message.body.size();
}

std::vector<Bytes> JoinFrame(const std::vector<Message>& messages) {
  std::vector<Bytes> pieces;
  std::string copied;
  const auto flush = [&] {
    const Payload payload = Payload::Of(std::exchange(copied, std::string()));
    pieces.insert(pieces.end(), payload.pieces().begin(), payload.pieces().end());
  };
  for (const Message& message : messages) {
    const auto head = static_cast<std::uint32_t>(message.head.size());
    const auto body = static_cast<std::uint32_t>(message.body.size());
    PENSTOCK_CHECK(message.head.size() <= kMaxHeadBytes && message.body.size() <= kMaxBodyBytes,
                   "a message is too large");
    copied.append(reinterpret_cast<const char*>(&head), 4);
    copied.append(reinterpret_cast<const char*>(&body), 4);
    copied.append(message.head);
    for (const Bytes& piece : message.body.pieces()) {
      if (piece.size < kCopyBelow) {
        copied.append(reinterpret_cast<const char*>(piece.data), piece.size);
      } else {
        flush();
        pieces.push_back(piece);
      }
    }
  }
  flush();
  return pieces;
}

Result<std::vector<Message>> SplitFrame(const std::vector<Bytes>& pieces) {
  std::vector<Message> messages;
  Cursor cursor(pieces);
  while (cursor.left() > 0) {
    if (messages.size() == kFrameMessagesMax)
      return DataLoss("E-rpc-frame", "a frame of more than ", kFrameMessagesMax, " messages");
    std::uint32_t sizes[2];
    if (cursor.left() < kSizesBytes) return DataLoss("E-rpc-frame", "a frame ends within a message");
    cursor.Copy(kSizesBytes, reinterpret_cast<char*>(sizes));
    const auto [head, body] = sizes;
    if (head > kMaxHeadBytes || body > kMaxBodyBytes || std::size_t{head} + body > cursor.left()) {
      return DataLoss("E-rpc-frame", "a message of ", head, " + ", body, " bytes in a frame with ",
                      cursor.left(), " left");
    }
    Message& message = messages.emplace_back();
    message.head.resize(head);
    cursor.Copy(head, message.head.data());
    message.body = cursor.Share(body);
  }
  return messages;
}

}  // namespace penstock::transport
