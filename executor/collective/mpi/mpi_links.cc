#include "executor/collective/mpi/mpi_links.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::collective {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLingerLimit(300), kCloseLimit(1000);
constexpr int kNoticeTag = 100;                           // a channel's tag is its own number
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // MPI counts a message's bytes in an int

void RestFor(long nanoseconds) {
  const timespec rest{.tv_sec = 0, .tv_nsec = nanoseconds};
  nanosleep(&rest, nullptr);  // MPI does not wake this thread
}

class MpiLinks : public Links {
 public:
  explicit MpiLinks(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    left_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(size_));
  }
  ~MpiLinks() override { Close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Transit> Send(int to, Channel channel, std::span<const std::byte> bytes) override;
  std::unique_ptr<Transit> Receive(int from, Channel channel, std::span<std::byte> bytes) override;
  void Listen(NoticeHandler handler) override;
  void Tell(int to, const Notice& notice) override;
  void Interrupt() override { interrupted_ = true; }
  void Linger(const std::function<bool()>& heard) override;
  void Close() override;

 private:
  class MpiTransit;
  struct Told {
    Notice notice;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  template <typename Start>
  std::unique_ptr<Transit> Begin(int other, bool sends, std::size_t bytes, const Start& start);
  void ServeNotices();

  const MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  std::vector<std::atomic<bool>> left_;  // by rank: it has announced that it left
  std::atomic<bool> interrupted_ = false, closing_ = false;
  NoticeHandler handler_;
  std::mutex mutex_;
  std::list<Told> told_;
  std::thread listener_;
};

// A message in flight, in parts whose bytes MPI can count.
class MpiLinks::MpiTransit : public Transit {
 public:
  MpiTransit(MpiLinks& links, int other, bool sends) : links_(links), other_(other), sends_(sends) {}
  ~MpiTransit() override { GiveUp(); }

  LinkEnd Wait() override;

 private:
  friend class MpiLinks;
  bool Done();
  void GiveUp();

  MpiLinks& links_;
  const int other_;
  const bool sends_;
  std::vector<MPI_Request> requests_;
  bool broken_ = false, done_ = false;
};

// Returns whether the message is complete or has failed.
bool MpiLinks::MpiTransit::Done() {
  int ready = 0;
  if (MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &ready, MPI_STATUSES_IGNORE) !=
      MPI_SUCCESS) {
    broken_ = true;
  }
  done_ = done_ || ready != 0;
  return done_ || broken_;
}

LinkEnd MpiLinks::MpiTransit::Wait() {
  constexpr int kEager = 2000;
  Clock::time_point until = Clock::time_point::max();
  for (int looks = 0; !broken_; ++looks) {
    if (Done()) break;
    if (links_.interrupted_) return LinkEnd::kInterrupted;
    // Messages that the rank sent before it left may come after its notice.
    if (until == Clock::time_point::max() && links_.left_[static_cast<std::size_t>(other_)])
      until = Clock::now() + kLingerLimit;
    if (until != Clock::time_point::max() && Clock::now() > until) return LinkEnd::kBroken;
    looks < kEager ? static_cast<void>(sched_yield()) : RestFor(50'000);
  }
  return broken_ ? LinkEnd::kBroken : LinkEnd::kDone;
}

// Cancels a receive that no send has matched, and lets matched requests complete. A send cannot be cancelled,
// but MPI reads its memory only if a rank receives it, and no rank does once the group has failed.
void MpiLinks::MpiTransit::GiveUp() {
  if (done_) return;
  if (!sends_) {
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }
  }
  const Clock::time_point until = Clock::now() + kLingerLimit;
  while (!Done() && Clock::now() < until) RestFor(50'000);
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

template <typename Start>
std::unique_ptr<Transit> MpiLinks::Begin(int other, bool sends, std::size_t bytes, const Start& start) {
  auto transit = std::make_unique<MpiTransit>(*this, other, sends);
  for (std::size_t at = 0; at < bytes && !interrupted_; at += kMostBytes) {
    transit->requests_.push_back(MPI_REQUEST_NULL);
    const int part = static_cast<int>(std::min(kMostBytes, bytes - at));
    if (start(at, part, &transit->requests_.back()) != MPI_SUCCESS) transit->broken_ = true;
  }
  return transit;
}

std::unique_ptr<Transit> MpiLinks::Send(int to, Channel channel, std::span<const std::byte> bytes) {
  return Begin(to, true, bytes.size(), [&](std::size_t at, int part, MPI_Request* request) {
    return MPI_Isend(bytes.data() + at, part, MPI_BYTE, to, static_cast<int>(channel), comm_, request);
  });
}

std::unique_ptr<Transit> MpiLinks::Receive(int from, Channel channel, std::span<std::byte> bytes) {
  return Begin(from, false, bytes.size(), [&](std::size_t at, int part, MPI_Request* request) {
    return MPI_Irecv(bytes.data() + at, part, MPI_BYTE, from, static_cast<int>(channel), comm_, request);
  });
}

void MpiLinks::Listen(NoticeHandler handler) {
  handler_ = std::move(handler);
  if (size_ > 1) listener_ = std::thread([this] { ServeNotices(); });
}

void MpiLinks::ServeNotices() {
  while (!closing_) {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, comm_, &there, &status) != MPI_SUCCESS) return;
    if (there == 0) {
      RestFor(2'000'000);
      continue;
    }
    Notice notice;
    const int from = status.MPI_SOURCE;
    if (MPI_Recv(&notice, sizeof(notice), MPI_BYTE, from, kNoticeTag, comm_, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS)
      continue;
    handler_(from, notice);
    if (notice.kind == Notice::kLeft) left_[static_cast<std::size_t>(from)] = true;
  }
}

void MpiLinks::Tell(int to, const Notice& notice) {
  const std::lock_guard lock(mutex_);
  if (closing_) return;
  Told& told = told_.emplace_back(Told{.notice = notice});
  MPI_Isend(&told.notice, sizeof(Notice), MPI_BYTE, to, kNoticeTag, comm_, &told.request);
}

void MpiLinks::Linger(const std::function<bool()>& heard) {
  const Clock::time_point until = Clock::now() + kLingerLimit;
  while (!heard() && Clock::now() < until) RestFor(2'000'000);
}

void MpiLinks::Close() {
  if (closing_.exchange(true)) return;
  if (listener_.joinable()) listener_.join();
  const std::lock_guard lock(mutex_);
  const Clock::time_point until = Clock::now() + kCloseLimit;
  for (Told& told : told_) {
    int sent = 0;
    while (MPI_Test(&told.request, &sent, MPI_STATUS_IGNORE) == MPI_SUCCESS && sent == 0 &&
           Clock::now() < until)
      RestFor(50'000);
  }
}

}  // namespace

std::unique_ptr<Links> MakeMpiLinks(MPI_Comm comm) { return std::make_unique<MpiLinks>(comm); }

}  // namespace penstock::collective
