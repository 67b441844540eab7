#include "executor/transport/local_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "executor/transport/frame.h"
#include "executor/transport/gate.h"
#include "executor/transport/record.h"

namespace penstock::transport {
namespace {

constexpr std::size_t kSharedFrom = std::size_t{32} << 10;  // bodies of so many bytes go by the arena
// As by gRPC (grpc_stream.cc).
constexpr Nanoseconds kPingAfter = std::chrono::seconds(5);
constexpr Nanoseconds kPongWithin = std::chrono::seconds(8);
constexpr auto kLookEvery = std::chrono::milliseconds(1000);

constexpr std::size_t kUntakenMax = std::size_t{8} << 20;  // two bodies: one is copied while one is read

// The link whose record this thread handles: what its handler sends and frees meanwhile goes out together.
thread_local const LocalLink* reading = nullptr;

Status Bad(std::string_view what) { return DataLoss("E-rpc-frame", "a record of a local connection ", what); }
Status Broken() { return Unavailable("E-rpc-stream", "its connection broke"); }

// For kLookEvery at most.
void WaitForRoom(const Descriptor& socket) {
  pollfd polled{socket.get(), POLLOUT, 0};
  poll(&polled, 1, kLookEvery.count());
}

bool HasMore(const Descriptor& socket) {
  pollfd polled{socket.get(), POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

}  // namespace

LocalLink::LocalLink(Descriptor socket, ConnectionHandler& handler, LocalEnd end,
                     std::function<void()> on_admit)
    : socket_(std::move(socket)),
      handler_(handler),
      end_(end),
      on_admit_(std::move(on_admit)),
      admitted_(end == LocalEnd::kClient),
      heard_(SystemClock().Now()) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) & ~O_NONBLOCK);
}

void LocalLink::Run() {
  Status why;
  try {
    std::thread writer([this] { Write(); });
    why = Read();
    {
      const std::lock_guard lock(mutex_);
      // What this side has ended itself ends as it says; and after its own end nothing is missing.
      if (why_) why = *why_;
      if (why.id() == "E-rpc-stream" && said_end_ && !why_) why = OkStatus();
      if (heard_end_ && !said_end_) SendRecord(socket_, NewRecord(RecordKind::kEnd));
      EndNow(why);
    }
    writer.join();
  } catch (const std::system_error& error) {
    why = Unavailable("E-rpc-thread", "cannot start a thread: ", error.what());
    const std::lock_guard lock(mutex_);
    EndNow(why);
  }
  std::deque<Message> dropped[2];  // without the lock: an owner may be a payload of this connection
  {
    const std::lock_guard lock(mutex_);
    dropped[0].swap(small_);
    dropped[1].swap(large_);
  }
  handler_.OnClosed(shared_from_this(), why);
}

void LocalLink::Send(Message message) {
  PENSTOCK_CHECK(message.head.size() <= kMaxHeadBytes && message.body.size() <= kMaxBodyBytes,
                 "a message is too large");
  std::vector<Message> sent;
  const std::lock_guard lock(mutex_);
  if (ended_ || closing_) {
    sent.push_back(std::move(message));
    return;
  }
  if (message.body.size() >= kSharedFrom) {
    large_.push_back(std::move(message));
    changed_.notify_one();
    return;
  }
  small_.push_back(std::move(message));
  if (reading != this) Flush(sent);
}

void LocalLink::Close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_one();
}

void LocalLink::Abort() {
  const std::lock_guard lock(mutex_);
  EndNow(Unavailable("E-rpc-stream", "the connection was given up"));
}

void LocalLink::Admit() {
  if (end_ == LocalEnd::kClient || admitted_.exchange(true)) return;
  if (on_admit_) on_admit_();
  OfferArena();
}

void LocalLink::EndNow(const Status& why) {
  if (ended_) return;
  ended_ = true;
  why_ = why;
  shutdown(socket_.get(), SHUT_RDWR);
  changed_.notify_one();
}

// --- The reading thread.

