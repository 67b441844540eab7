// The reading thread of a LocalLink: what may come, and what of it is believed.
#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/transport/frame.h"
#include "executor/transport/gate.h"
#include "executor/transport/local_link.h"
#include "executor/transport/record.h"

namespace penstock::transport {
namespace {

Status Bad(std::string_view what) { return DataLoss("E-rpc-frame", "a record of a local connection ", what); }

}  // namespace

Status LocalLink::Read() {
  const auto buffer = std::make_unique_for_overwrite<char[]>(kRecordMax);
  while (true) {
    const std::optional<Received> received = ReceiveRecord(socket_, buffer.get(), kRecordMax);
    if (!received) {
      // The other side has closed without having read all; what it sent before is still to be read.
      if (errno == EINTR || errno == ECONNRESET) continue;
      return Unavailable("E-rpc-stream", "its connection broke");
    }
    if (received->size == 0)
      return heard_end_ ? OkStatus() : Unavailable("E-rpc-stream", "its connection broke");
    if (!received->whole) return Bad("is too large");
    heard_ = SystemClock().Now();
    reading_ = this;
    const Status status = OnRecord({buffer.get(), received->size}, received->passed);
    reading_ = nullptr;
    PENSTOCK_RETURN_IF_ERROR(status);
    if (heard_end_) return OkStatus();
    std::vector<Message> sent;
    const std::lock_guard lock(mutex_);
    Flush(sent);
  }
}

Status LocalLink::OnRecord(std::string_view record, const Descriptor& passed) {
  if (!admitted_ && (stranger_bytes_ += record.size()) > kStrangerBytesMax)
    return Bad("comes before the hello was accepted, which may take 64 KB");
  const std::optional<RecordKind> kind = TakeValue<RecordKind>(record);
  if (!kind) return Bad("has no kind");
  switch (*kind) {
    case RecordKind::kMessages:
      return OnMessages(record);
    case RecordKind::kShared:
      return OnShared(record);
    case RecordKind::kBegin:
      return OnBegin(record);
    case RecordKind::kPart:
      return OnPart(record);
    case RecordKind::kArena:
      return OnArena(passed);
    case RecordKind::kNotes:
      return OnNotes(record);
    case RecordKind::kEnd:
      heard_end_ = true;
      return OkStatus();
    case RecordKind::kPing:
      OnPing();
      return OkStatus();
    case RecordKind::kPong:
      return OkStatus();
  }
  return Bad("is of an unknown kind");
}

Status LocalLink::OnMessages(std::string_view frame) {
  const Payload bytes = Payload::Of(std::string(frame));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Message> messages, SplitFrame(bytes.pieces()));
  for (Message& message : messages) Deliver(std::move(message));
  return OkStatus();
}

Status LocalLink::OnShared(std::string_view record) {
  const std::optional<SharedHead> sizes = TakeValue<SharedHead>(record);
  if (!sizes || !incoming_ || record.size() != sizes->head || sizes->head > kMaxHeadBytes ||
      sizes->body > kMaxBodyBytes) {
    return Bad("does not describe a body in shared memory");
  }
  PENSTOCK_ASSIGN_OR_RETURN(Bytes body,
                            incoming_->Borrow(sizes->offset, sizes->body,
                                              [link = weak_from_this(), note = FreedNote(sizes->offset)] {
                                                if (const auto self = link.lock()) self->Note(note);
                                              }));
  Deliver({std::string(record), Payload(std::move(body))});
  Note(TakenNote(sizes->body));
  return OkStatus();
}

Status LocalLink::OnBegin(std::string_view record) {
  const std::optional<BeginHead> sizes = TakeValue<BeginHead>(record);
  if (!sizes || coming_ || record.size() != sizes->head || sizes->head > kMaxHeadBytes || sizes->body == 0 ||
      sizes->body > kMaxBodyBytes) {
    return Bad("does not describe a body");
  }
  if (!admitted_ && sizes->body > kStrangerBytesMax)
    return Bad("comes before the hello was accepted, which may take 64 KB");
  coming_.emplace(Coming{.message = {std::string(record), {}},
                         .body = std::make_shared_for_overwrite<std::byte[]>(sizes->body),
                         .size = sizes->body});
  return OkStatus();
}

Status LocalLink::OnPart(std::string_view part) {
  if (!coming_ || part.empty() || part.size() > coming_->size - coming_->have)
    return Bad("is no part of the body that comes");
  std::memcpy(coming_->body.get() + coming_->have, part.data(), part.size());
  coming_->have += part.size();
  if (coming_->have < coming_->size) return OkStatus();
  Coming whole = *std::exchange(coming_, std::nullopt);
  const std::byte* data = whole.body.get();
  whole.message.body.Append({std::move(whole.body), data, whole.size});
  Deliver(std::move(whole.message));
  return OkStatus();
}

Status LocalLink::OnArena(const Descriptor& passed) {
  if (!admitted_ || incoming_ || !passed.valid()) return Bad("offers shared memory out of turn");
  Result<ReceiveArena> arena = ReceiveArena::Map(passed);
  if (arena.ok()) {
    incoming_ = *std::move(arena);
    Note(TakenNote(0));
  } else if (arena.status().code() != StatusCode::kUnavailable) {
    return arena.status();
  }
  if (end_ == LocalEnd::kClient) OfferArena();
  return OkStatus();
}

Status LocalLink::OnNotes(std::string_view notes) {
  const std::lock_guard lock(mutex_);
  if (!outgoing_) return Bad("is about shared memory that was not offered");
  mapped_ = true;
  while (const std::optional<std::uint64_t> note = TakeValue<std::uint64_t>(notes)) {
    if (IsFreed(*note)) {
      if (!outgoing_->Free(*note - 1)) return Bad("frees shared memory that is not in use");
    } else {
      const std::uint64_t taken = *note >> 1;
      if (taken > untaken_) return Bad("takes more than was sent");
      untaken_ -= taken;
    }
  }
  changed_.notify_one();
  return notes.empty() ? OkStatus() : Bad("ends within a note");
}

void LocalLink::OnPing() {
  const std::lock_guard lock(mutex_);
  pong_ = true;
}

}  // namespace penstock::transport
