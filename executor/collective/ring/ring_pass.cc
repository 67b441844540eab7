// Passes the ranks' parts of the data around the ring, piece by piece: while one piece arrives, the previous
// one leaves.
#include <algorithm>
#include <utility>

#include "executor/collective/ring/ring_backend.h"

namespace penstock::collective {

// Equal parts of whole elements; the last ones may be shorter, or empty.
std::vector<RingBackend::Range> RingBackend::EqualParts(std::int64_t elements, ElementType type) const {
  const auto ranks = static_cast<std::size_t>(size());
  const auto count = static_cast<std::size_t>(elements);
  const std::size_t each = (count + ranks - 1) / ranks, width = SizeOf(type);
  std::vector<Range> parts;
  for (std::size_t part = 0; part < ranks; ++part) {
    const std::size_t begin = std::min(count, part * each);
    parts.push_back({begin * width, (std::min(count, begin + each) - begin) * width});
  }
  return parts;
}

// The pieces that this rank receives and sends, each numbered from 0.
class RingBackend::Stream {
 public:
  Stream(RingBackend& ring, std::byte* data, const std::vector<Range>& parts)
      : ring_(ring),
        data_(data),
        parts_(parts),
        of_part_(PiecesOfPart()),
        pieces_(of_part_ * ring.Others()) {}

  std::size_t pieces() const { return pieces_; }
  // Starts the receives of all pieces that may be in flight while the rank awaits piece i.
  void ReceiveUpTo(std::size_t i) {
    for (; received_ < std::min(pieces_, i + kAtOnce); ++received_) {
      const Range piece = Piece(ring_.rank() - 1, received_);
      if (piece.bytes == 0) continue;
      arriving_[received_ % kAtOnce] = ring_.links_->Receive(ring_.Neighbour(-1), Channel::kOperations,
                                                             {data_ + piece.begin, piece.bytes});
    }
  }
  // Sends all that may leave once all pieces before number i have arrived: piece i + of_part_ is what arrives
  // as piece i.
  Status SendUpTo(std::size_t i) {
    for (; sent_ < std::min({pieces_, i + of_part_, i + kAtOnce}); ++sent_) {
      PENSTOCK_RETURN_IF_ERROR(ring_.Await(leaving_[sent_ % kAtOnce], ring_.Neighbour(1)));
      const Range piece = Piece(ring_.rank(), sent_);
      if (piece.bytes == 0) continue;
      leaving_[sent_ % kAtOnce] =
          ring_.links_->Send(ring_.Neighbour(1), Channel::kOperations, {data_ + piece.begin, piece.bytes});
    }
    return OkStatus();
  }
  Status Take(std::size_t i) { return ring_.Await(arriving_[i % kAtOnce], ring_.Neighbour(-1)); }
  Status AwaitSent() {
    for (auto& last : leaving_) PENSTOCK_RETURN_IF_ERROR(ring_.Await(last, ring_.Neighbour(1)));
    return OkStatus();
  }

 private:
  std::size_t PiecesOfPart() const {
    std::size_t longest = 0;
    for (const Range& part : parts_) longest = std::max(longest, part.bytes);
    return (longest + ring_.piece_bytes_ - 1) / ring_.piece_bytes_;
  }
  // Piece i of the parts `begin`, `begin` - 1, and so on around the ring. A part's last pieces may be empty.
  Range Piece(int begin, std::size_t i) const {
    const int ranks = ring_.size(), rounds = static_cast<int>(i / of_part_);
    const Range& part = parts_[static_cast<std::size_t>((begin - rounds + 2 * ranks) % ranks)];
    const std::size_t offset = std::min(part.bytes, i % of_part_ * ring_.piece_bytes_);
    return {part.begin + offset, std::min(ring_.piece_bytes_, part.bytes - offset)};
  }

  RingBackend& ring_;
  std::byte* const data_;
  const std::vector<Range>& parts_;
  const std::size_t of_part_, pieces_;   // pieces per part, and in total
  std::size_t received_ = 0, sent_ = 0;  // receives and sends that were started
  std::array<std::unique_ptr<Transit>, kAtOnce> leaving_, arriving_;
};

std::byte* RingBackend::Scratch(std::size_t bytes) {
  if (scratch_bytes_ < bytes) {
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

Status RingBackend::GoAround(std::byte* data, const std::vector<Range>& parts) {
  Stream stream(*this, data, parts);
  for (std::size_t i = 0; i < stream.pieces(); ++i) {
    stream.ReceiveUpTo(i);
    PENSTOCK_RETURN_IF_ERROR(stream.SendUpTo(i));
    PENSTOCK_RETURN_IF_ERROR(stream.Take(i));
  }
  return stream.AwaitSent();
}

}  // namespace penstock::collective
