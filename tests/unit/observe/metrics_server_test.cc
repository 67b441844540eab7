// The server of /metrics, and invalid requests to it.
#include "executor/observe/metrics_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>
#include <string>
#include <vector>

namespace penstock::observe {
namespace {

class Client {
 public:
  explicit Client(std::uint16_t port) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int descriptor() const { return descriptor_; }

  // All bytes until the server closes.
  std::string Ask(const std::string& request) const {
    EXPECT_TRUE(connected_);
    send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL);
    std::string answer;
    char bytes[1024];
    for (ssize_t got = 0; (got = recv(descriptor_, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(got));
    return answer;
  }

 private:
  const int descriptor_;
  bool connected_ = false;
};

class MetricsServerTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& request) const { return Client(server_->port()).Ask(request); }

  const std::unique_ptr<MetricsServer> server_ =
      MetricsServer::Start(0, [] { return std::string("penstock_steps_total 5\n"); }).value();
};

TEST_F(MetricsServerTest, AnswersGetMetrics) {
  EXPECT_EQ(
      Ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 23\r\n"
      "Connection: close\r\n\r\npenstock_steps_total 5\n");
}

TEST_F(MetricsServerTest, RefusesEverythingElse) {
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\n\r\n").substr(0, 12), "HTTP/1.1 404");
  EXPECT_EQ(Ask("POST /metrics HTTP/1.1\r\nContent-Length: 99\r\n\r\n").substr(0, 12), "HTTP/1.1 405");
  EXPECT_EQ(Ask("\r\n\r\n").substr(0, 12), "HTTP/1.1 400");
  EXPECT_EQ(Ask(std::string("\0\xff\x16\x03 \r\n\r\n", 9)).substr(0, 12), "HTTP/1.1 400");
  EXPECT_EQ(Ask(std::string(5000, 'a')).substr(0, 12), "HTTP/1.1 431");
}

TEST_F(MetricsServerTest, SilentConnectionsDoNotBlockOthers) {
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 12; ++i) silent.push_back(std::make_unique<Client>(server_->port()));
  EXPECT_NE(Ask("GET /metrics HTTP/1.0\r\n\r\n").find("penstock_steps_total 5"), std::string::npos);
}

TEST_F(MetricsServerTest, AClosedConnectionIsReleased) {
  for (int i = 0; i < 50; ++i) static_cast<void>(Client(server_->port()));
  EXPECT_EQ(Ask("GET /metrics HTTP/1.1\r\n\r\n").substr(0, 12), "HTTP/1.1 200");
}

TEST_F(MetricsServerTest, AnAddressInUseIsAnError) {
  const auto second = MetricsServer::Start(server_->port(), [] { return std::string(); });
  EXPECT_EQ(second.status().id(), "E-metrics-bind");
}

// Takes all descriptors of the process that are left.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = 128, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (int held = 0; (held = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) held_.push_back(held);
  }
  ~NoDescriptors() {
    for (const int held : held_) close(held);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  // Gives one back, so that a client can connect.
  void GiveOne() {
    close(held_.back());
    held_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<int> held_;
};

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_F(MetricsServerTest, DescriptorExhaustionDelaysConnections) {
  std::unique_ptr<Client> waits;
  {
    NoDescriptors none;
    none.GiveOne();
    waits = std::make_unique<Client>(server_->port());  // the kernel's queue takes it
    const double before = CpuSeconds();
    pollfd nothing{waits->descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&nothing, 1, 1000), 0);
    EXPECT_LT(CpuSeconds() - before, 0.5) << "the server spins";
  }
  EXPECT_NE(waits->Ask("GET /metrics HTTP/1.1\r\n\r\n").find("200 OK"), std::string::npos);
}

}  // namespace
}  // namespace penstock::observe
