// What a worker pulls of its keys, and all that it has begun and not waited for.
#include <algorithm>
#include <limits>
#include <utility>

#include "executor/client/key_client.h"
#include "executor/client/key_work.h"

namespace penstock::client {

Result<KeyClient::Ticket> KeyClient::Pull(int index, const Tensor& out) {
  const Given given{index, out};
  return PullAll({&given, 1});
}

Result<KeyClient::Ticket> KeyClient::PullAll(std::span<const Given> outs) {
  for (const Given& given : outs) {
    PENSTOCK_ASSIGN_OR_RETURN(const Key* const key, Ready(given.key));
    PENSTOCK_RETURN_IF_ERROR(CheckValue(*key, given.value, "array"));
  }
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(session_.status());
  return Together(outs, [&](std::size_t i) { return BeginPull(outs[i].key, outs[i].value); });
}

KeyClient::Ticket KeyClient::BeginPull(int index, const Tensor& out) {
  Key& key = keys_[static_cast<std::size_t>(index)];
  Ticket ticket = std::make_shared<Work>(Work::Kind::kPull, index, key.pushes);
  ticket->out = out;
  const Shape shape = key.type.rows ? out.shape() : Shape({out.count()});
  ticket->stored = key.stored == out.dtype() ? out.Reshaped(shape) : Tensor(key.stored, shape);
  AdvancePulls(key);
  if (Status started = StartPull(key, *ticket); started.ok()) {
    key.pulls.push_back(ticket);
  } else {
    Finish(*ticket, std::move(started));
  }
  return ticket;
}

// Begins the work of each key. What is small travels in one message for each server.
Result<KeyClient::Ticket> KeyClient::Together(std::span<const Given> items,
                                              const std::function<Ticket(std::size_t)>& begin) {
  if (items.size() == 1) return Remember(begin(0));
  Ticket all = std::make_shared<Work>(Work::Kind::kAll, -1, 0);
  all->all.reserve(items.size());
  for (Link* link : links_) link->Hold();
  for (std::size_t i = 0; i < items.size(); ++i) all->all.push_back(begin(i));
  for (Link* link : links_) link->Release();
  return Remember(std::move(all));
}

// Pulls of different versions are in flight together, so each is requested before the next push. A pull of a
// version that is in flight gets the same answer.
Status KeyClient::StartPull(Key& key, Work& work) {
  const auto same = std::ranges::find_if(key.pulls, [&](const Ticket& other) {
    return other.get() != &work && !other->done && other->leader == nullptr && other->version == work.version;
  });
  if (same != key.pulls.end()) {
    work.leader = *same;
    return OkStatus();
  }
  work.updates.assign(key.pieces.size(), std::nullopt);
  for (const Piece& piece : key.pieces) {
    Tensor part = work.stored.Rows(piece.begin, piece.end);
    PENSTOCK_RETURN_IF_ERROR(piece.link->PullKey(piece.slots.value, part, work.version));
  }
  return OkStatus();
}

// A pull whose pieces have different numbers of updates, because this worker has not pushed in the last
// rounds, is made again.
void KeyClient::AdvancePull(Key& key, Work& work) {
  if (work.leader != nullptr) {  // it comes before this one, so its memory has not changed since
    if (!work.leader->done) return;
    if (work.leader->status.ok()) work.stored.CopyFrom(work.leader->stored);
    return Finish(work, std::exchange(work.leader, nullptr)->status);
  }
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), most = 0;
  for (std::size_t i = 0; i < key.pieces.size(); ++i) {
    std::optional<Link::Updates>& updates = work.updates[i];
    if (!updates) updates = key.pieces[i].link->TakePulled(key.pieces[i].slots.value, work.version);
    if (!updates) return;
    least = std::min(least, updates->least);
    most = std::max(most, updates->most);
  }
  if (least == most || key.type.rows) return Finish(work);
  work.version = most;
  if (Status again = StartPull(key, work); !again.ok()) Finish(work, std::move(again));
}

void KeyClient::AdvancePulls(Key& key) {
  for (const Ticket& pull : key.pulls) {
    if (!pull->done) AdvancePull(key, *pull);
  }
  std::erase_if(key.pulls, [](const Ticket& each) { return each->done; });
}

Result<KeyClient::Ticket> KeyClient::PullRows(int index, std::span<const std::int64_t> rows,
                                              const Tensor& out) {
  PENSTOCK_ASSIGN_OR_RETURN(Key* const key, Ready(index));
  PENSTOCK_RETURN_IF_ERROR(CheckRows(*key, rows, out));
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(session_.status());
  Ticket ticket = std::make_shared<Work>(Work::Kind::kRows, index, key->pushes);
  ticket->out = out;
  for (std::size_t i = 0; i < key->pieces.size(); ++i) {
    const Piece& piece = key->pieces[i];
    RowsOfPiece part = RowsIn(*key, i, rows);
    if (part.ids().empty()) continue;
    Work::Rows& asked = ticket->rows.emplace_back(piece.link, std::move(part));
    asked.requests = piece.link->PullKeyRows(piece.slots.value, asked.of.ids(), asked.values, key->pushes);
  }
  return Remember(std::move(ticket));
}

KeyClient::Ticket KeyClient::Remember(Ticket ticket) {
  if (open_.size() >= sweep_at_) {
    std::erase_if(open_, [&](const Ticket& open) { return LookAt(*open) && open->status.ok(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * open_.size());
  }
  return open_.emplace_back(std::move(ticket));
}

// Whether the work is done now.
bool KeyClient::LookAt(Work& work) {
  if (work.done) return true;
  if (work.kind == Work::Kind::kAll) return LookAtAll(work);
  Key& key = keys_[static_cast<std::size_t>(work.key)];
  switch (work.kind) {
    case Work::Kind::kPush: {
      const auto is_taken = [&](const Piece& piece) {
        return piece.link->KeyPushesDone(piece.slots.gradient, work.version);
      };
      if (std::ranges::all_of(key.pieces, is_taken)) Finish(work);
      break;
    }
    case Work::Kind::kPull:
      AdvancePulls(key);
      break;
    case Work::Kind::kRows:
      if (std::ranges::all_of(
              work.rows, [](const Work::Rows& asked) { return asked.link->RowsAreThere(asked.requests); }))
        Finish(work);
      break;
    case Work::Kind::kAll:
      break;
  }
  return work.done;
}

bool KeyClient::LookAtAll(Work& work) {
  while (work.seen < work.all.size() && LookAt(*work.all[work.seen])) ++work.seen;
  if (work.seen < work.all.size()) return false;
  const auto failed = std::ranges::find_if(work.all, [](const Ticket& each) { return !each->status.ok(); });
  Finish(work, failed == work.all.end() ? OkStatus() : (*failed)->status);
  return true;
}

void KeyClient::Finish(Work& work, Status status) {
  if (status.ok()) work.Land();
  work.status = std::move(status);
  work.done = true;
}

bool KeyClient::Done(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  return LookAt(*ticket);
}

Status KeyClient::WaitFor(const Ticket& ticket) {
  if (!Done(ticket)) PENSTOCK_RETURN_IF_ERROR(wait_([&] { return Done(ticket); }));
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [&](const Ticket& open) { return open->done; });
  return ticket->status;
}

Status KeyClient::WaitForAll() {
  std::vector<Ticket> open;
  {
    const std::lock_guard lock(mutex_);
    open = open_;
  }
  Status first;
  for (const Ticket& ticket : open) {
    Status status = WaitFor(ticket);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace penstock::client
