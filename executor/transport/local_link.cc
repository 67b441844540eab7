#include "executor/transport/local_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "executor/transport/frame.h"
#include "executor/transport/record.h"

namespace penstock::transport {
namespace {

constexpr std::size_t kSharedFrom = std::size_t{32} << 10;  // larger bodies use shared memory
// The same times as gRPC's pings (grpc_stream.cc).
constexpr Nanoseconds kPingAfter = std::chrono::seconds(5);
constexpr Nanoseconds kPongWithin = std::chrono::seconds(8);
constexpr auto kLookEvery = std::chrono::milliseconds(1000);

constexpr std::size_t kUntakenMax = std::size_t{4} << 20;

// Waits at most kLookEvery.
void WaitForRoom(const Descriptor& socket) {
  pollfd polled{socket.get(), POLLOUT, 0};
  poll(&polled, 1, kLookEvery.count());
}

// If memory runs out while a peer sends, only the connection ends, not the process.
Status OutOfMemory() {
  return FailedPrecondition("E-run-memory", "there is no memory for what a connection carries");
}

// Returns the body's offset in the heap; nullopt if it is not one piece in the heap.
std::optional<std::uint64_t> OffsetIn(const SharedHeap* heap, const Payload& body) {
  if (heap == nullptr || body.pieces().size() != 1) return std::nullopt;
  return heap->OffsetOf(body.pieces().front().data, body.size());
}

std::string SharedRecord(RecordKind kind, std::uint64_t loan, std::uint64_t offset, const Message& message) {
  std::string record = NewRecord(kind);
  PutValue(record, SharedHead{loan, offset, static_cast<std::uint32_t>(message.head.size()),
                              static_cast<std::uint32_t>(message.body.size())});
  record.append(message.head);
  return record;
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
    std::thread writer([this] {
      try {
        Write();
      } catch (const std::bad_alloc&) {
        const std::lock_guard lock(mutex_);
        EndNow(OutOfMemory());
      }
    });
    try {
      why = Read();
    } catch (const std::bad_alloc&) {
      why = OutOfMemory();
    }
    {
      const std::lock_guard lock(mutex_);
      // If this side ended the connection, its own reason counts; a break after this side's end is no error.
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
  {
    std::deque<Outgoing> small;  // destroyed without the lock: an owner may be a payload of this connection
    std::deque<Message> large;
    std::optional<Loans> loans;
    const std::lock_guard lock(mutex_);
    small.swap(small_);
    large.swap(large_);
    if (loans_) loans.emplace(std::move(*loans_));
    loans_.reset();
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
  std::optional<std::uint64_t> lent;
  if (message.body.size() >= kSharedFrom) {
    lent = mapped_ ? OffsetIn(heap_, message.body) : std::nullopt;
    if (!lent) {
      large_.push_back(std::move(message));
      changed_.notify_one();
      return;
    }
  }
  small_.push_back({std::move(message), lent});
  if (reading_ != this) Flush(sent);
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
  OfferMemory();
}

void LocalLink::EndNow(const Status& why) {
  if (ended_) return;
  ended_ = true;
  why_ = why;
  shutdown(socket_.get(), SHUT_RDWR);
  changed_.notify_one();
}

void LocalLink::OfferMemory() {
  if (heap_ == nullptr) return;  // then bodies go through the socket
  Result<Loans> loans = Loans::Make();
  if (!loans.ok()) return;
  std::vector<Message> sent;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  loans_.emplace(*std::move(loans));
  offer_ = true;
  if (reading_ != this) Flush(sent);
}

void LocalLink::Note(std::uint64_t note) {
  std::vector<Message> sent;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  notes_.push_back(note);
  if (reading_ != this) Flush(sent);
}

bool LocalLink::TryRecord(std::string_view record, int pass) {
  if (ended_) return true;
  const Sent sent = SendRecord(socket_, record, pass);
  full_ = sent == Sent::kFull;
  if (full_) changed_.notify_one();
  // The reading thread notices a broken socket, after it has read the records that arrived before.
  return !full_;
}

bool LocalLink::Flush(std::vector<Message>& sent) {
  if (full_ || !FlushOffer()) return false;
  if (pong_) {
    if (!TryRecord(NewRecord(RecordKind::kPong))) return false;
    pong_ = false;
  }
  return FlushNotes() && FlushSmall(sent);
}

bool LocalLink::FlushOffer() {
  if (!offer_) return true;
  if (loans_->hold() >= 0) {
    if (!TryRecord(NewRecord(RecordKind::kHold), loans_->hold())) return false;
    loans_->HoldIsPassed();
  }
  if (!TryRecord(NewRecord(RecordKind::kMemory), heap_->fd())) return false;
  offer_ = false;
  return true;
}

bool LocalLink::FlushNotes() {
  constexpr std::size_t kNotesMax = kRecordBytes / sizeof(std::uint64_t);
  while (!notes_.empty()) {
    const std::size_t count = std::min(notes_.size(), kNotesMax);
    std::string record = NewRecord(RecordKind::kNotes);
    record.append(reinterpret_cast<const char*>(notes_.data()), count * sizeof(std::uint64_t));
    if (!TryRecord(record)) return false;
    notes_.erase(notes_.begin(), notes_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return true;
}

bool LocalLink::FlushSmall(std::vector<Message>& sent) {
  while (!small_.empty()) {
    if (small_.front().lent) {
      if (!TryLend(small_.front())) return false;
      sent.push_back(std::move(small_.front().message));
      small_.pop_front();
      continue;
    }
    std::string record = NewRecord(RecordKind::kMessages);
    std::size_t count = 0;
    do {
      PutMessage(record, small_[count++].message);
    } while (count < small_.size() && !small_[count].lent && count < kFrameMessagesMax &&
             record.size() + FrameBytes(small_[count].message) <= kRecordBytes);
    if (!TryRecord(record)) return false;
    for (; count > 0; --count) {
      sent.push_back(std::move(small_.front().message));
      small_.pop_front();
    }
  }
  return true;
}

bool LocalLink::TryLend(Outgoing& outgoing) {
  const std::uint64_t loan = loans_->Lend({.owner = outgoing.message.body.pieces().front().owner});
  if (TryRecord(SharedRecord(RecordKind::kLent, loan, *outgoing.lent, outgoing.message))) return true;
  Loans::Loan returned;  // not the last owner: the message is one too
  loans_->Return(loan, returned);
  return false;
}

bool LocalLink::LargeMayGo() const {
  if (large_.empty()) return false;
  const std::size_t size = large_.front().body.size();
  const bool is_second = untaken_ <= size;  // a body of any size may be copied while another is read
  return !mapped_ || is_second || untaken_ + size <= kUntakenMax;
}

bool LocalLink::EndMayGo() const { return closing_ && !said_end_ && large_.empty(); }

// If this process was stopped itself, unread records show that the other side was not silent.
void LocalLink::LookForSilence() {
  const Nanoseconds now = SystemClock().Now(), heard = heard_;
  if (ended_ || now - heard < kPingAfter) return;
  if (!pinged_ || *pinged_ < heard) {
    pinged_ = now;
    TryRecord(NewRecord(RecordKind::kPing));
  } else if (now - *pinged_ >= kPongWithin && !HasMore(socket_)) {
    EndNow(Unavailable("E-rpc-stream", "its connection broke"));
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
  const std::shared_ptr<Buffer> copy =
      mapped_ && loans_->copied() + size <= kCopiesMax ? heap_->Allocate(size) : nullptr;
  if (copy == nullptr) return SendInParts(lock, message);
  untaken_ += size;
  const std::uint64_t loan = loans_->Lend({.owner = copy, .copied = size, .untaken = size});
  lock.unlock();
  message.body.CopyTo(copy->data());
  const std::string record =
      SharedRecord(RecordKind::kCopied, loan, *heap_->OffsetOf(copy->data(), size), message);
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
