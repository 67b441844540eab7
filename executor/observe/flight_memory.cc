#include "executor/observe/flight_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "framework/base/environment.h"

namespace penstock::observe {
namespace {

// Returns the descriptor in PENSTOCK_FLIGHT_FD, or -1 if it is not the launcher's file: the number may have
// been reused, or the variable set by hand.
int SharedDescriptor() {
  const std::string text = env::Text("PENSTOCK_FLIGHT_FD");
  char* end = nullptr;
  const long descriptor = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != ':') return -1;
  struct stat facts {};
  if (fstat(static_cast<int>(descriptor), &facts) != 0 || !S_ISREG(facts.st_mode)) return -1;
  if (static_cast<std::size_t>(facts.st_size) != sizeof(FlightBlock)) return -1;
  return std::to_string(facts.st_ino) == end + 1 ? static_cast<int>(descriptor) : -1;
}

void* Map(int flags, int descriptor) {
  void* mapped = mmap(nullptr, sizeof(FlightBlock), PROT_READ | PROT_WRITE, flags, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace

FlightMemory::FlightMemory(void* mapped) : block_(static_cast<FlightBlock*>(mapped)) {}

FlightMemory::FlightMemory(FlightMemory&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}

FlightMemory::~FlightMemory() {
  if (block_ != nullptr) munmap(block_, sizeof(FlightBlock));
}

FlightMemory FlightMemory::Own() { return FlightMemory(Map(MAP_PRIVATE | MAP_ANONYMOUS, -1)); }

// Child processes inherit the descriptor, so only the first process that claims the block uses it.
FlightMemory FlightMemory::FromEnvironment() {
  const int descriptor = SharedDescriptor();
  if (descriptor < 0) return Own();
  FlightMemory shared(Map(MAP_SHARED, descriptor));
  std::uint64_t nobody = 0;
  if (shared.block_ == nullptr ||
      !shared.block_->owner.compare_exchange_strong(nobody, static_cast<std::uint64_t>(getpid()))) {
    return Own();
  }
  return shared;
}

}  // namespace penstock::observe
