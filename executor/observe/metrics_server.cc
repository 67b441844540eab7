#include "executor/observe/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "framework/base/strings.h"

namespace penstock::observe {
namespace {

constexpr std::size_t kVisitorsMax = 8;
constexpr std::size_t kRequestMax = 4096;
constexpr std::chrono::milliseconds kPatience{2000};
constexpr int kPollMs = 100;  // how often to look for connections that have timed out
// How long not to look at the listener after a failed accept: without descriptors it stays ready.
constexpr std::chrono::milliseconds kRest{500};

using SteadyTime = std::chrono::steady_clock::time_point;

std::string Response(const char* status, const std::string& body, const char* more = "") {
  return StrCat("HTTP/1.1 ", status, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
                "Content-Length: ", body.size(), "\r\nConnection: close\r\n", more, "\r\n", body);
}

Result<int> Listen(std::uint16_t& port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto failed = [&](const char* what) -> Status {
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    return Unavailable("E-metrics-bind", "metrics: cannot ", what, " 127.0.0.1:", port, ": ",
                       std::strerror(error));
  };
  if (descriptor < 0) return failed("open a socket for");
  const int yes = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) != 0) return failed("bind");
  if (listen(descriptor, static_cast<int>(kVisitorsMax)) != 0) return failed("listen at");
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return failed("name");
  port = ntohs(address.sin_port);
  return descriptor;
}

}  // namespace

struct MetricsServer::Visitor {
  int descriptor = -1;
  SteadyTime until;
  std::string request = {};
  std::string answer = {};  // the part not sent yet; empty: the request is incomplete
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(std::uint16_t port,
                                                            std::function<std::string()> text) {
  PENSTOCK_ASSIGN_OR_RETURN(const int listener, Listen(port));
  const int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake < 0) {
    const int error = errno;
    close(listener);
    return Unavailable("E-metrics-bind", "metrics: cannot make an event: ", std::strerror(error));
  }
  std::unique_ptr<MetricsServer> server(new MetricsServer(listener, wake, port, std::move(text)));
  try {
    server->thread_ = std::thread([raw = server.get()] { raw->Serve(); });
  } catch (const std::system_error& error) {
    return Unavailable("E-metrics-bind", "metrics: cannot start a thread: ", error.what());
  }
  return server;
}

MetricsServer::MetricsServer(int listener, int wake, std::uint16_t port, std::function<std::string()> text)
    : listener_(listener), wake_(wake), port_(port), text_(std::move(text)) {}

MetricsServer::~MetricsServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  close(listener_);
  close(wake_);
}

void MetricsServer::Serve() {
  std::vector<Visitor> visitors;
  std::vector<pollfd> polled;
  SteadyTime accepts_at{};
  while (true) {
    polled = {{wake_, POLLIN, 0}};
    for (const Visitor& visitor : visitors) {
      const bool reads = visitor.answer.empty();
      polled.push_back({visitor.descriptor, static_cast<short>(reads ? POLLIN : POLLOUT), 0});
    }
    // At the maximum number of visitors, further connections wait in the listener's queue.
    const bool accepts = visitors.size() < kVisitorsMax && std::chrono::steady_clock::now() >= accepts_at;
    if (accepts) polled.push_back({listener_, POLLIN, 0});
    poll(polled.data(), polled.size(), visitors.empty() && accepts ? -1 : kPollMs);
    if (polled.front().revents != 0) break;
    const SteadyTime now = std::chrono::steady_clock::now();
    std::erase_if(visitors, [&](Visitor& visitor) {
      if (now < visitor.until && Move(visitor)) return false;
      close(visitor.descriptor);
      return true;
    });
    if (accepts && !Accept(visitors)) accepts_at = now + kRest;
  }
  for (const Visitor& visitor : visitors) close(visitor.descriptor);
}

bool MetricsServer::Accept(std::vector<Visitor>& visitors) const {
  while (visitors.size() < kVisitorsMax) {
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNABORTED;
    visitors.push_back({.descriptor = descriptor, .until = std::chrono::steady_clock::now() + kPatience});
  }
  return true;
}

bool MetricsServer::Move(Visitor& visitor) const {
  char bytes[1024];
  while (visitor.answer.empty()) {
    const ssize_t got = recv(visitor.descriptor, bytes, sizeof bytes, 0);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (got == 0) return false;
    visitor.request.append(bytes, static_cast<std::size_t>(got));
    const bool whole = visitor.request.find("\r\n\r\n") != std::string::npos;
    if (whole || visitor.request.size() > kRequestMax) visitor.answer = AnswerTo(visitor.request);
  }
  while (!visitor.answer.empty()) {
    const ssize_t sent = send(visitor.descriptor, visitor.answer.data(), visitor.answer.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    visitor.answer.erase(0, static_cast<std::size_t>(sent));
  }
  shutdown(visitor.descriptor, SHUT_WR);
  return false;
}

std::string MetricsServer::AnswerTo(const std::string& request) const {
  if (request.size() > kRequestMax) return Response("431 Request Header Fields Too Large", "too large\n");
  const std::string line = request.substr(0, request.find("\r\n"));
  const std::size_t method_end = line.find(' ');
  const std::size_t target_end = line.rfind(" HTTP/1.");
  if (method_end == std::string::npos || target_end == std::string::npos || target_end <= method_end)
    return Response("400 Bad Request", "this is no HTTP request\n");
  const std::string target = line.substr(method_end + 1, target_end - method_end - 1);
  if (line.substr(0, method_end) != "GET")
    return Response("405 Method Not Allowed", "only GET\n", "Allow: GET\r\n");
  if (target.substr(0, target.find('?')) != "/metrics") return Response("404 Not Found", "see /metrics\n");
  return Response("200 OK", text_());
}

}  // namespace penstock::observe
