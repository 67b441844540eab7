#include "executor/pserver/memory/memory_left.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace penstock::pserver {
namespace {

bool IsLimited(decltype(RLIMIT_AS) resource) {
  rlimit limit = {};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

void ShareHeaps() {
  if (IsLimited(RLIMIT_AS)) mallopt(M_ARENA_MAX, 1);
}

bool MemoryLeft(std::size_t bytes) {
  if (!IsLimited(RLIMIT_AS) && !IsLimited(RLIMIT_DATA)) return true;
  void* const probe =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return false;
  munmap(probe, bytes);
  return true;
}

}  // namespace penstock::pserver
