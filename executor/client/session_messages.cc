// What arrives at a Session, and what it does by the clock.
#include <algorithm>

#include "executor/client/session.h"
#include "executor/protocol/failure.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"

namespace penstock::client {
namespace {

constexpr std::uint32_t kNoVariable = 0xffffffff;

// What a server says against this trainer itself, before it has welcomed it.
bool IsRefusal(const Status& why) {
  return StartsWith(why.id(), "E-plan-") || StartsWith(why.id(), "E-rpc-") ||
         StartsWith(why.id(), "E-contract-");
}

}  // namespace

void Session::Fail(Status why) {
  if (!status_.ok()) return;
  status_ = std::move(why);
  // The others should not have to guess why this trainer goes.
  for (auto& [address, peer] : peers_) {
    if (peer->closed || peer->completed) continue;
    // Also where no welcome has come yet: the hello may be on its way, and is followed by the reason.
    peer->connection->Send(
        SealFor(*peer, {.kind = protocol::MessageKind::kError}, Payload::Of(protocol::WriteStatus(status_))));
    peer->connection->Close();
  }
  options_.on_change();
}

void Session::React(Status why) {
  if (status_.ok() && options_.on_reaction) options_.on_reaction(why);
  Fail(std::move(why));
}

Session::Peer* Session::PeerOf(const std::shared_ptr<Connection>& connection) {
  for (auto& [address, peer] : peers_) {
    if (peer->connection == connection) return peer.get();
  }
  return nullptr;
}

void Session::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  const Result<protocol::Envelope> envelope = protocol::Open(message);
  const std::lock_guard lock(mutex_);
  Peer* peer = PeerOf(from);
  if (peer == nullptr || !status_.ok()) return;
  if (!envelope.ok()) {
    Status why = envelope.status();
    Fail(std::move(why).In(StrCat("pserver ", peer->address)));
    return;
  }
  peer->heard = options_.clock->Now();
  const bool for_us = envelope->trainer == static_cast<std::uint32_t>(trainer_) &&
                      envelope->incarnation == options_.incarnation;
  if (!for_us && envelope->kind != protocol::MessageKind::kError) return;
  const bool busy = !peer->arriving.empty() || !peer->sent.empty();
  const std::size_t rows_before = peer->arriving_rows.size();
  Status status = OnEnvelope(*peer, *envelope, message);
  if (!status.ok() && envelope->kind == protocol::MessageKind::kError &&
      (peer->was_welcome || !IsRefusal(status))) {
    React(std::move(status));
  } else if (!status.ok()) {
    Fail(std::move(status));
  } else if (peer->arriving.empty() || (busy && peer->sent.empty()) || peer->completed ||
             peer->arriving_rows.size() != rows_before) {
    options_.on_change();
  }
}

Status Session::OnEnvelope(Peer& peer, const protocol::Envelope& envelope, const Message& message) {
  const auto acknowledge = [&](protocol::MessageKind kind) {
    Acknowledge(peer, {kind, envelope.step, envelope.variable, envelope.chunk, envelope.part});
  };
  switch (envelope.kind) {
    case protocol::MessageKind::kWelcome:
      return OnWelcome(peer, envelope, message);
    case protocol::MessageKind::kPushed: {
      TakeCredit(peer, envelope);
      acknowledge(protocol::MessageKind::kPush);
      return OkStatus();
    }
    case protocol::MessageKind::kStepEnded:
      acknowledge(protocol::MessageKind::kEndStep);
      return OkStatus();
    case protocol::MessageKind::kPulled:
      return OnPulled(peer, envelope, message.body);
    case protocol::MessageKind::kGone: {
      const auto arriving = peer.arriving.find(envelope.variable);
      if (arriving == peer.arriving.end() || arriving->second.version != envelope.step) return OkStatus();
      return FailedPrecondition("E-recv-version", "recv: version ", envelope.step, " of ",
                                PieceOf(peer, envelope.variable).name, " on pserver ", peer.address,
                                " is overwritten by a later one; receive before the next gradients are sent");
    }
    case protocol::MessageKind::kRows:
      return OnRows(peer, envelope, message.body);
    case protocol::MessageKind::kRowsGone:
      return OnRowsGone(peer, envelope);
    case protocol::MessageKind::kSaved:
      return OnSaved(peer, envelope, message.body);
    case protocol::MessageKind::kCompleted:
      peer.completed = true;
      acknowledge(protocol::MessageKind::kComplete);
      peer.connection->Close();
      return OkStatus();
    case protocol::MessageKind::kCredit:
      TakeCredit(peer, envelope);
      return OkStatus();
    case protocol::MessageKind::kAnswer:
      peer.answer = message.body.ToText();
      TakeCredit(peer, envelope);
      return OkStatus();
    case protocol::MessageKind::kLeft:
      OnLeft(envelope);
      return OkStatus();
    case protocol::MessageKind::kError: {
      Status why = protocol::ReadStatus(message.body.ToText());
      if (why.code() == StatusCode::kCancelled)
        return protocol::FailureOf(StrCat("pserver ", peer.address), why);
      return why;
    }
    default:
      return DataLoss("E-rpc-envelope", "pserver ", peer.address,
                      " sent a message that only a trainer may send");
  }
}

