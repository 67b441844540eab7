#include "tests/support/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace penstock::test {

using std::chrono::milliseconds;

RawSocket::RawSocket(const std::string& address, const std::function<void()>& before_connect) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  timeval limit{20, 0};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  before_connect();
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) Close();
}

RawSocket::RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

void RawSocket::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void RawSocket::Send(const std::string& bytes) const {
  (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string RawSocket::Read(std::size_t size, milliseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string bytes;
  while (bytes.size() < size) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    pollfd polled{fd_, POLLIN, 0};
    if (left.count() <= 0 || poll(&polled, 1, static_cast<int>(left.count())) <= 0) break;
    char piece[4096];
    const ssize_t got = recv(fd_, piece, std::min(sizeof(piece), size - bytes.size()), MSG_DONTWAIT);
    if (got <= 0) break;
    bytes.append(piece, static_cast<std::size_t>(got));
  }
  return bytes;
}

std::optional<std::string> RawSocket::ReadSome(milliseconds limit) const {
  pollfd polled{fd_, POLLIN, 0};
  if (poll(&polled, 1, static_cast<int>(limit.count())) <= 0) return std::string();
  std::string bytes(std::size_t{1} << 16, '\0');
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

void RawSocket::SendAll(const std::string& bytes) const {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t put = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (put <= 0) return;
    at += static_cast<std::size_t>(put);
  }
}

RawListener::RawListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(here);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&here), size) == 0 && listen(fd_, 1) == 0 &&
      getsockname(fd_, reinterpret_cast<sockaddr*>(&here), &size) == 0) {
    address_ = "127.0.0.1:" + std::to_string(ntohs(here.sin_port));
  }
}

RawListener::~RawListener() { close(fd_); }

RawSocket RawListener::Accept(const std::atomic<bool>& stop) const {
  RawSocket socket;
  while (!stop && !socket.connected()) {
    pollfd polled{fd_, POLLIN, 0};
    if (poll(&polled, 1, 50) > 0) socket.fd_ = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  }
  return socket;
}

bool RawSocket::IsClosed(milliseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    pollfd polled{fd_, POLLIN, 0};
    if (left.count() < 0 || poll(&polled, 1, static_cast<int>(left.count())) <= 0) return false;
    char piece[4096];
    if (recv(fd_, piece, sizeof(piece), MSG_DONTWAIT) <= 0) return true;
  }
}

bool AllowDescriptors(std::size_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur >= count) return true;
  if (limit.rlim_max < count) return false;
  limit.rlim_cur = count;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace penstock::test
