#include "framework/tensor/shared_heap.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kGivenBackBytes = std::size_t{64} << 20;
constexpr std::size_t kWorthwhileBytes = std::size_t{32} << 10;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t WholePages(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// The size of the machine's memory. Unused address space costs nothing.
std::size_t MemoryOfMachine() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages <= 0 ? 0 : static_cast<std::size_t>(pages) * kPageBytes;
}

bool AddressSpaceIsLimited() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

SharedHeap* of_this_process = nullptr;

}  // namespace

SharedHeap* SharedHeap::OfThisProcess() {
  static const bool made = [] {
    if (AddressSpaceIsLimited()) return false;
    Result<std::unique_ptr<SharedHeap>> heap = Make(MemoryOfMachine());
    if (!heap.ok()) return false;
    of_this_process = heap->release();
    return pthread_atfork(nullptr, nullptr, [] { of_this_process->LeaveToParent(); }) == 0;
  }();
  return made ? of_this_process : nullptr;
}

Result<std::unique_ptr<SharedHeap>> SharedHeap::Make(std::size_t bytes) {
  bytes = WholePages(bytes);
  const int fd = memfd_create("penstock", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void* pages = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 && fcntl(fd, F_ADD_SEALS, kSeals) == 0)
    pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (pages == MAP_FAILED) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return Unavailable("E-run-shared-memory", "no shared memory: ", std::strerror(error));
  }
  return std::unique_ptr<SharedHeap>(new SharedHeap(fd, static_cast<std::byte*>(pages), bytes));
}

SharedHeap::SharedHeap(int fd, std::byte* pages, std::size_t bytes) : fd_(fd), pages_(pages), bytes_(bytes) {
  free_.emplace(0, Room{.size = bytes});
}

SharedHeap::~SharedHeap() {
  munmap(pages_, bytes_);
  close(fd_);
}

std::shared_ptr<Buffer> SharedHeap::Allocate(std::size_t bytes) {
  const std::size_t size = WholePages(bytes);
  const std::optional<std::uint64_t> offset = Take(size);
  if (!offset) return nullptr;
  std::byte* const data = pages_ + *offset;
  std::shared_ptr<void> owner(data, [this, at = *offset, size](void*) { Free(at, size); });
  return Buffer::Borrow(data, bytes, std::move(owner));
}

std::optional<std::uint64_t> SharedHeap::OffsetOf(const std::byte* data, std::size_t size) const {
  if (data < pages_ || data >= pages_ + bytes_) return std::nullopt;
  const auto offset = static_cast<std::size_t>(data - pages_);
  if (size > bytes_ - offset) return std::nullopt;
  return offset;
}

std::optional<std::uint64_t> SharedHeap::Take(std::size_t size) {
  if (left_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto fit =
      std::find_if(free_.begin(), free_.end(), [&](const auto& room) { return room.second.size >= size; });
  if (fit == free_.end()) return std::nullopt;
  const auto [offset, room] = *fit;
  free_.erase(fit);
  if (room.size > size) {
    free_.emplace(offset + size,
                  Room{.size = room.size - size, .used = room.used > size ? room.used - size : 0});
  }
  return offset;
}

void SharedHeap::Free(std::uint64_t offset, std::size_t size) {
  if (left_) return;
  const std::lock_guard lock(mutex_);
  auto freed = free_.emplace(offset, Room{.size = size, .used = size}).first;
  const auto join = [this](auto first, auto second) {
    first->second.size += second->second.size;
    first->second.used += second->second.used;
    free_.erase(second);
    return first;
  };
  const auto next = std::next(freed);
  if (next != free_.end() && freed->first + freed->second.size == next->first) freed = join(freed, next);
  if (freed != free_.begin()) {
    const auto before = std::prev(freed);
    if (before->first + before->second.size == freed->first) freed = join(before, freed);
  }
  if (freed->second.used < kGivenBackBytes) return;
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(freed->first),
            static_cast<off_t>(freed->second.size));
  freed->second.used = 0;
}

// The child must not change memory that its parent and the parent's peers read. After fork only system calls
// are safe.
void SharedHeap::LeaveToParent() {
  left_ = true;
  static_cast<void>(
      mmap(pages_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd_, 0));
}

std::shared_ptr<Buffer> AllocateToShow(std::size_t bytes) {
  SharedHeap* const heap = bytes >= kWorthwhileBytes ? SharedHeap::OfThisProcess() : nullptr;
  std::shared_ptr<Buffer> buffer = heap == nullptr ? nullptr : heap->Allocate(bytes);
  return buffer != nullptr ? buffer : Buffer::Allocate(bytes);
}

}  // namespace penstock