void Session::TakeCredit(Peer& peer, const protocol::Envelope& envelope) {
  std::uint64_t& credit = peer.credit[{envelope.variable, envelope.chunk}];
  credit = std::max({credit, envelope.credit, std::uint64_t{peer.cut.window}});
  FlushNoCredit(peer, envelope.variable);
}

Status Session::OnWelcome(Peer& peer, const protocol::Envelope& envelope, const Message& message) {
  if (peer.welcome || envelope.contract != peer.contract_hash) return OkStatus();  // a repeat
  if (envelope.step > step_) {
    return FailedPrecondition("E-rpc-restart", "pserver ", peer.address, " has had ", envelope.step,
                              " steps of trainer ", trainer_, ", which is at step ", step_,
                              ": it was started again");
  }
  PENSTOCK_ASSIGN_OR_RETURN(protocol::WelcomeBody cut, protocol::ReadWelcome(message.body.ToText()));
  const std::size_t variables = peer.contract.variable_count();
  const bool sane = cut.part_bytes > 0 && cut.part_bytes <= kMaxBodyBytes && cut.window > 0 &&
                    cut.chunk_rows.size() >= variables &&
                    std::none_of(cut.chunk_rows.begin(), cut.chunk_rows.end(),
                                 [](std::uint64_t rows) { return rows == 0; });
  if (LogsDetail(1))
    Log(LogSeverity::kInfo, StrCat("pserver ", peer.address, " has welcomed trainer ", trainer_));
  if (!sane)
    return DataLoss("E-rpc-welcome", "pserver ", peer.address,
                    " describes its chunks in a way that cannot be");
  peer.cut = std::move(cut);
  peer.welcome = peer.was_welcome = true;
  ForgetHellos(peer);
  FlushAll(peer);
  return OkStatus();
}

Status Session::OnPulled(Peer& peer, const protocol::Envelope& envelope, const Payload& body) {
  const auto found = peer.arriving.find(envelope.variable);
  if (found == peer.arriving.end() || found->second.version != envelope.step) return OkStatus();  // a repeat
  Arriving& arriving = found->second;
  const auto chunk = arriving.have.find(envelope.chunk);
  if (chunk == arriving.have.end() || envelope.part >= chunk->second.size() || chunk->second[envelope.part]) {
    return OkStatus();
  }
  const auto [begin, bytes] = ChunkBytes(peer, envelope.variable, envelope.chunk);
  const std::size_t at = std::size_t{envelope.part} * peer.cut.part_bytes;
  if (body.size() != std::min<std::size_t>(peer.cut.part_bytes, bytes - at)) {
    return DataLoss("E-rpc-part-size", "pserver ", peer.address, " sent ", body.size(), " bytes as part ",
                    envelope.part, " of ", PieceOf(peer, envelope.variable).name);
  }
  body.CopyTo(arriving.out.raw() + begin + at);
  chunk->second[envelope.part] = true;
  if (!std::all_of(chunk->second.begin(), chunk->second.end(), [](bool have) { return have; }))
    return OkStatus();
  arriving.have.erase(chunk);
  if (--arriving.chunks_left == 0) peer.arriving.erase(found);
  Acknowledge(peer, {protocol::MessageKind::kPull, envelope.step, envelope.variable, envelope.chunk, 0});
  return OkStatus();
}

void Session::OnClosed(const std::shared_ptr<Connection>& from, const Status& why) {
  const std::lock_guard lock(mutex_);
  Peer* peer = PeerOf(from);
  if (peer == nullptr) return;
  peer->closed = true;
  peer->closed_at = options_.clock->Now();
  options_.on_change();
  if (!status_.ok() || peer->completed) return;
  // A server that is still to start refuses, and Tick connects again; other reasons stay.
  const bool may_pass = why.ok() || why.code() == StatusCode::kUnavailable;
  if (!may_pass) return Fail(Status(why).In(StrCat("pserver ", peer->address)));
  if (!peer->was_welcome) return;
  const Nanoseconds silence = options_.clock->Now() - peer->heard;
  React(Unavailable("E-peer-lost", "pserver ", peer->address, " is gone: ",
                    why.ok() ? std::string("it closed the connection")
                             : StrCat(why.message(), protocol::SilenceText(silence)),
                    " (step ", step_, ")"));
}

