#include "executor/transport/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace penstock::transport {
namespace {

struct UnixAddress {
  sockaddr_un storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// The abstract address "\0penstock/" followed by the id in hexadecimal.
UnixAddress AddressOf(std::string_view id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name("\0penstock/", 10);
  for (const char byte : id) {
    name.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
    name.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
  }
  UnixAddress address;
  PENSTOCK_CHECK(name.size() <= sizeof(address.storage.sun_path), "a name of a unix socket is too long");
  address.storage.sun_family = AF_UNIX;
  std::memcpy(address.storage.sun_path, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

Descriptor MakeSocket() {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

Result<Descriptor> ListenUnix(std::string_view id) {
  Descriptor listener = MakeSocket();
  const UnixAddress address = AddressOf(id);
  if (listener.valid() && bind(listener.get(), address.get(), address.size) == 0 &&
      listen(listener.get(), SOMAXCONN) == 0) {
    return listener;
  }
  return Unavailable("E-rpc-bind", "cannot listen on a unix socket: ", std::strerror(errno));
}

Descriptor ConnectUnix(std::string_view id) {
  Descriptor socket = MakeSocket();
  const UnixAddress address = AddressOf(id);
  if (!socket.valid() || connect(socket.get(), address.get(), address.size) != 0 || !IsSameUser(socket))
    return Descriptor();
  return socket;
}

bool IsSameUser(const Descriptor& socket) {
  ucred other{};
  socklen_t size = sizeof(other);
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

Sent SendRecord(const Descriptor& socket, std::string_view record, int pass) {
  iovec part{const_cast<char*>(record.data()), record.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (pass >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &pass, sizeof(int));
  }
  while (true) {
    if (sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sent::kDone;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Sent::kFull : Sent::kBroken;
  }
}

std::optional<Received> ReceiveRecord(const Descriptor& socket, char* buffer, std::size_t capacity) {
  iovec part{buffer, capacity};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // one descriptor: the kernel closes any others
  const ssize_t size = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  Received received{.size = static_cast<std::size_t>(size),
                    .whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0,
                    .passed = Descriptor()};
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    received.passed.Reset(fd);
  }
  return received;
}

}  // namespace penstock::transport
