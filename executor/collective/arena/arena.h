// The layout of the memory that the ranks of a group share: threads of one process, or processes of one host.
// An unused arena is all zero bytes.
//
//   Arena arena(pages.data(), ranks);                 // of Arena::Bytes(ranks) bytes
//   std::memcpy(arena.In(turn, rank), data, n);       // a rank's contribution, n <= Arena::BlockBytes
//   arena.line(rank).arrived.Set(turn + 1);
//
// Everything that is written once per turn exists twice, and turns alternate between the two: ranks read the
// previous turn's copy while others write the current one. Values that other processes wrote are not trusted
// to be valid.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/collective/arena/signal.h"
#include "executor/collective/group/operation.h"

namespace penstock::collective {

constexpr int kMaxRanks = 256;           // of one host
constexpr std::uint32_t kBoxPieces = 2;  // pieces of a message that can wait for the receiver

// The cache lines of one rank.
struct alignas(128) RankLine {
  Signal arrived;                      // the number of turns it has ended
  alignas(64) Signal bell;             // rings when a message to or from it makes progress
  alignas(64) std::atomic<bool> left;  // it starts no more operations
};

// The first failure, read by all ranks.
struct FailureRecord {
  enum State : std::uint32_t { kNone, kBeingWritten, kWritten };
  std::atomic<std::uint32_t> state;
  char id[40];
  char message[2000];  // its lines (error_lines.h)
};

// Messages from one rank to another: the number of pieces written, and the number read.
struct alignas(128) Box {
  std::atomic<std::uint32_t> written;
  alignas(64) std::atomic<std::uint32_t> read;
  Signature signatures[kBoxPieces];  // [i]: of the message whose first piece is in slot i
};

class Arena {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 10;  // of a message

  Arena(std::byte* memory, int ranks) : memory_(memory), ranks_(static_cast<std::size_t>(ranks)) {}
  static std::size_t Bytes(int ranks);
  // The most bytes that a rank contributes in a turn; a multiple of 4096.
  static std::size_t BlockBytes(int ranks);

  int ranks() const { return static_cast<int>(ranks_); }
  std::size_t block_bytes() const { return BlockBytes(ranks()); }

  FailureRecord& failure() const { return *reinterpret_cast<FailureRecord*>(memory_); }
  RankLine& line(int rank) const;
  std::span<Signature> signatures(std::uint32_t turn) const;  // by rank
  // The block that a rank contributes in that turn; the results that all ranks write in that turn. Each has
  // block_bytes() bytes.
  std::byte* In(std::uint32_t turn, int rank) const;
  std::byte* Made(std::uint32_t turn) const;
  Box& box(int from, int to) const;
  std::byte* Piece(int from, int to, std::uint32_t piece) const;

 private:
  std::byte* memory_;
  std::size_t ranks_;
};

}  // namespace penstock::collective
