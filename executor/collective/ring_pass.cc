// Parts of the data on their way around the ring, piece by piece: while a rank adds one piece, the next ones
// arrive and those before leave.
#include <algorithm>
#include <utility>

#include "executor/collective/reduce.h"
#include "executor/collective/ring_backend.h"

namespace penstock::collective {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kAtOnce = 2;  // pieces that arrive, and that leave

}  // namespace

struct RingBackend::Pass {
  std::byte* data;
  const std::vector<Range>& parts;
  int first;                         // the part that this rank sends first; it receives the one before
  std::byte* scratch = nullptr;      // where pieces arrive; null: where they belong
  const Operation* added = nullptr;  // the reduction that pieces in scratch are part of

  std::size_t PiecesOfPart() const {
    std::size_t longest = 0;
    for (const Range& part : parts) longest = std::max(longest, part.bytes);
    return (longest + kPieceBytes - 1) / kPieceBytes;
  }
  // Piece number i of those that go around from part `begin` backwards. The last ones of a part may be empty.
  Range Piece(int begin, std::size_t i, std::size_t of_part) const {
    const int ranks = static_cast<int>(parts.size());
    const int number = (begin - static_cast<int>(i / of_part) + 2 * ranks) % ranks;
    const Range& part = parts[static_cast<std::size_t>(number)];
    const std::size_t offset = std::min(part.bytes, i % of_part * kPieceBytes);
    return {part.begin + offset, std::min(kPieceBytes, part.bytes - offset)};
  }
};

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

Status RingBackend::ReduceParts(const Operation& op, std::byte* data, const std::vector<Range>& parts) {
  if (size() == 1) return OkStatus();
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(kAtOnce * kPieceBytes);
  Pass pass{.data = data, .parts = parts, .first = Neighbour(-1), .scratch = scratch.get(), .added = &op};
  return GoAround(pass);
}

Status RingBackend::GatherParts(std::byte* data, const std::vector<Range>& parts) {
  if (size() == 1) return OkStatus();
  Pass pass{.data = data, .parts = parts, .first = rank()};
  return GoAround(pass);
}

Status RingBackend::GoAround(Pass& pass) {
  const int left = Neighbour(-1), right = Neighbour(1);
  const std::size_t of_part = pass.PiecesOfPart();
  const std::size_t pieces = of_part * (static_cast<std::size_t>(size()) - 1);
  std::array<std::unique_ptr<Transit>, kAtOnce> leaving, arriving;
  const auto place_of = [&](std::size_t i, const Range& piece) {
    return pass.scratch != nullptr ? pass.scratch + i % kAtOnce * kPieceBytes : pass.data + piece.begin;
  };
  const auto receive = [&](std::size_t i) {
    const Range piece = pass.Piece(pass.first - 1, i, of_part);
    if (piece.bytes > 0) {
      arriving[i % kAtOnce] = links_->Receive(left, Channel::kOperations, {place_of(i, piece), piece.bytes});
    }
  };
  const auto send = [&](std::size_t i) {
    const Range piece = pass.Piece(pass.first, i, of_part);
    if (piece.bytes > 0)
      leaving[i % kAtOnce] =
          links_->Send(right, Channel::kOperations, {pass.data + piece.begin, piece.bytes});
  };
  for (std::size_t i = 0; i < std::min(kAtOnce, pieces); ++i) receive(i);
  std::size_t sent = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    // Piece i + of_part is what arrives as piece i, so only pieces before that are there to be sent.
    for (; sent < std::min({pieces, i + of_part, i + kAtOnce}); ++sent) {
      PENSTOCK_RETURN_IF_ERROR(Await(leaving[sent % kAtOnce], right));
      send(sent);
    }
    PENSTOCK_RETURN_IF_ERROR(Await(arriving[i % kAtOnce], left));
    const Range piece = pass.Piece(pass.first - 1, i, of_part);
    if (pass.added != nullptr && piece.bytes > 0) {
      const bool is_last = i + of_part >= pieces;  // the sum of all ranks, of which a mean is taken
      const Reduction asked = pass.added->reduction;
      const std::byte* const sources[] = {place_of(i, piece), pass.data + piece.begin};
      ReduceInOrder(pass.added->type, asked == Reduction::kMean && !is_last ? Reduction::kSum : asked,
                    sources, piece.bytes / SizeOf(pass.added->type), pass.data + piece.begin,
                    static_cast<std::size_t>(size()));
    }
    if (i + kAtOnce < pieces) receive(i + kAtOnce);
  }
  for (auto& last : leaving) PENSTOCK_RETURN_IF_ERROR(Await(last, right));
  return OkStatus();
}

}  // namespace penstock::collective
