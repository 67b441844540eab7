#include "executor/collective/arena/join.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/collective/arena/pages.h"
#include "executor/transport/unix_socket.h"

namespace penstock::collective {
namespace {

using transport::Descriptor;

constexpr char kJoin[] = "E-collective-join";
constexpr char kLate[] = "E-collective-join-late";
constexpr std::uint64_t kMagic = 0x31676e6972736e70;  // identifies this layout of the arena
constexpr std::string_view kReady = "ready", kGo = "go";

struct Hello {
  std::uint64_t magic = kMagic;
  std::uint64_t bytes = 0;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

class Deadline {
 public:
  explicit Deadline(Nanoseconds limit) : end_(SystemClock().Now() + limit) {}
  bool Passed() const { return SystemClock().Now() >= end_; }
  // Waits until there is something to read; returns false after the deadline.
  bool AwaitReadable(const Descriptor& socket) const {
    while (true) {
      pollfd one{.fd = socket.get(), .events = POLLIN, .revents = 0};
      const int ready = poll(&one, 1, Milliseconds());
      if (ready > 0) return true;
      if (ready == 0 || errno != EINTR) return false;
    }
  }
  void Pause() const { poll(nullptr, 0, std::min(20, Milliseconds())); }

 private:
  int Milliseconds() const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end_ - SystemClock().Now()).count();
    return static_cast<int>(std::clamp<long long>(left + 1, 0, 1'000'000));
  }
  const Nanoseconds end_;
};

struct flock ByteOf(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

// The part of rank 0.
class Host {
 public:
  Host(const SharedMemoryRendezvous& rendezvous, std::size_t bytes)
      : wanted_(rendezvous), bytes_(bytes), deadline_(rendezvous.time_limit) {}

  Result<Descriptor> Run() {
    PENSTOCK_ASSIGN_OR_RETURN(const Descriptor listener, transport::ListenUnix(wanted_.meeting_point));
    PENSTOCK_ASSIGN_OR_RETURN(Descriptor memory, MakeSharedMemory(bytes_));
    if (!LockRank(memory, 0)) return Unavailable(kJoin, "the group's memory cannot be locked");
    while (static_cast<int>(guests_.size()) + 1 < wanted_.size) {
      if (!deadline_.AwaitReadable(listener)) return Late("came");
      Descriptor guest(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (guest.valid() && transport::IsSameUser(guest)) PENSTOCK_RETURN_IF_ERROR(Admit(std::move(guest)));
    }
    for (const auto& [rank, guest] : guests_) {
      if (transport::SendRecord(guest, "memory", memory.get()) != transport::Sent::kDone) return Broken(rank);
    }
    for (const auto& [rank, guest] : guests_) {
      char answer[16];
      if (!deadline_.AwaitReadable(guest)) return Late("answered");
      const auto got = transport::ReceiveRecord(guest, answer, sizeof(answer));
      if (!got || std::string_view(answer, got->size) != kReady) return Broken(rank);
    }
    for (const auto& [rank, guest] : guests_) {
      if (transport::SendRecord(guest, kGo) != transport::Sent::kDone) return Broken(rank);
    }
    return memory;
  }

 private:
  // Ignores a process that sends no valid hello. A hello that does not fit this group ends the group.
  Status Admit(Descriptor guest) {
    Hello hello;
    if (!deadline_.AwaitReadable(guest)) return Late("came");
    const auto got = transport::ReceiveRecord(guest, reinterpret_cast<char*>(&hello), sizeof(hello));
    if (!got || got->size != sizeof(hello) || !got->whole || hello.magic != kMagic) return OkStatus();
    const bool fits = hello.size == wanted_.size && hello.bytes == bytes_ && hello.rank > 0 &&
                      hello.rank < wanted_.size && !guests_.contains(hello.rank);
    if (!fits) {
      Status error = Unavailable(kJoin, "a process joins as rank ", hello.rank, " of ", hello.size,
                                 "; rank 0 has a group of ", wanted_.size,
                                 guests_.contains(hello.rank) ? ", whose rank of that number has come" : "");
      static_cast<void>(transport::SendRecord(guest, error.message()));
      return error;
    }
    guests_.emplace(hello.rank, std::move(guest));
    return OkStatus();
  }

  Status Late(std::string_view what) const {
    std::vector<int> missing;
    for (int rank = 1; rank < wanted_.size; ++rank) {
      if (!guests_.contains(rank)) missing.push_back(rank);
    }
    Status error =
        DeadlineExceeded(kLate, "not all ranks ", what, " within ", WholeSeconds(wanted_.time_limit),
                         " s; missing: ", missing.empty() ? "an answer" : penstock::Join(missing, ", "));
    for (const auto& [rank, guest] : guests_)
      static_cast<void>(transport::SendRecord(guest, error.message()));
    return error;
  }

  static Status Broken(int rank) { return Unavailable(kJoin, "rank ", rank, " broke off while it joined"); }

  const SharedMemoryRendezvous& wanted_;
  const std::size_t bytes_;
  const Deadline deadline_;
  std::map<int, Descriptor> guests_;
};

// The part of any other rank.
class Guest {
 public:
  Guest(const SharedMemoryRendezvous& rendezvous, std::size_t bytes)
      : wanted_(rendezvous), bytes_(bytes), deadline_(rendezvous.time_limit) {}

  Result<Descriptor> Run() {
    Descriptor host = transport::ConnectUnix(wanted_.meeting_point);
    while (!host.valid()) {
      if (deadline_.Passed()) return Late();
      deadline_.Pause();
      host = transport::ConnectUnix(wanted_.meeting_point);
    }
    const Hello hello{.bytes = bytes_, .rank = wanted_.rank, .size = wanted_.size};
    const std::string_view record(reinterpret_cast<const char*>(&hello), sizeof(hello));
    if (transport::SendRecord(host, record) != transport::Sent::kDone) return Broken();
    PENSTOCK_ASSIGN_OR_RETURN(transport::Received got, Await(host, "memory"));
    if (!got.passed.valid() || !LockRank(got.passed, wanted_.rank))
      return Unavailable(kJoin, "rank 0 passed no memory that can be locked");
    if (transport::SendRecord(host, kReady) != transport::Sent::kDone) return Broken();
    PENSTOCK_RETURN_IF_ERROR(Await(host, kGo).status());
    return std::move(got.passed);
  }

 private:
  // Any record other than `due` is the text of rank 0's error.
  Result<transport::Received> Await(const Descriptor& host, std::string_view due) const {
    char text[512];
    if (!deadline_.AwaitReadable(host)) return Late();
    std::optional<transport::Received> got = transport::ReceiveRecord(host, text, sizeof(text));
    if (!got || got->size == 0) return Broken();
    const std::string_view said(text, got->size);
    if (said != due) return Unavailable(kJoin, "rank 0 ended the group: ", said);
    return std::move(*got);
  }

  Status Late() const {
    return DeadlineExceeded(kLate, "not all ranks came within ", WholeSeconds(wanted_.time_limit),
                            " s; rank ", wanted_.rank, " waits for rank 0");
  }
  static Status Broken() { return Unavailable(kJoin, "rank 0 broke off while the group was made"); }

  const SharedMemoryRendezvous& wanted_;
  const std::size_t bytes_;
  const Deadline deadline_;
};

}  // namespace

bool LockRank(const Descriptor& memory, int rank) {
  struct flock lock = ByteOf(rank);
  return fcntl(memory.get(), F_SETLK, &lock) == 0;
}

bool IsRankLocked(const Descriptor& memory, int rank) {
  struct flock lock = ByteOf(rank);
  return fcntl(memory.get(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

Result<Descriptor> JoinMemory(const SharedMemoryRendezvous& rendezvous, std::size_t bytes) {
  if (rendezvous.rank == 0) return Host(rendezvous, bytes).Run();
  return Guest(rendezvous, bytes).Run();
}

}  // namespace penstock::collective
