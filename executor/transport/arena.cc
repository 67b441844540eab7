#include "executor/transport/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock::transport {
namespace {

constexpr std::size_t kBlockBytes = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status NoMemory(int error) {
  return Unavailable("E-rpc-shared-memory", "no shared memory: ", std::strerror(error));
}

// Null where it cannot be mapped.
SharedPages MapPages(int fd, std::size_t bytes, int protection) {
  void* at = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(at), [bytes](std::byte* pages) { munmap(pages, bytes); }};
}

}  // namespace

SendArena::SendArena(Descriptor fd, SharedPages pages, std::size_t bytes)
    : fd_(std::move(fd)), pages_(std::move(pages)), free_({{0, bytes}}) {}

Result<SendArena> SendArena::Make(std::size_t bytes) {
  Descriptor fd(memfd_create("penstock", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return NoMemory(errno);
  }
  SharedPages pages = MapPages(fd.get(), bytes, PROT_READ | PROT_WRITE);
  if (pages == nullptr) return NoMemory(errno);
  return SendArena(std::move(fd), std::move(pages), bytes);
}

std::optional<std::uint64_t> SendArena::Allocate(std::size_t size) {
  const std::size_t blocks = (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const auto fit =
      std::find_if(free_.begin(), free_.end(), [&](const auto& block) { return block.second >= blocks; });
  if (fit == free_.end()) return std::nullopt;
  const auto [offset, room] = *fit;
  free_.erase(fit);
  if (room > blocks) free_.emplace(offset + blocks, room - blocks);
  used_.emplace(offset, blocks);
  used_to_ = std::max(used_to_, static_cast<std::size_t>(offset) + blocks);
  return offset;
}

bool SendArena::Free(std::uint64_t offset) {
  const auto block = used_.find(offset);
  if (block == used_.end()) return false;
  auto freed = free_.emplace(offset, block->second).first;
  used_.erase(block);
  const auto next = std::next(freed);
  if (next != free_.end() && freed->first + freed->second == next->first) {
    freed->second += next->second;
    free_.erase(next);
  }
  if (freed != free_.begin()) {
    const auto before = std::prev(freed);
    if (before->first + before->second == freed->first) {
      before->second += freed->second;
      free_.erase(freed);
    }
  }
  if (used_.empty() && used_to_ > kArenaKeptBytes) {
    fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kArenaKeptBytes,
              static_cast<off_t>(used_to_ - kArenaKeptBytes));
    used_to_ = kArenaKeptBytes;
  }
  return true;
}

Result<ReceiveArena> ReceiveArena::Map(const Descriptor& fd) {
  struct stat about {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  const bool stands = fstat(fd.get(), &about) == 0 && about.st_size > 0 &&
                      static_cast<std::size_t>(about.st_size) <= kArenaBytes;
  if (!sealed || !stands)
    return DataLoss("E-rpc-frame", "the other side offers memory that is not of a fixed size");
  const auto bytes = static_cast<std::size_t>(about.st_size);
  SharedPages pages = MapPages(fd.get(), bytes, PROT_READ);
  if (pages == nullptr) return NoMemory(errno);
  return ReceiveArena(std::move(pages), bytes);
}

Result<Bytes> ReceiveArena::Borrow(std::uint64_t offset, std::size_t size, std::function<void()> done) const {
  if (offset % kBlockBytes != 0 || offset > bytes_ || size > bytes_ - offset) {
    return DataLoss("E-rpc-frame", "a body of ", size, " bytes at ", offset, " of shared memory that has ",
                    bytes_);
  }
  const std::byte* data = pages_.get() + offset;
  std::shared_ptr<const void> owner(data, [pages = pages_, done = std::move(done)](const void*) { done(); });
  return Bytes{std::move(owner), data, size};
}

}  // namespace penstock::transport
