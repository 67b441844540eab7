#include "tests/fuzz/targets/heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace penstock::fuzz {
namespace {

std::atomic<std::int64_t> heap_bytes{0};
std::atomic<std::int64_t> heap_peak{0};

// Nobody calls it beside a sanitizer, which has an operator new of its own.
[[maybe_unused]] void Count(std::int64_t bytes) {
  const std::int64_t now = heap_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > heap_peak.load(std::memory_order_relaxed)) heap_peak.store(now, std::memory_order_relaxed);
}

}  // namespace

std::int64_t HeapBytes() { return heap_bytes.load(); }
std::int64_t HeapPeak() { return heap_peak.load(); }
void ResetHeapPeak() { heap_peak.store(heap_bytes.load()); }

}  // namespace penstock::fuzz

#if !defined(__SANITIZE_ADDRESS__)
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  penstock::fuzz::Count(static_cast<std::int64_t>(malloc_usable_size(memory)));
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) penstock::fuzz::Count(-static_cast<std::int64_t>(malloc_usable_size(memory)));
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif
