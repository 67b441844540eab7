// A session's queues: what waits for the server's welcome or for credit, and what was sent and is not
// acknowledged.
// A message costs the same however much is in them.
#include <algorithm>

#include "executor/client/session.h"

namespace penstock::client {

Message Session::SealFor(const Peer& peer, protocol::Envelope envelope, Payload body) const {
  envelope.job = job_hash_;
  envelope.contract = peer.contract_hash;
  envelope.incarnation = options_.incarnation;
  envelope.trainer = static_cast<std::uint32_t>(trainer_);
  return protocol::Seal(envelope, std::move(body));
}

void Session::CountOpen(protocol::MessageKind kind, std::uint64_t step, bool first_value, int change) {
  const auto count = [change](std::size_t& open) { open += static_cast<std::size_t>(change); };
  if (kind == protocol::MessageKind::kSave) count(saves_open_);
  if (kind != protocol::MessageKind::kPush) return;
  if (first_value) return count(first_values_open_);
  const auto of_step = pushes_open_.try_emplace(step, 0).first;
  count(of_step->second);
  if (of_step->second == 0) pushes_open_.erase(of_step);
}

void Session::SendKept(Peer& peer, protocol::Envelope envelope, Payload body, bool first_value) {
  const Key key{envelope.kind, envelope.step, envelope.variable, envelope.chunk, envelope.part};
  Message message = SealFor(peer, envelope, std::move(body));
  const Sent sent{message, options_.clock->Now(), first_value};
  if (peer.sent.insert_or_assign(key, sent).second) CountOpen(envelope.kind, envelope.step, first_value, 1);
  if (!peer.closed) peer.connection->Send(std::move(message));
}

void Session::Acknowledge(Peer& peer, const Key& key) {
  const auto found = peer.sent.find(key);
  if (found != peer.sent.end()) {
    CountOpen(std::get<0>(key), std::get<1>(key), found->second.first_value, -1);
    peer.sent.erase(found);
  }
  Flush(peer);
}

// They are the first of the map.
void Session::ForgetHellos(Peer& peer) {
  while (!peer.sent.empty() && std::get<0>(peer.sent.begin()->first) == protocol::MessageKind::kHello)
    peer.sent.erase(peer.sent.begin());
}

std::size_t Session::ChunkCount(const Peer& peer, std::uint32_t variable) {
  const Shape& shape = PieceOf(peer, variable).shape;
  const std::uint64_t rows = shape.rank() == 0 ? 1 : static_cast<std::uint64_t>(shape[0]);
  return static_cast<std::size_t>((rows + peer.cut.chunk_rows[variable] - 1) / peer.cut.chunk_rows[variable]);
}

// Where a chunk begins and how long it is, in bytes.
std::pair<std::size_t, std::size_t> Session::ChunkBytes(const Peer& peer, std::uint32_t variable,
                                                        std::uint32_t chunk) {
  const protocol::ContractPiece& piece = PieceOf(peer, variable);
  const std::size_t total = static_cast<std::size_t>(piece.shape.Count()) * SizeOf(piece.dtype);
  const std::size_t row = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
  const std::size_t begin = chunk * peer.cut.chunk_rows[variable] * row;
  return {begin, std::min<std::size_t>(peer.cut.chunk_rows[variable] * row, total - begin)};
}

void Session::Enqueue(Peer& peer, Ready ready) {
  CountOpen(ready.kind, ready.step, ready.first_value, 1);
  peer.ready.push_back(std::move(ready));
  Flush(peer);
}

// Looks at what is new, and at Complete. Pushes without credit are looked at when their variable gets some.
void Session::Flush(Peer& peer) {
  if (!peer.welcome || peer.closed) return;
  for (std::size_t left = peer.ready.size(); left > 0; --left) {
    Ready ready = std::move(peer.ready.front());
    peer.ready.pop_front();
    ++entries_visited_;
    if (FlushOne(peer, ready)) {
      CountOpen(ready.kind, ready.step, ready.first_value, -1);
    } else if (ready.kind == protocol::MessageKind::kPush) {
      const std::uint32_t variable = ready.variable;
      peer.no_credit[variable].push_back(std::move(ready));
    } else {
      peer.ready.push_back(std::move(ready));
    }
  }
}

void Session::FlushNoCredit(Peer& peer, std::uint32_t variable) {
  if (!peer.welcome || peer.closed) return;
  const auto found = peer.no_credit.find(variable);
  if (found == peer.no_credit.end()) return;
  std::deque<Ready>& pushes = found->second;
  for (; !pushes.empty(); pushes.pop_front()) {
    Ready& ready = pushes.front();
    ++entries_visited_;
    if (!FlushPush(peer, ready)) return;
    CountOpen(ready.kind, ready.step, ready.first_value, -1);
  }
  peer.no_credit.erase(found);
}

void Session::FlushAll(Peer& peer) {
  std::vector<std::uint32_t> variables;
  for (const auto& [variable, pushes] : peer.no_credit) variables.push_back(variable);
  for (const std::uint32_t variable : variables) FlushNoCredit(peer, variable);
  Flush(peer);
}

bool Session::FlushOne(Peer& peer, Ready& ready) {
  switch (ready.kind) {
    case protocol::MessageKind::kPush:
      return !peer.no_credit.contains(ready.variable) && FlushPush(peer, ready);
    case protocol::MessageKind::kPull:
      FlushPull(peer, ready);
      return true;
    case protocol::MessageKind::kPullRows:
      FlushRowsPull(peer, ready);
      return true;
    case protocol::MessageKind::kComplete:  // the last word: the server must have everything before it
      if (!peer.sent.empty() || !peer.no_credit.empty() || !peer.ready.empty()) return false;
      [[fallthrough]];
    default:
      SendKept(peer, {.kind = ready.kind, .step = ready.step, .part = ready.request}, std::move(ready.body));
      return true;
  }
}

bool Session::FlushPush(Peer& peer, Ready& ready) {
  const std::size_t chunks = ChunkCount(peer, ready.variable);
  for (; ready.chunk < chunks; ++ready.chunk) {
    const auto credit = peer.credit.find({ready.variable, ready.chunk});
    if (ready.step >= (credit == peer.credit.end() ? peer.cut.window : credit->second)) return false;
    if (PieceOf(peer, ready.variable).rows) {
      FlushRows(peer, ready);
      return true;  // not cut into chunks
    }
    const auto [begin, bytes] = ChunkBytes(peer, ready.variable, ready.chunk);
    protocol::Envelope envelope{.kind = protocol::MessageKind::kPush,
                                .step = ready.step,
                                .variable = ready.variable,
                                .chunk = ready.chunk};
    for (std::size_t at = 0; at < bytes; at += peer.cut.part_bytes) {
      const std::size_t size = std::min<std::size_t>(peer.cut.part_bytes, bytes - at);
      SendKept(peer, envelope, Payload::Of(ready.value, begin + at, size), ready.first_value);
      ++envelope.part;
    }
  }
  return true;
}

void Session::FlushPull(Peer& peer, const Ready& ready) {
  const std::size_t chunks = ChunkCount(peer, ready.variable);
  Arriving& arriving = peer.arriving[ready.variable];
  arriving.chunks_left = chunks;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t bytes = ChunkBytes(peer, ready.variable, chunk).second;
    arriving.have[chunk].resize((bytes + peer.cut.part_bytes - 1) / peer.cut.part_bytes);
    SendKept(peer,
             {.kind = protocol::MessageKind::kPull,
              .step = ready.step,
              .variable = ready.variable,
              .chunk = chunk},
             {});
  }
}

}  // namespace penstock::client
