// A stream of large bodies, as two ends in this process; and a malicious end.
#include "executor/transport/tcp_stream.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/unit/transport/inbox.h"

namespace penstock::test {
namespace {

using transport::Descriptor;
using transport::TcpStream;

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

std::pair<Descriptor, Descriptor> Connected() {
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      near(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(connect(near.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return {std::move(near), Descriptor(accept(listener.get(), nullptr, nullptr))};
}

struct TcpEnd {
  explicit TcpEnd(Descriptor socket)
      : stream(std::make_shared<TcpStream>(std::move(socket), inbox)), thread([this] { stream->Run(); }) {}
  ~TcpEnd() {
    stream->Abort();
    thread.join();
  }
  Inbox inbox;
  std::shared_ptr<TcpStream> stream;
  std::thread thread;
};

struct TcpPair {
  TcpPair() {
    auto [a, b] = Connected();
    near.emplace(std::move(a));
    far.emplace(std::move(b));
  }
  std::optional<TcpEnd> near, far;
};

// Provides memory for one body: the first one with the head "here".
class RoomForOne : public Inbox {
 public:
  explicit RoomForOne(std::size_t size) : size_(size), room_(Buffer::Allocate(size)) {}

  Room RoomFor(const std::shared_ptr<Connection>&, const std::string& head, std::size_t body) override {
    if (head != "here" || body != size_ || asked_.exchange(true)) return {};
    return {room_, room_->data()};
  }
  const std::byte* data() const { return room_->data(); }

 private:
  const std::size_t size_;
  const std::shared_ptr<Buffer> room_;
  std::atomic<bool> asked_ = false;
};

TEST(TcpStream, BodiesAreReceivedIntoTheHandlersMemory) {
  auto [a, b] = Connected();
  RoomForOne handler(kMegabyte);
  const auto receiver = std::make_shared<TcpStream>(std::move(b), handler);
  std::thread thread([&] { receiver->Run(); });
  TcpEnd sender(std::move(a));
  for (const char* head : {"elsewhere", "here", "here"})
    sender.stream->Send({head, Pattern(kMegabyte, static_cast<int>(std::strlen(head)))});
  const Message elsewhere = handler.Take(), here = handler.Take(), repeated = handler.Take();
  EXPECT_NE(elsewhere.body.pieces()[0].data, handler.data());
  EXPECT_EQ(here.body.pieces()[0].data, handler.data());
  EXPECT_NE(repeated.body.pieces()[0].data, handler.data());
  EXPECT_TRUE(elsewhere.body.ToText() == Pattern(kMegabyte, 9).ToText());
  EXPECT_TRUE(here.body.ToText() == Pattern(kMegabyte, 4).ToText());
  EXPECT_TRUE(repeated.body.ToText() == here.body.ToText());
  receiver->Abort();
  thread.join();
}

TEST(TcpStream, BodiesOfAnySizeArriveInOrder) {
  TcpPair pair;
  Payload pieces;
  for (int i = 0; i < 300; ++i) pieces.Append(Pattern(5'000, i).pieces().front());
  std::vector<Payload> bodies = {Payload(), Pattern(1, 1), Pattern(kMegabyte + 3, 2), pieces,
                                 Pattern(kMaxBodyBytes, 3)};
  for (const Payload& body : bodies) pair.near->stream->Send({"there", body});
  for (const Payload& body : bodies) {
    const Message there = pair.far->inbox.Take();
    EXPECT_EQ(there.head, "there");
    EXPECT_TRUE(there.body.ToText() == body.ToText()) << body.size();
    pair.far->stream->Send({std::string(kMaxHeadBytes, 'h'), there.body});
    EXPECT_TRUE(pair.near->inbox.Take().body.ToText() == body.ToText()) << body.size();
  }
}

TEST(TcpStream, CloseFlushesTheQueueAndEndsOrderly) {
  TcpPair pair;
  for (int i = 0; i < 20; ++i) pair.near->stream->Send({"large", Pattern(kMaxBodyBytes, i)});
  pair.near->stream->Close();
  EXPECT_TRUE(pair.far->inbox.Closed().ok());
  EXPECT_TRUE(pair.near->inbox.Closed().ok());
  EXPECT_TRUE(pair.far->inbox.Has(20));
}

TEST(TcpStream, AnAbortIsABrokenConnectionForThePeer) {
  TcpPair pair;
  pair.near->stream->Send({"x", Pattern(kMegabyte, 1)});
  pair.far->inbox.Take();
  pair.far->stream->Abort();
  EXPECT_EQ(pair.far->inbox.Closed().id(), "E-rpc-stream");
  pair.near->stream->Close();
  (void)pair.near->inbox.Closed();
}

TEST(TcpStream, AWriterThatWaitsForASlowReaderEndsWithTheStream) {
  auto [a, b] = Connected();
  TcpEnd writer(std::move(a));
  for (int i = 0; i < 50; ++i) writer.stream->Send({"x", Pattern(kMaxBodyBytes, 1)});
  writer.stream->Abort();
  EXPECT_EQ(writer.inbox.Closed().id(), "E-rpc-stream");
}

TEST(TcpStream, InvalidSizesAreRefusedBeforeAllocation) {
  using Sizes = std::array<std::uint32_t, 2>;
  for (const Sizes& sizes : {Sizes{1025, 0}, Sizes{0, (4 << 20) + 1}, Sizes{~0u, ~0u}}) {
    auto [liar, its] = Connected();
    TcpEnd end(std::move(its));
    ASSERT_EQ(send(liar.get(), sizes.data(), sizeof(sizes), 0), 8);
    EXPECT_EQ(end.inbox.Closed().id(), "E-rpc-frame");
  }
}

TEST(TcpStream, AnUnannouncedEndIsABrokenConnection) {
  for (const std::size_t size : {0, 4, 8, 11, 20}) {
    auto [liar, its] = Connected();
    TcpEnd end(std::move(its));
    std::array<char, 24> message{};
    const std::array<std::uint32_t, 2> sizes = {4, 12};
    std::memcpy(message.data(), sizes.data(), sizeof(sizes));
    ASSERT_EQ(send(liar.get(), message.data(), size, 0), static_cast<ssize_t>(size));
    liar.Reset();
    EXPECT_EQ(end.inbox.Closed().id(), "E-rpc-stream") << size;
  }
}

}  // namespace
}  // namespace penstock::test
