#include "executor/transport/lent_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "framework/tensor/shared_heap.h"

namespace penstock::test {
namespace {

using transport::BorrowedMemory;
using transport::Descriptor;
using transport::Loans;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

constexpr std::size_t kKept = 64 * kMebibyte;

// A heap and the peer's view of it.
struct Shown {
  std::unique_ptr<SharedHeap> heap;
  std::optional<Loans> loans = Loans::Make().value();
  std::optional<BorrowedMemory> view;

  explicit Shown(std::size_t bytes = 64 * kMebibyte) : heap(SharedHeap::Make(bytes).value()) {
    view = BorrowedMemory::Map(Descriptor(dup(heap->fd())), Descriptor(dup(loans->hold())), kKept).value();
    loans->HoldIsPassed();
  }
  Bytes Borrow(
      const Buffer& buffer, std::function<void()> done = [] {}) const {
    return view->Borrow(*heap->OffsetOf(buffer.data(), buffer.bytes()), buffer.bytes(), std::move(done))
        .value();
  }
};

TEST(LentMemory, BytesArriveUncopiedAndAreReleasedOnce) {
  const Shown shown;
  const std::shared_ptr<Buffer> buffer = shown.heap->Allocate(5);
  std::memcpy(buffer->data(), "bytes", 5);
  int done = 0;
  Payload body(shown.Borrow(*buffer, [&] { ++done; }));
  Payload another = body;
  EXPECT_EQ(another.ToText(), "bytes");
  body = Payload();
  EXPECT_EQ(done, 0);
  another = Payload();
  EXPECT_EQ(done, 1);
}

TEST(LentMemory, AnOutOfBoundsBodyIsRefusedBeforeAccess) {
  const Shown shown;
  const std::size_t all = 64 * kMebibyte;
  EXPECT_TRUE(shown.view->Borrow(all - 4096, 4096, [] {}).ok());
  for (const auto& [offset, size] : std::initializer_list<std::pair<std::uint64_t, std::size_t>>{
           {all - 4096, 4097}, {all, 1}, {~std::uint64_t{4095}, 4096}, {0, all + 1}, {0, ~std::size_t{0}}}) {
    EXPECT_EQ(shown.view->Borrow(offset, size, [] {}).status().id(), "E-rpc-frame") << offset << " " << size;
  }
}

TEST(LentMemory, UnsealedAndInvalidMemoryIsRefused) {
  Descriptor open(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(open.get(), 4096), 0);
  EXPECT_EQ(BorrowedMemory::Map(open, Descriptor(), 0).status().id(), "E-rpc-frame");
  EXPECT_EQ(BorrowedMemory::Map(Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)), Descriptor(), 0)
                .status()
                .id(),
            "E-rpc-frame");
  ASSERT_EQ(fcntl(open.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(BorrowedMemory::Map(open, Descriptor(), 0).ok());
  // And ours cannot be truncated.
  EXPECT_NE(ftruncate(SharedHeap::Make(kMebibyte).value()->fd(), 0), 0);
}

TEST(LentMemory, ALoanIsReturnedOnce) {
  Loans loans = Loans::Make().value();
  auto owner = std::make_shared<int>(1);
  const std::uint64_t loan = loans.Lend({.owner = owner, .copied = 10, .untaken = 10});
  EXPECT_EQ(loans.copied(), 10u);
  EXPECT_EQ(loans.Find(loan + 1), nullptr);
  Loans::Loan returned;
  EXPECT_FALSE(loans.Return(loan + 1, returned));
  EXPECT_TRUE(loans.Return(loan, returned));
  EXPECT_FALSE(loans.Return(loan, returned));
  EXPECT_EQ(loans.copied(), 0u);
  EXPECT_EQ(owner.use_count(), 2);  // here and in `returned`
}

// A connection may end while the peer process lives and has not yet used the received memory.
TEST(LentMemory, LoansOutliveTheConnectionUntilTheLastReader) {
  Shown shown;
  std::shared_ptr<Buffer> buffer = shown.heap->Allocate(kMebibyte);
  std::memset(buffer->data(), 7, kMebibyte);
  const std::weak_ptr<Buffer> watched = buffer;
  std::optional<Payload> body(std::in_place, shown.Borrow(*buffer));
  shown.loans->Lend({.owner = std::move(buffer)});
  shown.loans.reset();  // the lender's end of the connection
  shown.view.reset();   // the borrower's
  Loans::Make().value();
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(body->ToText(), std::string(kMebibyte, 7));
  body.reset();
  Loans::Make().value();  // the next lender checks
  EXPECT_TRUE(watched.expired());
}

std::size_t SharedPagesOfProcess() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssShmem:")) return std::stoul(line.substr(9)) << 10;
  }
  return 0;
}

TEST(LentMemory, RetainedLoansOfAReaderAreBounded) {
  const Shown shown(256 * kMebibyte);
  const std::shared_ptr<Buffer> buffer = shown.heap->Allocate(160 * kMebibyte);
  std::memset(buffer->data(), 7, buffer->bytes());
  const std::size_t before = SharedPagesOfProcess();
  for (int round = 0; round < 2; ++round) {
    std::vector<Payload> bodies;
    for (std::size_t at = 0; at < buffer->bytes(); at += 4 * kMebibyte)
      bodies.emplace_back(shown.view->Borrow(at, 4 * kMebibyte, [] {}).value());
    for (const Payload& body : bodies) EXPECT_EQ(body.ToText(), std::string(4 * kMebibyte, 7));
    EXPECT_GE(SharedPagesOfProcess(), before + 150 * kMebibyte);
    bodies.clear();
    EXPECT_LE(SharedPagesOfProcess(), before + kKept + kMebibyte);
  }
}

}  // namespace
}  // namespace penstock::test
