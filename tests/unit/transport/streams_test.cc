// A TCP connection of two streams: one for gRPC, and one for large bodies.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>

#include "executor/transport/dial.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/strings.h"
#include "tests/support/free_port.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

// Counts messages, and checks whether calls overlap; calls `reply` for each message.
class Counter : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    EXPECT_FALSE(busy_.exchange(true)) << "two calls at a time";
    if (reply) reply(*from, message);
    busy_ = false;
    const std::lock_guard lock(mutex_);
    ++messages_;
    if (message.body.size() < 1000) small_ += message.head;
    changed_.notify_all();
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status& why) override {
    const std::lock_guard lock(mutex_);
    ends_ += why.ok() ? "ok " : why.id() + " ";
    changed_.notify_all();
  }
  bool Has(int messages) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(60), [&] { return messages_ >= messages; });
  }
  std::string Ends() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(60), [&] { return !ends_.empty(); });
    return ends_;
  }
  int messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  std::string small() {
    const std::lock_guard lock(mutex_);
    return small_;
  }
  std::function<void(Connection&, const Message&)> reply;

 private:
  std::atomic<bool> busy_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  int messages_ = 0;
  std::string small_, ends_;
};

// This process's sockets that are connected to that port.
std::vector<int> SocketsTo(int port) {
  std::vector<int> sockets;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.sin_family == AF_INET &&
        ntohs(peer.sin_port) == port) {
      sockets.push_back(fd);
    }
  }
  return sockets;
}

struct Talk {
  explicit Talk(int streams = 2)
      : transport(transport::MakeGrpcTransport({.token = "secret",
                                                .report = [](auto&) {},
                                                .carrier = transport::Carrier::kTcp,
                                                .streams = streams,
                                                .tell = [](auto&) {}})) {
    server.reply = [](Connection& from, const Message& message) {
      from.Admit();
      if (message.head == "hello") from.Send({"welcome", {}});
      if (message.head == "echo") from.Send({"echo", message.body});
    };
    listener = transport->Listen(address, server).value();
    connection = transport->Connect(address, client);
    connection->Send({"hello", {}});
    EXPECT_TRUE(client.Has(1));
  }
  ~Talk() { connection->Abort(); }
  // Echoes large bodies until `count` streams exist.
  bool Opens(std::size_t count) {
    for (int echoes = 1; SocketsTo(port).size() < count; ++echoes) {
      connection->Send({"echo", body});
      if (echoes > 100'000 || !client.Has(1 + echoes)) return false;
    }
    return SocketsTo(port).size() == count;
  }
  const Payload body = Payload::Of(std::string(1 << 20, 'x'));
  const int port = FreePort();
  const std::string address = StrCat("127.0.0.1:", port);
  Counter server, client;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Listener> listener;
  std::shared_ptr<Connection> connection;
};

TEST(Streams, SmallMessagesUseOneStream) {
  Talk talk;
  std::string want;
  for (int i = 0; i < 1000; ++i) {
    talk.connection->Send({StrCat(i, " "), {}});
    want += StrCat(i, " ");
  }
  EXPECT_TRUE(talk.server.Has(1001));
  EXPECT_EQ(talk.server.small(), "hello" + want);
  EXPECT_EQ(SocketsTo(talk.port).size(), 1u);
}

TEST(Streams, LargeBodiesUseMoreStreamsAndArriveOnce) {
  Talk talk;
  ASSERT_TRUE(talk.Opens(2));
  const int before = talk.client.messages();
  for (int i = 0; i < 99; ++i) talk.connection->Send({"echo", talk.body});
  EXPECT_TRUE(talk.client.Has(before + 99));
  talk.connection->Close();
  EXPECT_EQ(talk.client.Ends(), "ok ");
  EXPECT_EQ(talk.server.Ends(), "ok ");
}

TEST(Streams, ALimitOfOneStreamIsRespected) {
  Talk talk(1);
  for (int i = 0; i < 20; ++i) talk.connection->Send({"echo", talk.body});
  EXPECT_TRUE(talk.client.Has(21));
  EXPECT_EQ(SocketsTo(talk.port).size(), 1u);
}

// A process that knows the token but not the pass of a connection's first stream cannot open a stream of
// bodies.
TEST(Streams, AStreamOfNoConnectionIsClosed) {
  Talk talk;
  const transport::DialOptions options{.token = "secret", .follows = transport::Follows::kBodies};
  const transport::Dialed dialed = transport::Dial(talk.address, options, -1).value();
  ASSERT_TRUE(transport::SendAll(dialed.socket, std::string(transport::kPassBytes, 'a')));
  pollfd polled{dialed.socket.get(), POLLIN, 0};
  char byte = 0;
  EXPECT_EQ(poll(&polled, 1, 30'000), 1);
  EXPECT_LE(recv(dialed.socket.get(), &byte, 1, MSG_DONTWAIT), 0);
  talk.connection->Send({"echo", talk.body});
  EXPECT_TRUE(talk.client.Has(2)) << "the job goes on";
}

TEST(Streams, WhenOneBreaksTheConnectionEndsOnce) {
  Talk talk;
  ASSERT_TRUE(talk.Opens(2));
  // A socket exists before its stream; one that breaks before is replaced, and the connection survives.
  const int before = talk.client.messages();
  for (int i = 0; i < 4; ++i) talk.connection->Send({"echo", talk.body});
  ASSERT_TRUE(talk.client.Has(before + 4));
  shutdown(SocketsTo(talk.port).back(), SHUT_RDWR);
  EXPECT_EQ(talk.client.Ends(), "E-rpc-stream ");
  EXPECT_EQ(talk.server.Ends(), "E-rpc-stream ");
}

}  // namespace
}  // namespace penstock::test
