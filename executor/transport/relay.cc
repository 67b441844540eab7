#include "executor/transport/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <vector>

#include "executor/transport/proof.h"

namespace penstock::transport {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr int kLocalWaitMs = 10'000;

// One of the two directions: bytes that are read but not written yet.
struct Direction {
  const Descriptor& from;
  const Descriptor& to;
  std::vector<char> bytes = std::vector<char>(kPieceBytes);
  std::size_t begin = 0, end = 0;
  bool ended = false;   // no more bytes arrive
  bool closed = false;  // the end was passed on

  short FromEvents() const { return static_cast<short>(!ended && begin == end ? POLLIN : 0); }
  short ToEvents() const { return static_cast<short>(begin < end ? POLLOUT : 0); }

  // Moves as many bytes as possible without waiting. Returns false if a socket is broken.
  bool Move() {
    if (begin == end && !ended) {
      const ssize_t got = recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      begin = 0;
      end = static_cast<std::size_t>(got);
      ended = got == 0;
    }
    if (begin < end) {
      const ssize_t put = send(to.get(), bytes.data() + begin, end - begin, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0) return errno == EAGAIN || errno == EINTR;
      begin += static_cast<std::size_t>(put);
    }
    if (ended && !closed) closed = shutdown(to.get(), SHUT_WR) == 0;
    return true;
  }
};

// Whether the peer runs as this process's user. An abstract socket has no permissions of its own.
bool IsOurs(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

}  // namespace

Result<std::unique_ptr<Relay>> Relay::Start(Descriptor remote) {
  std::unique_ptr<Relay> relay(new Relay());
  relay->remote_ = std::move(remote);
  PENSTOCK_ASSIGN_OR_RETURN(const ProofBytes random, MakeNonce());
  const std::string name = StrCat("penstock-", WritePass(random, random).substr(0, 2 * kProofBytes));
  relay->target_ = StrCat("unix-abstract:", name);
  relay->stop_.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  relay->listener_.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!relay->stop_.valid() || !relay->listener_.valid() ||
      bind(relay->listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(relay->listener_.get(), 1) != 0) {
    return Unavailable("E-rpc-connect", "no local socket for TLS: ", std::strerror(errno));
  }
  try {
    relay->thread_ = std::thread([r = relay.get()] { r->Run(); });
  } catch (const std::system_error& error) {
    return Unavailable("E-rpc-thread", "cannot start a thread for TLS: ", error.what());
  }
  return relay;
}

Relay::~Relay() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
}

void Relay::Run() {
  pollfd first[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  if (poll(first, 2, kLocalWaitMs) > 0 && first[0].revents != 0)
    local_.Reset(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  listener_.Reset();
  if (local_.valid() && IsOurs(local_)) {
    Direction out{.from = local_, .to = remote_};
    Direction in{.from = remote_, .to = local_};
    while (!(out.closed && in.closed)) {
      // Leaves out a side for which there is nothing to do: poll would report its end over and over.
      const auto polled_for = [](const Descriptor& side, int events) {
        return pollfd{events == 0 ? -1 : side.get(), static_cast<short>(events), 0};
      };
      pollfd polled[] = {polled_for(local_, out.FromEvents() | in.ToEvents()),
                         polled_for(remote_, in.FromEvents() | out.ToEvents()),
                         {stop_.get(), POLLIN, 0}};
      if (poll(polled, 3, -1) < 0 && errno != EINTR) break;
      if (polled[2].revents != 0 || !out.Move() || !in.Move()) break;
    }
  }
  local_.Reset();
  remote_.Reset();
}

}  // namespace penstock::transport
