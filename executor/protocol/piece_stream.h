// Lets protobuf read a payload piece by piece, without a copy.
//
//   PieceStream stream(payload);                              // the payload outlives it
//   google::protobuf::io::CodedInputStream in(&stream);
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/runtime/transport.h"

namespace penstock::protocol {

class PieceStream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PieceStream(const Payload& payload) : pieces_(payload.pieces()) {}

  bool Next(const void** data, int* size) override {
    if (at_ == pieces_.size()) return false;
    const Bytes& piece = pieces_[at_++];
    *data = piece.data + offset_;
    *size = static_cast<int>(piece.size - offset_);
    offset_ = 0;
    read_ += *size;
    return true;
  }
  // Call only directly after Next, with at most the size that Next returned.
  void BackUp(int count) override {
    if (count == 0) return;
    --at_;
    offset_ = pieces_[at_].size - static_cast<std::size_t>(count);
    read_ -= count;
  }
  bool Skip(int count) override {
    auto left = static_cast<std::size_t>(count);
    while (left > 0 && at_ < pieces_.size()) {
      const std::size_t take = std::min(left, pieces_[at_].size - offset_);
      left -= take;
      offset_ += take;
      read_ += static_cast<std::int64_t>(take);
      if (offset_ == pieces_[at_].size) {
        ++at_;
        offset_ = 0;
      }
    }
    return left == 0;
  }
  std::int64_t ByteCount() const override { return read_; }

 private:
  const std::vector<Bytes>& pieces_;
  std::size_t at_ = 0;
  std::size_t offset_ = 0;  // into the piece at at_
  std::int64_t read_ = 0;
};

}  // namespace penstock::protocol
