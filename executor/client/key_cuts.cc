// Checkpoints of keys, as a worker sees them: before its first push behind a cut it tells all servers how
// often it has pushed each key, and waits until they know it (ARCHITECTURE.md, "Keys").
#include <algorithm>
#include <utility>

#include "executor/client/key_client.h"
#include "framework/base/strings.h"

namespace penstock::client {

// What the servers say of checkpoints when they have declared the key.
void KeyClient::NoteCheckpoint(Key& key) {
  if (!key.type.table.empty()) return;
  for (const Piece& piece : key.pieces) {
    cut_every_ = std::max(cut_every_.load(), piece.link->cut_every());
    key.resumed = std::max(key.resumed, piece.link->KeySince(piece.slots.value));
  }
  most_ = std::max(most_, key.pushes);
  if (resets_ > 1) return;  // the optimizer is another one than that of the checkpoint
  key.since = key.resumed;
  largest_ = std::max(largest_, key.since);
}

// The first optimizer of a process goes on with what a checkpoint has of it.
void KeyClient::BeginCounts() {
  const bool continues = ++resets_ == 1;
  largest_ = 0;
  for (Key& key : keys_) {
    key.since = continues ? key.resumed : 0;
    largest_ = std::max(largest_, key.since);
  }
}

// Whether the next push of the key is behind a cut that was not announced.
bool KeyClient::IsDue(const Key& key) const {
  return cut_every_ > 0 && key.type.table.empty() && key.pushes == most_ && most_ > cut_ &&
         most_ % cut_every_ == 0;
}

bool KeyClient::IsAtCut(std::span<const int> keys) const {
  if (cut_every_ == 0) return false;
  const std::lock_guard lock(mutex_);
  if (cut_ > cut_taken_) return true;  // another thread is at it
  return std::ranges::any_of(keys, [&](int key) {
    return key >= 0 && static_cast<std::size_t>(key) < keys_.size() &&
           IsDue(keys_[static_cast<std::size_t>(key)]);
  });
}

Status KeyClient::PassCut(std::span<const int> keys) { return IsAtCut(keys) ? CutHere(false) : OkStatus(); }

// Keys that servers have not declared yet come later in the program, and are in no cut before.
Status KeyClient::CutHere(bool last) {
  std::uint64_t cut = 0;
  {
    const std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(session_.status());
    const bool is_new = most_ > cut_ && most_ % cut_every_ == 0;
    if (is_new) cut_ = most_;
    if (last && cut_ == cut_taken_) return OkStatus();
    cut = cut_;
    for (Link* const link : links_) {
      std::vector<Link::KeyCount> pushes;
      for (const Key& key : keys_) {
        if (!key.ready || !key.status.ok() || !key.type.table.empty()) continue;
        for (const Piece& piece : key.pieces)
          if (piece.link == link) pushes.push_back({piece.slots.value, key.pushes});
      }
      if (is_new) link->CutKeys(cut, pushes);
    }
  }
  PENSTOCK_RETURN_IF_ERROR(wait_(
      [&] { return std::ranges::all_of(links_, [&](const Link* link) { return link->CutIsTaken(cut); }); }));
  const std::lock_guard lock(mutex_);
  cut_taken_ = std::max(cut_taken_, cut);
  return OkStatus();
}

// A worker that ends at a cut makes no push behind it.
Status KeyClient::LastCut() {
  {
    const std::lock_guard lock(mutex_);
    if (cut_every_ == 0 || most_ == 0) return OkStatus();
  }
  return CutHere(true);
}

Result<std::uint64_t> KeyClient::GoneWorkers() {
  const std::uint32_t request = links_.front()->CountGone();
  PENSTOCK_RETURN_IF_ERROR(wait_([&] { return links_.front()->GoneCount(request).has_value(); }));
  return *links_.front()->GoneCount(request);
}

std::uint64_t KeyClient::LostServers() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(links_, [](const Link* link) { return link->is_lost(); }));
}

}  // namespace penstock::client
