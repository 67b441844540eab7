#include "tests/fuzz/targets/heap.h"

#if defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define PENSTOCK_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define PENSTOCK_ADDRESS_SANITIZER 0
#endif

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace penstock::fuzz {
namespace {

std::atomic<std::int64_t> heap_bytes{0};
std::atomic<std::int64_t> heap_peak{0};

void Count(std::int64_t bytes) {
  const std::int64_t now = heap_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > heap_peak.load(std::memory_order_relaxed)) heap_peak.store(now, std::memory_order_relaxed);
}

}  // namespace

std::int64_t HeapBytes() { return heap_bytes.load(); }
std::int64_t HeapPeak() { return heap_peak.load(); }
void ResetHeapPeak() { heap_peak.store(heap_bytes.load()); }

}  // namespace penstock::fuzz

// A sanitizer has its own operator new, and reports allocated bytes.
#if PENSTOCK_ADDRESS_SANITIZER
// Declared as in its own header, which not every compiler has.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             std::size_t),
                                                         void (*free_hook)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* memory);

namespace {
void NoteNew(const volatile void*, std::size_t bytes) {
  penstock::fuzz::Count(static_cast<std::int64_t>(bytes));
}
void NoteDelete(const volatile void* memory) {
  if (memory == nullptr) return;
  penstock::fuzz::Count(-static_cast<std::int64_t>(__sanitizer_get_allocated_size(memory)));
}
[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(NoteNew, NoteDelete);
}  // namespace
#else
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
