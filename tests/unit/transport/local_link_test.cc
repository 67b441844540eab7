// A connection between two processes of one host, as two ends in this process; and a malicious end.
#include "executor/transport/local_link.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <future>
#include <new>
#include <thread>

#include "executor/transport/unix_socket.h"
#include "tests/unit/transport/inbox.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;
using transport::Descriptor;
using transport::LocalEnd;
using transport::LocalLink;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::pair<Descriptor, Descriptor> SocketPair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

struct End {
  End(Descriptor socket, LocalEnd end)
      : link(std::make_shared<LocalLink>(std::move(socket), inbox, end)), thread([this] { link->Run(); }) {}
  ~End() {
    link->Abort();
    thread.join();
  }
  Inbox inbox;
  std::shared_ptr<LocalLink> link;
  std::thread thread;
};

// A client and a server that has admitted it.
struct Pair {
  explicit Pair(bool admit = true) {
    auto [a, b] = SocketPair();
    client.emplace(std::move(a), LocalEnd::kClient);
    server.emplace(std::move(b), LocalEnd::kServer);
    if (admit) server->link->Admit();
  }
  std::optional<End> client, server;
};

TEST(LocalLink, BodiesOfEverySizeArriveInBothDirections) {
  Pair pair;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, (32 * kMiB / 1024) - 1,
                                 32 * kMiB / 1024, kMiB + 3, kMaxBodyBytes}) {
    const Payload body = Pattern(size, 7);
    pair.client->link->Send({"to the server", body});
    const Message there = pair.server->inbox.Take();
    EXPECT_EQ(there.head, "to the server");
    EXPECT_TRUE(there.body.ToText() == body.ToText()) << size;
    pair.server->link->Send({"back", there.body});
    EXPECT_TRUE(pair.client->inbox.Take().body.ToText() == body.ToText()) << size;
  }
}

