#include "executor/collective/arena/arena.h"

#include <algorithm>

namespace penstock::collective {
namespace {

constexpr std::size_t kPage = 4096;

constexpr std::size_t InPages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The offsets of the arena's parts, which follow each other.
struct Parts {
  explicit Parts(std::size_t ranks)
      : lines(InPages(sizeof(FailureRecord))),
        signatures(lines + InPages(ranks * sizeof(RankLine))),
        boxes(signatures + InPages(2 * ranks * sizeof(Signature))),
        in(boxes + InPages(ranks * ranks * sizeof(Box))),
        made(in + 2 * ranks * Arena::BlockBytes(static_cast<int>(ranks))),
        pieces(made + 2 * Arena::BlockBytes(static_cast<int>(ranks))),
        end(pieces + ranks * ranks * kBoxPieces * Arena::kPieceBytes) {}

  std::size_t lines, signatures, boxes, in, made, pieces, end;
};

}  // namespace

std::size_t Arena::Bytes(int ranks) { return Parts(static_cast<std::size_t>(ranks)).end; }

// The blocks of two turns fit in a second-level cache of 2 MB if there are two ranks, and in 9 MB if there
// are many (README.md).
std::size_t Arena::BlockBytes(int ranks) {
  constexpr std::size_t kMost = std::size_t{256} << 10, kOfAll = std::size_t{4} << 20;
  return std::max(kPage, std::min(kMost, kOfAll / static_cast<std::size_t>(ranks)) / kPage * kPage);
}

RankLine& Arena::line(int rank) const {
  return reinterpret_cast<RankLine*>(memory_ + Parts(ranks_).lines)[rank];
}

std::span<Signature> Arena::signatures(std::uint32_t turn) const {
  auto* const all = reinterpret_cast<Signature*>(memory_ + Parts(ranks_).signatures);
  return {all + (turn & 1) * ranks_, ranks_};
}

std::byte* Arena::In(std::uint32_t turn, int rank) const {
  return memory_ + Parts(ranks_).in + ((turn & 1) * ranks_ + static_cast<std::size_t>(rank)) * block_bytes();
}

std::byte* Arena::Made(std::uint32_t turn) const {
  return memory_ + Parts(ranks_).made + (turn & 1) * block_bytes();
}

Box& Arena::box(int from, int to) const {
  auto* const all = reinterpret_cast<Box*>(memory_ + Parts(ranks_).boxes);
  return all[static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to)];
}

std::byte* Arena::Piece(int from, int to, std::uint32_t piece) const {
  const std::size_t index = static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to);
  return memory_ + Parts(ranks_).pieces + (index * kBoxPieces + piece % kBoxPieces) * kPieceBytes;
}

}  // namespace penstock::collective
