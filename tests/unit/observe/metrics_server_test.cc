// The server of /metrics, and invalid requests to it.
#include "executor/observe/metrics_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

TEST_F(MetricsServerTest, SilentVisitorsKeepNobodyOut) {
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 12; ++i) silent.push_back(std::make_unique<Client>(server_->port()));
  EXPECT_NE(Ask("GET /metrics HTTP/1.0\r\n\r\n").find("penstock_steps_total 5"), std::string::npos);
}

TEST_F(MetricsServerTest, AVisitorThatGoesIsForgotten) {
  for (int i = 0; i < 50; ++i) static_cast<void>(Client(server_->port()));
  EXPECT_EQ(Ask("GET /metrics HTTP/1.1\r\n\r\n").substr(0, 12), "HTTP/1.1 200");
}

TEST_F(MetricsServerTest, AnAddressInUseIsAnError) {
  const auto second = MetricsServer::Start(server_->port(), [] { return std::string(); });
  EXPECT_EQ(second.status().id(), "E-metrics-bind");
}

}  // namespace
}  // namespace penstock::observe