Status LocalLink::Read() {
  const auto buffer = std::make_unique_for_overwrite<char[]>(kRecordMax);
  while (true) {
    const std::optional<Received> received = ReceiveRecord(socket_, buffer.get(), kRecordMax);
    if (!received) {
      // The other side has closed without having read all; what it sent before is still to be read.
      if (errno == EINTR || errno == ECONNRESET) continue;
      return Broken();
    }
    if (received->size == 0) return heard_end_ ? OkStatus() : Broken();
    if (!received->whole) return Bad("is too large");
    heard_ = SystemClock().Now();
    reading = this;
    const Status status = OnRecord({buffer.get(), received->size}, received->passed);
    reading = nullptr;
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

// --- Writing.

void LocalLink::OfferArena() {
  Result<SendArena> arena = SendArena::Make();
  if (!arena.ok()) return;  // bodies go through the socket
  std::vector<Message> sent;
  const std::lock_guard lock(mutex_);
  outgoing_ = *std::move(arena);
  offer_ = true;
  if (reading != this) Flush(sent);
}

void LocalLink::Note(std::uint64_t note) {
  std::vector<Message> sent;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  notes_.push_back(note);
  if (reading != this) Flush(sent);
}

bool LocalLink::TryRecord(std::string_view record, int pass) {
  if (ended_) return true;
  const Sent sent = SendRecord(socket_, record, pass);
  full_ = sent == Sent::kFull;
  if (full_) changed_.notify_one();
  // Whether it broke is seen by the reading thread, which still reads what came before.
  return !full_;
}

bool LocalLink::Flush(std::vector<Message>& sent) {
  if (full_) return false;
  if (offer_) {
    if (!TryRecord(NewRecord(RecordKind::kArena), outgoing_->fd())) return false;
    offer_ = false;
  }
  if (pong_) {
    if (!TryRecord(NewRecord(RecordKind::kPong))) return false;
    pong_ = false;
  }
  constexpr std::size_t kNotesMax = kRecordBytes / sizeof(std::uint64_t);
  while (!notes_.empty()) {
    const std::size_t count = std::min(notes_.size(), kNotesMax);
    std::string record = NewRecord(RecordKind::kNotes);
    record.append(reinterpret_cast<const char*>(notes_.data()), count * sizeof(std::uint64_t));
    if (!TryRecord(record)) return false;
    notes_.erase(notes_.begin(), notes_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  while (!small_.empty()) {
    std::string record = NewRecord(RecordKind::kMessages);
    std::size_t count = 0;
    do {
      PutMessage(record, small_[count++]);
    } while (count < small_.size() && count < kFrameMessagesMax &&
             record.size() + FrameBytes(small_[count]) <= kRecordBytes);
    if (!TryRecord(record)) return false;
    const auto end = small_.begin() + static_cast<std::ptrdiff_t>(count);
    std::move(small_.begin(), end, std::back_inserter(sent));
    small_.erase(small_.begin(), end);
  }
  return true;
}

bool LocalLink::LargeMayGo() const {
  if (large_.empty()) return false;
  return !mapped_ || untaken_ == 0 || untaken_ + large_.front().body.size() <= kUntakenMax;
}

bool LocalLink::EndMayGo() const { return closing_ && !said_end_ && large_.empty(); }

// A process that was stopped itself finds what has come meanwhile unread, and does not take that for silence.
void LocalLink::LookForSilence() {
  const Nanoseconds now = SystemClock().Now(), heard = heard_;
  if (ended_ || now - heard < kPingAfter) return;
  if (!pinged_ || *pinged_ < heard) {
    pinged_ = now;
    TryRecord(NewRecord(RecordKind::kPing));
  } else if (now - *pinged_ >= kPongWithin && !HasMore(socket_)) {
    EndNow(Broken());
  }
}

void LocalLink::Write() {
  std::vector<Message> sent;
  Lock lock(mutex_);
  while (true) {
    changed_.wait_for(lock, kLookEvery, [&] { return ended_ || full_ || LargeMayGo() || EndMayGo(); });
    LookForSilence();
    if (ended_) break;
    if (full_) {
      lock.unlock();
      WaitForRoom(socket_);
      lock.lock();
      full_ = false;
    }
    if (!Flush(sent)) continue;
    if (LargeMayGo()) {
      SendLarge(lock, sent);
    } else if (EndMayGo()) {
      SendSurely(lock, NewRecord(RecordKind::kEnd));
      said_end_ = true;
    }
    lock.unlock();
    sent.clear();
    lock.lock();
  }
}

void LocalLink::SendLarge(Lock& lock, std::vector<Message>& sent) {
  sent.push_back(std::move(large_.front()));
  const Message& message = sent.back();
  large_.pop_front();
  const std::size_t size = message.body.size();
  const std::optional<std::uint64_t> offset = mapped_ ? outgoing_->Allocate(size) : std::nullopt;
  if (!offset) return SendInParts(lock, message);
  untaken_ += size;
  std::byte* const to = outgoing_->At(*offset);
  lock.unlock();
  message.body.CopyTo(to);
  std::string record = NewRecord(RecordKind::kShared);
  PutValue(record, SharedHead{*offset, static_cast<std::uint32_t>(message.head.size()),
                              static_cast<std::uint32_t>(size)});
  record.append(message.head);
  lock.lock();
  SendSurely(lock, record);
}

void LocalLink::SendInParts(Lock& lock, const Message& message) {
  std::string begin = NewRecord(RecordKind::kBegin);
  PutValue(begin, BeginHead{static_cast<std::uint32_t>(message.head.size()),
                            static_cast<std::uint32_t>(message.body.size())});
  begin.append(message.head);
  SendSurely(lock, begin);
  for (const Bytes& piece : message.body.pieces()) {
    for (std::size_t at = 0; at < piece.size && !ended_;) {
      const std::size_t size = std::min(piece.size - at, kRecordBytes);
      std::string part = NewRecord(RecordKind::kPart);
      part.append(reinterpret_cast<const char*>(piece.data + at), size);
      SendSurely(lock, part);
      at += size;
    }
  }
}

void LocalLink::SendSurely(Lock& lock, std::string_view record) {
  while (!TryRecord(record)) {
    lock.unlock();
    WaitForRoom(socket_);
    lock.lock();
    LookForSilence();
  }
}

}  // namespace penstock::transport
