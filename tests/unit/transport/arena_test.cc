#include "executor/transport/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace penstock::test {
namespace {

using transport::Descriptor;
using transport::ReceiveArena;
using transport::SendArena;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t PagesOf(const SendArena& arena) {
  struct stat about {};
  fstat(arena.fd(), &about);
  return static_cast<std::size_t>(about.st_blocks) * 512;
}

TEST(Arena, BytesArriveWithoutACopyAndTheirEndIsToldOnce) {
  SendArena sender = SendArena::Make(kMiB).value();
  const ReceiveArena receiver = ReceiveArena::Map(Descriptor(dup(sender.fd()))).value();
  const std::uint64_t at = sender.Allocate(5).value();
  std::memcpy(sender.At(at), "bytes", 5);
  int done = 0;
  Payload body(receiver.Borrow(at, 5, [&] { ++done; }).value());
  Payload another = body;
  EXPECT_EQ(another.ToText(), "bytes");
  body = Payload();
  EXPECT_EQ(done, 0);
  another = Payload();
  EXPECT_EQ(done, 1);
}

TEST(Arena, BytesStayWhenTheSenderIsGone) {
  std::optional<SendArena> sender = SendArena::Make(kMiB).value();
  const std::uint64_t at = sender->Allocate(5).value();
  std::memcpy(sender->At(at), "bytes", 5);
  std::optional<ReceiveArena> receiver = ReceiveArena::Map(Descriptor(dup(sender->fd()))).value();
  const Payload body(receiver->Borrow(at, 5, [] {}).value());
  sender.reset();
  receiver.reset();
  EXPECT_EQ(body.ToText(), "bytes");
}

TEST(Arena, TheLowestRoomIsTakenAndNeighboursAreJoined) {
  SendArena arena = SendArena::Make(64 << 10).value();
  const std::uint64_t a = arena.Allocate(1).value(), b = arena.Allocate(4097).value(),
                      c = arena.Allocate(52 << 10).value();
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 4096u);
  EXPECT_EQ(c, 12288u);
  EXPECT_FALSE(arena.Allocate(1).has_value());
  EXPECT_TRUE(arena.Free(a));
  EXPECT_TRUE(arena.Free(c));
  EXPECT_TRUE(arena.Free(b));
  EXPECT_EQ(arena.Allocate(64 << 10), 0u);
}

TEST(Arena, WhatIsNotInUseCannotBeFreed) {
  SendArena arena = SendArena::Make(kMiB).value();
  const std::uint64_t at = arena.Allocate(8192).value();
  EXPECT_FALSE(arena.Free(at + 4096));
  EXPECT_FALSE(arena.Free(~std::uint64_t{0}));
  EXPECT_TRUE(arena.Free(at));
  EXPECT_FALSE(arena.Free(at));
}

TEST(Arena, AnEmptyArenaGivesMostOfItsMemoryBack) {
  SendArena arena = SendArena::Make(64 * kMiB).value();
  const std::uint64_t small = arena.Allocate(kMiB).value(), large = arena.Allocate(40 * kMiB).value();
  std::memset(arena.At(large), 1, 40 * kMiB);
  EXPECT_TRUE(arena.Free(large));
  EXPECT_GE(PagesOf(arena), 40 * kMiB);
  EXPECT_TRUE(arena.Free(small));
  EXPECT_LE(PagesOf(arena), transport::kArenaKeptBytes);
}

TEST(Arena, ABodyOutsideIsRefusedBeforeItIsTouched) {
  SendArena sender = SendArena::Make(kMiB).value();
  const ReceiveArena receiver = ReceiveArena::Map(Descriptor(dup(sender.fd()))).value();
  EXPECT_TRUE(receiver.Borrow(kMiB - 4096, 4096, [] {}).ok());
  for (const auto& [offset, size] :
       std::initializer_list<std::pair<std::uint64_t, std::size_t>>{{kMiB - 4096, 4097},
                                                                    {kMiB, 1},
                                                                    {~std::uint64_t{4095}, 4096},
                                                                    {0, kMiB + 1},
                                                                    {0, ~std::size_t{0}},
                                                                    {1, 1}}) {
    EXPECT_EQ(receiver.Borrow(offset, size, [] {}).status().id(), "E-rpc-frame") << offset << " " << size;
  }
}

TEST(Arena, MemoryThatCouldShrinkOrIsNoMemoryIsRefused) {
  Descriptor open(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(open.get(), 4096), 0);
  EXPECT_EQ(ReceiveArena::Map(open).status().id(), "E-rpc-frame");
  EXPECT_EQ(ReceiveArena::Map(Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC))).status().id(),
            "E-rpc-frame");
  ASSERT_EQ(fcntl(open.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(ReceiveArena::Map(open).ok());
  ASSERT_EQ(ftruncate(open.get(), static_cast<off_t>(transport::kArenaBytes + 4096)), 0);
  EXPECT_EQ(ReceiveArena::Map(open).status().id(), "E-rpc-frame");
  // And ours cannot be cut off.
  const SendArena arena = SendArena::Make(kMiB).value();
  EXPECT_NE(ftruncate(arena.fd(), 0), 0);
}

}  // namespace
}  // namespace penstock::test