void Session::Tick() {
  const std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  const Nanoseconds now = options_.clock->Now();
  for (auto& [address, peer] : peers_) {
    if (peer->completed) continue;
    if (!peer->welcome && now - peer->since > options_.connect_deadline) {
      Status late = DeadlineExceeded("E-peer-connect", "pserver ", address, " has not answered for ",
                                     WholeSeconds(now - peer->since), " s");
      React(std::move(late).With(
          "it was not started, or the job ended before this trainer came: its log says which"));
      return;
    }
    if (peer->closed) {
      if (now - peer->closed_at >= options_.reconnect_after) Connect(*peer);
      continue;
    }
    for (auto& [variable, pushes] : peer->no_credit) {  // what would have brought credit may have been lost
      Ready& ready = pushes.front();                    // those behind it wait for the same
      if (!peer->welcome || now - ready.asked < options_.resend_after) continue;
      ready.asked = now;
      peer->connection->Send(SealFor(*peer,
                                     {.kind = protocol::MessageKind::kAsk,
                                      .step = ready.step,
                                      .variable = variable,
                                      .chunk = ready.chunk},
                                     {}));
    }
    for (auto& [key, sent] : peer->sent) {
      if (now - sent.at < options_.resend_after) continue;
      sent.at = now;
      peer->connection->Send(sent.message);
    }
  }
}

void Session::Ask() {
  const std::lock_guard lock(mutex_);
  const std::string waiting_for = WaitingForLocked();
  for (auto& [address, peer] : peers_) {
    peer->answer.clear();
    if (peer->closed || !peer->welcome) continue;
    protocol::Envelope question{.kind = protocol::MessageKind::kAsk, .variable = kNoVariable};
    if (!peer->arriving.empty()) {
      const auto& [variable, arriving] = *peer->arriving.begin();
      question.step = arriving.version;
      question.variable = variable;
      question.chunk = arriving.have.empty() ? 0 : arriving.have.begin()->first;
    } else if (!peer->arriving_rows.empty()) {
      question.step = peer->arriving_rows.begin()->second.version;
      question.variable = peer->arriving_rows.begin()->second.variable;
    }
    peer->connection->Send(SealFor(*peer, question, Payload::Of(std::string(waiting_for))));
  }
}

std::string Session::WaitingFor() const {
  const std::lock_guard lock(mutex_);
  return WaitingForLocked();
}

std::string Session::WaitingForLocked() const {
  for (const auto& [address, peer] : peers_) {
    const bool has_more = !peer->ready.empty() || !peer->no_credit.empty() || completing_;
    if (!peer->welcome && !peer->completed && has_more) {
      return StrCat("pserver ", address,
                    peer->was_welcome ? " to accept the program" : " to start (nothing answers there yet)");
    }
  }
  const auto because = [](const Peer& peer) {
    return peer.answer.empty() ? std::string() : StrCat(", which waits for ", peer.answer);
  };
  for (const auto& [address, peer] : peers_) {
    if (!peer->arriving_rows.empty()) {
      const ArrivingRows& arriving = peer->arriving_rows.begin()->second;
      return StrCat("rows of version ", arriving.version, " of ", PieceOf(*peer, arriving.variable).name,
                    " on pserver ", address, because(*peer));
    }
    if (peer->arriving.empty()) continue;
    const auto& [variable, arriving] = *peer->arriving.begin();
    const protocol::ContractPiece& piece = PieceOf(*peer, variable);
    std::string rows;
    if (!arriving.have.empty() && piece.shape.rank() > 0) {
      const std::uint64_t begin = arriving.have.begin()->first * peer->cut.chunk_rows[variable];
      const auto end = std::min<std::uint64_t>(begin + peer->cut.chunk_rows[variable],
                                               static_cast<std::uint64_t>(piece.shape[0]));
      rows = StrCat(" (rows ", begin, "-", end, ")");
    }
    return StrCat("version ", arriving.version, " of ", piece.name, rows, " on pserver ", address,
                  because(*peer));
  }
  for (const auto& [address, peer] : peers_) {
    if (!peer->sent.empty() || !peer->ready.empty() || !peer->no_credit.empty())
      return StrCat("pserver ", address, " to take what was sent");
  }
  return "";
}

}  // namespace penstock::client