TEST(LocalLink, ABodyInSeveralPiecesArrivesInOne) {
  Pair pair;
  Payload body;
  for (int i = 0; i < 5; ++i) body.Append(Pattern(50'000, i).pieces().front());
  pair.client->link->Send({"pieces", body});
  EXPECT_TRUE(pair.server->inbox.Take().body.ToText() == body.ToText());
}

TEST(LocalLink, WithoutSharedMemoryBodiesUseTheSocket) {
  Pair pair(false);
  const Payload body = Pattern(kMaxBodyBytes, 1);
  pair.server->link->Send({"head", body});
  EXPECT_TRUE(pair.client->inbox.Take().body.ToText() == body.ToText());
}

// A handler that keeps all messages, like a server that waits for a slower trainer.
TEST(LocalLink, AReaderKeepingAllCopiesBlocksNoSender) {
  Pair pair;
  const Payload body = Pattern(kMaxBodyBytes, 2);
  const std::size_t count = transport::kCopiesMax / kMaxBodyBytes + 8;
  for (std::size_t i = 0; i < count; ++i) pair.client->link->Send({std::to_string(i), body});
  ASSERT_TRUE(pair.server->inbox.Has(count));
  for (std::size_t i = 0; i < count; ++i) {
    const Message message = pair.server->inbox.Take();
    EXPECT_EQ(message.head, std::to_string(i));
    EXPECT_TRUE(std::memcmp(message.body.pieces().front().data, body.pieces().front().data, 4096) == 0);
  }
  pair.client->link->Send({"and on", body});
  EXPECT_EQ(pair.server->inbox.Take().head, "and on");
}

// A body in the shared heap; `gone` is set with its last owner.
Payload InHeap(std::size_t size, int seed, std::promise<void>& gone) {
  std::shared_ptr<Buffer> buffer = SharedHeap::OfThisProcess()->Allocate(size);
  Pattern(size, seed).CopyTo(buffer->data());
  const std::byte* data = buffer->data();
  return Payload(
      {std::shared_ptr<const void>(data, [buffer, &gone](const void*) { gone.set_value(); }), data, size});
}

TEST(LocalLink, SharedHeapBodiesAreReadInPlaceUntilReturned) {
  if (SharedHeap::OfThisProcess() == nullptr) GTEST_SKIP() << "no shared memory here (ulimit -v)";
  std::promise<void> gone;
  std::future<void> end = gone.get_future();
  Pair pair;
  // The server's memory is passed before its first message, the client's before the answer, and the
  // confirmation that the server has mapped it before the next message.
  pair.server->link->Send({"first", {}});
  pair.client->inbox.Take();
  pair.client->link->Send({"answer", {}});
  pair.server->inbox.Take();
  pair.server->link->Send({"next", {}});
  pair.client->inbox.Take();
  pair.client->link->Send({"lent", InHeap(kMiB + 5, 3, gone)});
  std::optional<Message> got = pair.server->inbox.Take();
  EXPECT_TRUE(got->body.ToText() == Pattern(kMiB + 5, 3).ToText());
  EXPECT_EQ(end.wait_for(seconds(0)), std::future_status::timeout);
  got.reset();
  EXPECT_EQ(end.wait_for(seconds(30)), std::future_status::ready);
}

TEST(LocalLink, SmallMessagesAreOrderedAndNonBlocking) {
  Pair pair;
  for (int i = 0; i < 20'000; ++i) pair.client->link->Send({std::to_string(i), Pattern(100, i)});
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(pair.server->inbox.Take().head, std::to_string(i));
}

TEST(LocalLink, CloseFlushesTheQueueAndEndsOrderly) {
  Pair pair;
  for (int i = 0; i < 20; ++i) {
    pair.client->link->Send({"large", Pattern(kMiB, i)});
    pair.client->link->Send({"small", {}});
  }
  pair.client->link->Close();
  EXPECT_TRUE(pair.server->inbox.Closed().ok());
  EXPECT_TRUE(pair.client->inbox.Closed().ok());
  EXPECT_TRUE(pair.server->inbox.Has(40));
}

TEST(LocalLink, AnAbortIsABrokenConnectionForThePeer) {
  Pair pair;
  pair.client->link->Send({"x", Pattern(kMiB, 1)});
  const Message kept = pair.server->inbox.Take();
  pair.client->link->Abort();
  EXPECT_EQ(pair.server->inbox.Closed().id(), "E-rpc-stream");
  EXPECT_EQ(pair.client->inbox.Closed().id(), "E-rpc-stream");
  pair.client.reset();
  EXPECT_EQ(kept.body.ToText(), Pattern(kMiB, 1).ToText());
}

// As if memory ran out while a message is received.
class NoRoom : public Inbox {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message) override { throw std::bad_alloc(); }
};

TEST(LocalLink, OutOfMemoryEndsOnlyTheConnection) {
  auto [a, b] = SocketPair();
  End client(std::move(a), LocalEnd::kClient);
  NoRoom inbox;
  const auto server = std::make_shared<LocalLink>(std::move(b), inbox, LocalEnd::kServer);
  std::thread thread([&] { server->Run(); });
  client.link->Send({"too much", {}});
  EXPECT_EQ(inbox.Closed().id(), "E-run-memory");
  EXPECT_EQ(client.inbox.Closed().id(), "E-rpc-stream");
  thread.join();
}

enum : std::uint32_t { kMessages = 1, kCopied, kBegin, kPart, kMemory, kNotes, kEnd, kLent = 10, kHold = 11 };
using U32 = std::uint32_t;
using U64 = std::uint64_t;

// Invalid messages of a process that has passed the gate; the server's end reports why it closes.
class Liar {
 public:
  explicit Liar(bool admit = true) {
    auto [mine, its] = SocketPair();
    socket_ = std::move(mine);
    server_.emplace(std::move(its), LocalEnd::kServer);
    if (!admit) return;
    server_->link->Admit();
    char buffer[64];
    hold_ = std::move(transport::ReceiveRecord(socket_, buffer, sizeof(buffer))->passed);
    memory_ = std::move(transport::ReceiveRecord(socket_, buffer, sizeof(buffer))->passed);
  }
  template <typename... Numbers>
  void Say(std::uint32_t kind, Numbers... numbers) {
    std::string record(reinterpret_cast<const char*>(&kind), 4);
    (record.append(reinterpret_cast<const char*>(&numbers), sizeof(numbers)), ...);
    transport::SendRecord(socket_, record);
  }
  void PassAs(char kind, const Descriptor& passed) {
    transport::SendRecord(socket_, std::string(1, kind) + std::string(3, '\0'), passed.get());
  }
  void Pass(const Descriptor& memory) {
    PassAs(kHold, hold_);
    PassAs(kMemory, memory);
  }
  void PassItsOwn() { Pass(memory_); }
  U64 Size() const {
    struct stat about {};
    fstat(memory_.get(), &about);
    return static_cast<U64>(about.st_size);
  }
  std::string Id() { return server_->inbox.Closed().id(); }
  End& server() { return *server_; }

 private:
  Descriptor socket_, hold_, memory_;
  std::optional<End> server_;
};

TEST(LocalLink, InvalidMessagesAreRefused) {
  const std::vector<std::function<void(Liar&)>> lies = {
      [](Liar& liar) { liar.Say(0); },
      [](Liar& liar) { liar.Say(99, U64{0}); },
      [](Liar& liar) { liar.Say(kMessages, U32{5}, U32{5}); },
      [](Liar& liar) { liar.Say(kCopied, U64{1}, U64{0}, U32{0}, U32{4096}); },  // no memory was passed
      [](Liar& liar) { liar.Say(kLent, U64{1}, U64{0}, U32{0}, U32{4096}); },
      [](Liar& liar) { liar.Say(kLent, U32{1}); },
      [](Liar& liar) { liar.Say(kBegin, U32{0}, U32{0}); },
      [](Liar& liar) { liar.Say(kBegin, U32{0}, U32{0xffffffff}); },
      [](Liar& liar) { liar.Say(kBegin, U32{8}, U32{8}); },
      [](Liar& liar) {
        liar.Say(kBegin, U32{0}, U32{8});
        liar.Say(kBegin, U32{0}, U32{8});
      },
      [](Liar& liar) { liar.Say(kPart, U64{0}); },
      [](Liar& liar) {
        liar.Say(kBegin, U32{0}, U32{9});
        liar.Say(kPart, U64{0}, U64{0});
      },
      [](Liar& liar) { liar.Say(kMemory); },
      [](Liar& liar) { liar.Pass(Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC))); },
      [](Liar& liar) {
        liar.PassItsOwn();
        liar.PassItsOwn();
      },
      [](Liar& liar) { liar.Say(kNotes, U64{(7 << 1) | 1}); },  // nothing is lent
      [](Liar& liar) { liar.PassAs(kMemory, Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC))); },
      [](Liar& liar) { liar.Say(kNotes, U32{0}); },
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    Liar liar;
    lies[i](liar);
    EXPECT_EQ(liar.Id(), "E-rpc-frame") << "lie " << i;
  }
}

