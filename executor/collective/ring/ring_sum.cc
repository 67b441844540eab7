// The first half of a large reduction: each rank collects its part of the data from all others, piece by
// piece, and reduces it in rank order. While one piece is reduced, the next one arrives.
#include <algorithm>
#include <utility>

#include "executor/collective/group/reduce.h"
#include "executor/collective/ring/ring_backend.h"

namespace penstock::collective {

// The numbered pieces of each part. Piece i of all senders together is about as large as one piece of a ring.
class RingBackend::Collection {
 public:
  Collection(RingBackend& ring, std::byte* data, const std::vector<Range>& parts, const Operation& op)
      : ring_(ring),
        data_(data),
        parts_(parts),
        op_(op),
        bytes_(WholePages(ring.piece_bytes_ / std::max<std::size_t>(ring.Others(), 1))),
        scratch_(ring.Scratch(kAtOnce * ring.Others() * bytes_)),
        arriving_(kAtOnce * static_cast<std::size_t>(ring.size())),
        leaving_(arriving_.size()),
        sources_(static_cast<std::size_t>(ring.size())) {
    for (const Range& part : parts_) pieces_ = std::max(pieces_, (part.bytes + bytes_ - 1) / bytes_);
  }

  std::size_t pieces() const { return pieces_; }
  // Starts the receives of all pieces that may be in flight while the rank awaits piece i, into scratch
  // memory with room for the largest piece that another rank may send.
  void ReceiveUpTo(std::size_t i) {
    for (; received_ < std::min(pieces_, i + kAtOnce); ++received_) {
      if (Piece(ring_.rank(), received_).bytes == 0) continue;
      for (int distance = 1; distance < ring_.size(); ++distance) {
        const int from = ring_.Neighbour(-distance);
        Of(arriving_, received_, from) =
            ring_.links_->Receive(from, Channel::kOperations, {ScratchOf(received_, from), bytes_});
      }
    }
  }
  // Sends each rank the pieces of its part that may be in flight while it awaits piece i. No two ranks begin
  // with the same receiver.
  Status SendUpTo(std::size_t i) {
    for (; sent_ < std::min(pieces_, i + kAtOnce); ++sent_) {
      for (int distance = 1; distance < ring_.size(); ++distance) {
        const int to = ring_.Neighbour(distance);
        PENSTOCK_RETURN_IF_ERROR(ring_.Await(Of(leaving_, sent_, to), to));
        const Range piece = Piece(to, sent_);
        if (piece.bytes == 0) continue;
        Of(leaving_, sent_, to) =
            ring_.links_->Send(to, Channel::kOperations, {data_ + piece.begin, piece.bytes});
      }
    }
    return OkStatus();
  }
  // Waits for piece number i of all ranks, and reduces it.
  Status Take(std::size_t i) {
    const Range piece = Piece(ring_.rank(), i);
    if (piece.bytes == 0) return OkStatus();
    std::byte* const own = data_ + piece.begin;
    for (int from = 0; from < ring_.size(); ++from) {
      if (from != ring_.rank()) PENSTOCK_RETURN_IF_ERROR(ring_.Await(Of(arriving_, i, from), from));
      sources_[static_cast<std::size_t>(from)] = from == ring_.rank() ? own : ScratchOf(i, from);
    }
    ReduceInOrder(op_.type, op_.reduction, sources_, piece.bytes / SizeOf(op_.type), own);
    return OkStatus();
  }
  Status AwaitSent() {
    for (std::size_t slot = 0; slot < leaving_.size(); ++slot) {
      const auto to = static_cast<int>(slot % static_cast<std::size_t>(ring_.size()));
      PENSTOCK_RETURN_IF_ERROR(ring_.Await(leaving_[slot], to));
    }
    return OkStatus();
  }

 private:
  // Rounds down to whole pages or, below one page, to whole elements of any type.
  static std::size_t WholePages(std::size_t bytes) {
    constexpr std::size_t kPage = 4096, kWidest = 8;
    return bytes >= kPage ? bytes / kPage * kPage : std::max(kWidest, bytes / kWidest * kWidest);
  }
  using Transits = std::vector<std::unique_ptr<Transit>>;

  std::unique_ptr<Transit>& Of(Transits& transits, std::size_t i, int rank) const {
    return transits[i % kAtOnce * static_cast<std::size_t>(ring_.size()) + static_cast<std::size_t>(rank)];
  }
  // The last ones of a part may be empty.
  Range Piece(int rank, std::size_t i) const {
    const Range& part = parts_[static_cast<std::size_t>(rank)];
    const std::size_t offset = std::min(part.bytes, i * bytes_);
    return {part.begin + offset, std::min(bytes_, part.bytes - offset)};
  }
  std::byte* ScratchOf(std::size_t i, int from) const {
    const auto other = static_cast<std::size_t>(from < ring_.rank() ? from : from - 1);
    return scratch_ + (i % kAtOnce * ring_.Others() + other) * bytes_;
  }

  RingBackend& ring_;
  std::byte* const data_;
  const std::vector<Range>& parts_;
  const Operation& op_;
  const std::size_t bytes_;  // of a piece
  std::byte* const scratch_;
  std::size_t pieces_ = 0;               // of the longest part
  std::size_t received_ = 0, sent_ = 0;  // receives and sends that were started
  Transits arriving_, leaving_;
  std::vector<const std::byte*> sources_;
};

Status RingBackend::ReduceOwnPart(std::byte* data, const std::vector<Range>& parts, const Operation& op,
                                  Agreement& agreement) {
  Collection collection(*this, data, parts, op);
  collection.ReceiveUpTo(0);
  PENSTOCK_RETURN_IF_ERROR(collection.SendUpTo(0));
  PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
  for (std::size_t i = 0; i < collection.pieces(); ++i) {
    collection.ReceiveUpTo(i);
    PENSTOCK_RETURN_IF_ERROR(collection.SendUpTo(i));
    PENSTOCK_RETURN_IF_ERROR(collection.Take(i));
  }
  return collection.AwaitSent();
}

}  // namespace penstock::collective
