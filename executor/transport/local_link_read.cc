// The reading thread of a LocalLink: receives records and verifies them.
#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/transport/frame.h"
#include "executor/transport/gate.h"
#include "executor/transport/local_link.h"
#include "executor/transport/record.h"

namespace penstock::transport {
namespace {

// The bytes of other processes' memory that stay mapped. A server has many clients, so it keeps little. A
// client would otherwise map the parameters again in each step.
constexpr std::size_t kKeptByServer = std::size_t{16} << 20;
constexpr std::size_t kKeptByClient = std::size_t{256} << 20;

Status Bad(std::string_view what) { return DataLoss("E-rpc-frame", "a record of a local connection ", what); }

}  // namespace

Status LocalLink::Read() {
  const auto buffer = std::make_unique_for_overwrite<char[]>(kRecordMax);
  while (true) {
    std::optional<Received> received = ReceiveRecord(socket_, buffer.get(), kRecordMax);
    if (!received) {
      // ECONNRESET: the other side closed before it had read everything. The records it sent before can still
      // be read.
      if (errno == EINTR || errno == ECONNRESET) continue;
      return Unavailable("E-rpc-stream", "its connection broke");
    }
    if (received->size == 0)
      return heard_end_ ? OkStatus() : Unavailable("E-rpc-stream", "its connection broke");
    if (!received->whole) return Bad("is too large");
    heard_ = SystemClock().Now();
    reading_ = this;
    const Status status = OnRecord({buffer.get(), received->size}, std::move(received->passed));
    reading_ = nullptr;
    PENSTOCK_RETURN_IF_ERROR(status);
    if (heard_end_) return OkStatus();
    std::vector<Message> sent;
    const std::lock_guard lock(mutex_);
    Flush(sent);
  }
}

Status LocalLink::OnRecord(std::string_view record, Descriptor passed) {
  if (!admitted_ && (stranger_bytes_ += record.size()) > kStrangerBytesMax)
    return Bad("comes before the hello was accepted, which may take 64 KB");
  const std::optional<RecordKind> kind = TakeValue<RecordKind>(record);
  if (!kind) return Bad("has no kind");
  switch (*kind) {
    case RecordKind::kMessages:
      return OnMessages(record);
    case RecordKind::kCopied:
      return OnShared(record, true);
    case RecordKind::kLent:
      return OnShared(record, false);
    case RecordKind::kBegin:
      return OnBegin(record);
    case RecordKind::kPart:
      return OnPart(record);
    case RecordKind::kHold:
      hold_ = std::move(passed);
      return OkStatus();
    case RecordKind::kMemory:
      return OnMemory(passed);
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

Status LocalLink::OnShared(std::string_view record, bool copied) {
  const std::optional<SharedHead> about = TakeValue<SharedHead>(record);
  if (!about || !incoming_ || record.size() != about->head || about->head > kMaxHeadBytes ||
      about->body > kMaxBodyBytes) {
    return Bad("does not describe a body in shared memory");
  }
  PENSTOCK_ASSIGN_OR_RETURN(Bytes body,
                            incoming_->Borrow(about->offset, about->body,
                                              [link = weak_from_this(), note = ReturnedNote(about->loan)] {
                                                if (const auto self = link.lock()) self->Note(note);
                                              }));
  Deliver({std::string(record), Payload(std::move(body))});
  if (copied) Note(TakenNote(about->loan));
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

Status LocalLink::OnMemory(const Descriptor& passed) {
  if (!admitted_ || incoming_ || !passed.valid() || !hold_.valid()) return Bad("offers memory out of turn");
  Result<BorrowedMemory> memory = BorrowedMemory::Map(
      passed, std::move(hold_), end_ == LocalEnd::kServer ? kKeptByServer : kKeptByClient);
  if (memory.ok()) {
    incoming_ = *std::move(memory);
    Note(kMappedNote);
  } else if (memory.status().code() != StatusCode::kUnavailable) {
    return memory.status();
  }
  if (end_ == LocalEnd::kClient) OfferMemory();
  return OkStatus();
}

Status LocalLink::OnNotes(std::string_view notes) {
  std::vector<Loans::Loan> returned;  // freed without the lock: an owner may be a payload of this connection
  const std::lock_guard lock(mutex_);
  if (!loans_ || offer_) return Bad("is about memory that was not lent");
  mapped_ = true;
  while (const std::optional<std::uint64_t> note = TakeValue<std::uint64_t>(notes)) {
    if (*note == kMappedNote) continue;
    const std::uint64_t number = *note >> 1;
    if (Loans::Loan* const loan = loans_->Find(number)) {
      untaken_ -= std::exchange(loan->untaken, 0);
      if (IsReturned(*note)) loans_->Return(number, returned.emplace_back());
    } else if (IsReturned(*note)) {
      return Bad("returns memory that is not lent");
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
