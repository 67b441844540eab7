#include "executor/collective/arena/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace penstock::collective {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status NoMemory(std::size_t bytes) {
  return Unavailable("E-collective-memory", "no ", bytes, " bytes of shared memory: ", std::strerror(errno));
}

}  // namespace

Result<transport::Descriptor> MakeSharedMemory(std::size_t bytes) {
  transport::Descriptor memory(memfd_create("penstock_group", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid() || ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(memory.get(), F_ADD_SEALS, kSizeSeals) != 0) {
    return NoMemory(bytes);
  }
  return memory;
}

Result<Pages> Pages::OfThisProcess(std::size_t bytes) {
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return NoMemory(bytes);
  return Pages(static_cast<std::byte*>(data), bytes);
}

Result<Pages> Pages::OfDescriptor(const transport::Descriptor& memory, std::size_t bytes) {
  struct stat facts {};
  const bool fits = fstat(memory.get(), &facts) == 0 && static_cast<std::size_t>(facts.st_size) == bytes &&
                    (fcntl(memory.get(), F_GET_SEALS) & F_SEAL_SHRINK) != 0;
  if (!fits) return Unavailable("E-collective-memory", "the memory of the group has another size");
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory.get(), 0);
  if (data == MAP_FAILED) return NoMemory(bytes);
  return Pages(static_cast<std::byte*>(data), bytes);
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace penstock::collective
