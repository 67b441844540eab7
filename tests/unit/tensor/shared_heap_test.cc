#include "framework/tensor/shared_heap.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace penstock::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t PagesOf(const SharedHeap& heap) {
  struct stat about {};
  fstat(heap.fd(), &about);
  return static_cast<std::size_t>(about.st_blocks) * 512;
}

std::uint64_t OffsetOf(const SharedHeap& heap, const std::shared_ptr<Buffer>& buffer) {
  return heap.OffsetOf(buffer->data(), buffer->bytes()).value();
}

TEST(SharedHeap, AllocatesLowestAndCoalesces) {
  const auto heap = SharedHeap::Make(64 << 10).value();
  std::shared_ptr<Buffer> a = heap->Allocate(1), b = heap->Allocate(4097), c = heap->Allocate(52 << 10);
  EXPECT_EQ(OffsetOf(*heap, a), 0u);
  EXPECT_EQ(OffsetOf(*heap, b), 4096u);
  EXPECT_EQ(OffsetOf(*heap, c), 12288u);
  EXPECT_EQ(heap->Allocate(1), nullptr);
  a.reset();
  c.reset();
  b.reset();
  EXPECT_EQ(OffsetOf(*heap, heap->Allocate(64 << 10)), 0u);
}

TEST(SharedHeap, OffsetOfReportsOnlyItsOwnAddresses) {
  const auto heap = SharedHeap::Make(kMiB).value();
  const std::shared_ptr<Buffer> buffer = heap->Allocate(kMiB);
  EXPECT_EQ(heap->OffsetOf(buffer->data() + 10, kMiB - 10), 10u);
  EXPECT_EQ(heap->OffsetOf(buffer->data() + 10, kMiB - 9), std::nullopt);
  EXPECT_EQ(heap->OffsetOf(buffer->data() + kMiB, 1), std::nullopt);
  const auto elsewhere = Buffer::Allocate(64);
  EXPECT_EQ(heap->OffsetOf(elsewhere->data(), 64), std::nullopt);
}

TEST(SharedHeap, LargeFreeRangesReturnToTheSystem) {
  const auto heap = SharedHeap::Make(128 * kMiB).value();
  std::shared_ptr<Buffer> first = heap->Allocate(40 * kMiB), second = heap->Allocate(40 * kMiB);
  std::memset(first->data(), 1, 40 * kMiB);
  std::memset(second->data(), 2, 40 * kMiB);
  first.reset();
  EXPECT_GE(PagesOf(*heap), 80 * kMiB);  // it may be needed again soon
  second.reset();
  EXPECT_LE(PagesOf(*heap), kMiB);
}

TEST(SharedHeap, LargeBuffersUseTheProcessHeap) {
  SharedHeap* const heap = SharedHeap::OfThisProcess();
  if (heap == nullptr) GTEST_SKIP() << "no shared memory here (ulimit -v)";
  EXPECT_TRUE(heap->OffsetOf(AllocateToShow(kMiB)->data(), kMiB).has_value());
  EXPECT_FALSE(heap->OffsetOf(AllocateToShow(100)->data(), 100).has_value());
}

// A child's writes and frees must not affect its parent, whose peers read that memory.
TEST(SharedHeap, AForkedChildHasItsOwnCopy) {
  SharedHeap* const heap = SharedHeap::OfThisProcess();
  if (heap == nullptr) GTEST_SKIP() << "no shared memory here (ulimit -v)";
  std::shared_ptr<Buffer> kept = AllocateToShow(kMiB), freed = AllocateToShow(80 * kMiB);
  std::memset(kept->data(), 1, kMiB);
  std::memset(freed->data(), 2, 80 * kMiB);
  const pid_t child = fork();
  if (child == 0) {
    const bool same = kept->data()[5] == std::byte{1} && freed->data()[5] == std::byte{2};
    std::memset(kept->data(), 9, kMiB);
    freed.reset();
    const auto mine = AllocateToShow(kMiB);
    _exit(same && !heap->OffsetOf(mine->data(), kMiB) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(kept->data()[kMiB - 1], std::byte{1});
  EXPECT_EQ(freed->data()[80 * kMiB - 1], std::byte{2});
}

}  // namespace
}  // namespace penstock::test
