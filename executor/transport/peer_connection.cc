#include "executor/transport/peer_connection.h"

#include <utility>

namespace penstock::transport {

Result<bool> PeerConnection::Carry(const Open& open, Takes takes) {
  const std::lock_guard lock(mutex_);
  if (ending_ || (!members_.empty() && (closing_ || aborted_))) return false;
  Member& member = members_.emplace_back(*this);
  Result<std::shared_ptr<Connection>> stream = open(member);
  if (!stream.ok()) {
    members_.pop_back();
    return stream.status();
  }
  member.stream = *std::move(stream);
  local_ = member.stream->local();
  if (takes == Takes::kLarge) for_large_.push_back(&member);
  ++open_;
  for (Message& message : early_) member.stream->Send(std::move(message));
  early_.clear();
  if (closing_) member.stream->Close();
  if (aborted_) member.stream->Abort();
  return true;
}

void PeerConnection::Send(Message message) {
  const std::lock_guard lock(mutex_);
  if (ending_ || closing_) return;
  if (members_.empty()) {
    early_.push_back(std::move(message));
    return;
  }
  if (message.body.size() < kLargeBytes) return members_.front().stream->Send(std::move(message));
  if (heard_) OnLarge();
  ForLarge().stream->Send(std::move(message));
}

PeerConnection::Member& PeerConnection::ForLarge() {
  const std::size_t turn = next_++;
  return for_large_.empty() ? members_[turn % members_.size()] : *for_large_[turn % for_large_.size()];
}

void PeerConnection::Close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  for (Member& member : members_) {
    if (member.open) member.stream->Close();
  }
}

void PeerConnection::Abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  for (Member& member : members_) {
    if (member.open) member.stream->Abort();
  }
}

void PeerConnection::Admit() {
  const std::lock_guard lock(mutex_);
  for (Member& member : members_) member.stream->Admit();
}

void PeerConnection::Deliver(Message message) {
  heard_ = true;
  if (message.body.size() >= kLargeBytes) OnLarge();
  const std::lock_guard lock(delivery_);
  handler_.OnMessage(shared_from_this(), std::move(message));
}

void PeerConnection::Closed(Member& member, const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    member.open = false;
    ending_ = true;
    if (why_.ok()) why_ = why;
    if (--open_ > 0) {
      // After an orderly end, the other side ends the other streams too, once it has sent its queued
      // messages.
      for (Member& other : members_) {
        if (other.open && !why.ok()) other.stream->Abort();
      }
      return;
    }
  }
  handler_.OnClosed(shared_from_this(), why_);
  OnOver();
}

void PeerConnection::EndWithout(const Status& why) {
  handler_.OnClosed(shared_from_this(), why);
  OnOver();
}

}  // namespace penstock::transport
