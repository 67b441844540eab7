#include "executor/table/pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace penstock::table {

Pages::Pages(std::size_t bytes, std::size_t small) {
  if (bytes == 0) return;
  // A huge page begins at a multiple of its size: takes more addresses, and gives back those around.
  const std::size_t spare = bytes > kHugePage ? kHugePage : 0;
  void* const taken = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (taken == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(taken);
  const std::size_t before = spare == 0 ? 0 : -reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (spare > before) munmap(begin + before + bytes, spare - before);
  data_ = begin + before;
  bytes_ = bytes;
  if (spare > 0 && bytes > small) madvise(data_ + small, bytes - small, MADV_HUGEPAGE);
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void Pages::Release(std::size_t begin, std::size_t end) {
  madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace penstock::table