TEST(LocalLink, OffsetsOutsideTheMemoryAreRefused) {
  const U64 size = Liar().Size();
  for (const auto& [offset, body] : std::initializer_list<std::pair<U64, U32>>{
           {size, 1}, {size - 4096, 4097}, {~U64{0} - 4095, 4096}, {U64{1} << 63, 4096}, {0, 5 << 20}}) {
    Liar liar;
    liar.PassItsOwn();
    liar.Say(kLent, U64{1}, U64{0}, U32{0}, U32{4096});
    EXPECT_EQ(liar.server().inbox.Take().body.size(), 4096u);
    liar.Say(kLent, U64{2}, offset, U32{0}, body);
    EXPECT_EQ(liar.Id(), "E-rpc-frame") << offset << " " << body;
  }
}

TEST(LocalLink, BeforeAdmissionAPeerIsLimitedTo64KB) {
  Liar much(false);
  for (int i = 0; i < 3; ++i) much.Say(kMessages, U32{0}, U32{30'000}, std::array<char, 30'000>());
  EXPECT_EQ(much.Id(), "E-rpc-frame");
  Liar large(false);
  large.Say(kBegin, U32{0}, U32{4 << 20});
  EXPECT_EQ(large.Id(), "E-rpc-frame");
  Liar memory(false);
  Descriptor sealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(sealed.get(), 4096), 0);
  ASSERT_EQ(fcntl(sealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  memory.Pass(sealed);
  EXPECT_EQ(memory.Id(), "E-rpc-frame");
}

int OpenDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(LocalLink, UnexpectedDescriptorsAreClosed) {
  const int before = OpenDescriptors();
  {
    Liar liar;
    Descriptor file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    liar.Pass(file);
    EXPECT_EQ(liar.Id(), "E-rpc-frame");
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace penstock::test
