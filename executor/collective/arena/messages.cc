// Messages between two ranks: pieces in a box for each pair and direction. A rank that writes or reads a
// piece rings the other rank's bell.
#include <algorithm>
#include <cstring>

#include "executor/collective/arena/arena_backend.h"

namespace penstock::collective {

// The progress of one message.
struct ArenaBackend::Transfer {
  Signature what;
  std::size_t bytes = 0, done = 0;
  bool wanted = false, ended = true;

  // An empty message is one piece.
  void Begin(bool is_wanted, const Signature& signature, std::size_t all) {
    what = signature;
    bytes = all;
    wanted = is_wanted;
    ended = !is_wanted;
  }
  std::size_t next_bytes() const { return std::min(Arena::kPieceBytes, bytes - done); }
  void Passed() {
    done += next_bytes();
    ended = done == bytes;
  }
};

Status ArenaBackend::Exchange(const Operation& op, Agreement& agreement) {
  Transfer sent, received;
  sent.Begin(op.to >= 0, SignatureOfSent(op, rank_), op.in.bytes());
  received.Begin(op.from >= 0, SignatureOfReceived(op, rank_), op.out.bytes());
  Status error;
  // Returns whether a piece has moved, or the message has failed.
  const auto go_on = [&] {
    bool went_on = !sent.ended && SendPiece(op, sent);
    if (!received.ended) {
      const Result<bool> came = ReceivePiece(op, received, agreement);
      if (!came.ok()) error = came.status();
      went_on = went_on || !came.ok() || *came;
    }
    return went_on;
  };
  while (error.ok() && !(sent.ended && received.ended)) {
    int awaited[2];
    std::size_t n = 0;
    if (!received.ended) awaited[n++] = op.from;
    if (!sent.ended && (n == 0 || op.to != op.from)) awaited[n++] = op.to;
    PENSTOCK_RETURN_IF_ERROR(peers_.Until(arena_.line(rank_).bell, go_on, {awaited, n},
                                          received.ended ? sent.what : received.what));
  }
  return error;
}

bool ArenaBackend::SendPiece(const Operation& op, Transfer& sent) {
  Box& box = arena_.box(rank_, op.to);
  const std::uint32_t written = box.written.load();
  if (written - box.read.load() >= kBoxPieces) return false;
  const std::size_t bytes = sent.next_bytes();
  if (sent.done == 0) box.signatures[written % kBoxPieces] = sent.what;
  if (bytes > 0) std::memcpy(arena_.Piece(rank_, op.to, written), op.in.data + sent.done, bytes);
  box.written.store(written + 1);
  arena_.line(op.to).bell.Add();
  sent.Passed();
  return true;
}

Result<bool> ArenaBackend::ReceivePiece(const Operation& op, Transfer& received, Agreement& agreement) {
  Box& box = arena_.box(op.from, rank_);
  const std::uint32_t read = box.read.load();
  if (box.written.load() == read) return false;
  if (received.done == 0) {
    const Signature theirs = box.signatures[read % kBoxPieces];
    PENSTOCK_RETURN_IF_ERROR(agreement.Accept(theirs, received.what));
  }
  const std::size_t bytes = received.next_bytes();
  if (bytes > 0) std::memcpy(op.out.data + received.done, arena_.Piece(op.from, rank_, read), bytes);
  box.read.store(read + 1);
  arena_.line(op.from).bell.Add();
  received.Passed();
  return true;
}

}  // namespace penstock::collective
