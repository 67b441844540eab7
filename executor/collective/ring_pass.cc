// Parts of the data on their way around the ring, piece by piece: while a rank adds one piece, the next ones
// arrive and those before leave.
#include <algorithm>
#include <utility>

#include "executor/collective/reduce.h"
#include "executor/collective/ring_backend.h"

namespace penstock::collective {
namespace {

constexpr std::size_t kAtOnce = 2;  // pieces that arrive, and that leave

}  // namespace

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

// The pieces of a pass, by their numbers: those that arrive, and those that leave.
class RingBackend::Stream {
 public:
  Stream(RingBackend& ring, const Pass& pass)
      : ring_(ring),
        pass_(pass),
        piece_bytes_(ring.piece_bytes_),
        of_part_(PiecesOfPart()),
        adding_(of_part_ * pass.adding),
        pieces_(of_part_ * (pass.adding + pass.passing)),
        scratch_(adding_ > 0 ? ring.Scratch(kAtOnce * piece_bytes_) : nullptr) {}

  std::size_t pieces() const { return pieces_; }
  // Lets all arrive up to those that may be on their way once piece number i is awaited. Those that are added
  // arrive in scratch memory, with room for whatever another rank may send.
  void ReceiveUpTo(std::size_t i, bool only_added) {
    for (; received_ < std::min(only_added ? adding_ : pieces_, i + kAtOnce); ++received_) {
      const Range piece = Piece(pass_.first - 1, received_);
      if (piece.bytes == 0) continue;
      const std::span<std::byte> to = received_ < adding_ ? std::span(ScratchOf(received_), piece_bytes_)
                                                          : std::span(pass_.data + piece.begin, piece.bytes);
      arriving_[received_ % kAtOnce] = ring_.links_->Receive(ring_.Neighbour(-1), Channel::kOperations, to);
    }
  }
  // Sends all that may leave once all pieces before number i have arrived: piece i + of_part_ is what arrives
  // as piece i.
  Status SendUpTo(std::size_t i) {
    for (; sent_ < std::min({pieces_, i + of_part_, i + kAtOnce}); ++sent_) {
      PENSTOCK_RETURN_IF_ERROR(ring_.Await(leaving_[sent_ % kAtOnce], ring_.Neighbour(1)));
      const Range piece = Piece(pass_.first, sent_);
      if (piece.bytes == 0) continue;
      leaving_[sent_ % kAtOnce] = ring_.links_->Send(ring_.Neighbour(1), Channel::kOperations,
                                                     {pass_.data + piece.begin, piece.bytes});
    }
    return OkStatus();
  }
  // Waits for piece number i, and adds it.
  Status Take(std::size_t i) {
    PENSTOCK_RETURN_IF_ERROR(ring_.Await(arriving_[i % kAtOnce], ring_.Neighbour(-1)));
    const Range piece = Piece(pass_.first - 1, i);
    if (i >= adding_ || piece.bytes == 0) return OkStatus();
    const bool is_last = i + of_part_ >= adding_;  // the sum of all ranks, of which a mean is taken
    const Operation& op = *pass_.added;
    std::byte* const own = pass_.data + piece.begin;
    const std::byte* const sources[] = {ScratchOf(i), own};
    ReduceInOrder(op.type, op.reduction == Reduction::kMean && !is_last ? Reduction::kSum : op.reduction,
                  sources, piece.bytes / SizeOf(op.type), own, static_cast<std::size_t>(ring_.size()));
    return OkStatus();
  }
  Status AwaitSent() {
    for (auto& last : leaving_) PENSTOCK_RETURN_IF_ERROR(ring_.Await(last, ring_.Neighbour(1)));
    return OkStatus();
  }

 private:
  std::size_t PiecesOfPart() const {
    std::size_t longest = 0;
    for (const Range& part : pass_.parts) longest = std::max(longest, part.bytes);
    return (longest + piece_bytes_ - 1) / piece_bytes_;
  }
  // Piece number i of those that go around from part `begin` backwards. The last ones of a part may be empty.
  Range Piece(int begin, std::size_t i) const {
    const int ranks = ring_.size(), rounds = static_cast<int>(i / of_part_);
    const int number = (begin - rounds + 3 * ranks) % ranks;
    const Range& part = pass_.parts[static_cast<std::size_t>(number)];
    const std::size_t offset = std::min(part.bytes, i % of_part_ * piece_bytes_);
    return {part.begin + offset, std::min(piece_bytes_, part.bytes - offset)};
  }
  std::byte* ScratchOf(std::size_t i) const { return scratch_ + i % kAtOnce * piece_bytes_; }

  RingBackend& ring_;
  const Pass& pass_;
  const std::size_t piece_bytes_;
  const std::size_t of_part_;          // pieces
  const std::size_t adding_, pieces_;  // those that are added, which come first; all
  std::byte* const scratch_;
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

Status RingBackend::GoAround(const Pass& pass) {
  Stream stream(*this, pass);
  if (pass.adding > 0) {
    stream.ReceiveUpTo(0, /*only_added=*/true);
    PENSTOCK_RETURN_IF_ERROR(stream.SendUpTo(0));
    PENSTOCK_RETURN_IF_ERROR(Agree());
  }
  for (std::size_t i = 0; i < stream.pieces(); ++i) {
    stream.ReceiveUpTo(i, /*only_added=*/false);
    PENSTOCK_RETURN_IF_ERROR(stream.SendUpTo(i));
    PENSTOCK_RETURN_IF_ERROR(stream.Take(i));
  }
  return stream.AwaitSent();
}

}  // namespace penstock::collective
