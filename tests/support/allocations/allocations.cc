#include "tests/support/allocations/allocations.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<std::uint64_t> all_count{0}, all_bytes{0};
thread_local bool counting = false;
thread_local std::int64_t count = 0;

// oneDNN allocates a table of arguments for each primitive that it executes, which we cannot change.
bool IsInsideOnednn(const void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

}  // namespace

// Replaces the operator new of the whole binary.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  all_count.fetch_add(1, std::memory_order_relaxed);
  all_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (counting && !IsInsideOnednn(__builtin_return_address(0))) ++count;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// Otherwise a sanitizer's operator new would be used, whose memory must not reach the delete below.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace penstock::test {

Allocations AllocationsSoFar() { return {all_count.load(), all_bytes.load()}; }

void BeginCounting() {
  count = 0;
  counting = true;
}

std::int64_t EndCounting() {
  counting = false;
  return count;
}

}  // namespace penstock::test
