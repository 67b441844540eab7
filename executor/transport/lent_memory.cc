#include "executor/transport/lent_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace penstock::transport {
namespace {

constexpr std::size_t kPageBytes = 4096;

// The mapped bytes of returned bodies, in all mappings of this process.
std::atomic<std::size_t> kept_bytes = 0;

Status NoMemory(int error) {
  return Unavailable("E-run-shared-memory", "no shared memory: ", std::strerror(error));
}

// Keeps the owners of memory lent over ended connections, while their borrowers may still read it.
class Unreturned {
 public:
  using Owners = std::vector<std::shared_ptr<const void>>;

  void Keep(Descriptor watch, Owners owners) {
    const std::lock_guard lock(mutex_);
    kept_.push_back({std::move(watch), std::move(owners)});
    any_ = true;
  }
  void DropReturned() {
    if (!any_) return;
    std::vector<Kept> dropped;  // destroyed without the lock, because a destructor may run any code
    const std::lock_guard lock(mutex_);
    const auto held = std::stable_partition(kept_.begin(), kept_.end(), [](const Kept& kept) {
      pollfd polled{kept.watch.get(), 0, 0};
      return poll(&polled, 1, 0) == 0;
    });
    dropped.assign(std::make_move_iterator(held), std::make_move_iterator(kept_.end()));
    kept_.erase(held, kept_.end());
    any_ = !kept_.empty();
  }

 private:
  struct Kept {
    Descriptor watch;  // hangs up when the borrower has returned everything
    Owners owners;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;
  std::atomic<bool> any_ = false;
};

Unreturned& UnreturnedOfProcess() {
  static auto* const unreturned = new Unreturned;
  return *unreturned;
}

}  // namespace

Result<Loans> Loans::Make() {
  UnreturnedOfProcess().DropReturned();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NoMemory(errno);
  return Loans(Descriptor(ends[0]), Descriptor(ends[1]));
}

Loans::~Loans() {
  if (loans_.empty()) return;
  hold_.Reset();
  Unreturned::Owners owners;
  for (auto& [number, loan] : loans_) owners.push_back(std::move(loan.owner));
  UnreturnedOfProcess().Keep(std::move(watch_), std::move(owners));
  UnreturnedOfProcess().DropReturned();
}

std::uint64_t Loans::Lend(Loan loan) {
  UnreturnedOfProcess().DropReturned();
  copied_ += loan.copied;
  loans_.emplace(++last_, std::move(loan));
  return last_;
}

Loans::Loan* Loans::Find(std::uint64_t number) {
  const auto found = loans_.find(number);
  return found == loans_.end() ? nullptr : &found->second;
}

bool Loans::Return(std::uint64_t number, Loan& returned) {
  const auto found = loans_.find(number);
  if (found == loans_.end()) return false;
  returned = std::move(found->second);
  loans_.erase(found);
  copied_ -= returned.copied;
  return true;
}

struct BorrowedMemory::Mapping {
  Mapping(std::byte* at, std::size_t size, Descriptor held, std::size_t keep)
      : pages(at), bytes(size), hold(std::move(held)), keep_mapped(keep) {}
  ~Mapping() {
    for (const auto& [offset, size] : kept) kept_bytes -= size;
    munmap(pages, bytes);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Keeps the pages of a returned body mapped, up to a limit, because the next body is often at the same
  // place. Mapping them again would cost a third of the time of summing them. Other pages are unmapped.
  void LetGo(std::uint64_t offset, std::size_t size) {
    const std::lock_guard lock(mutex);
    if (kept.contains({offset, size})) return;
    if (kept_bytes.fetch_add(size) + size <= keep_mapped) {
      kept.emplace(offset, size);
      return;
    }
    kept_bytes -= size;
    const std::size_t begin = (offset + kPageBytes - 1) / kPageBytes * kPageBytes;
    const std::size_t end = (offset + size) / kPageBytes * kPageBytes;
    if (begin < end) madvise(pages + begin, end - begin, MADV_DONTNEED);
  }

  std::byte* const pages;
  const std::size_t bytes;
  const Descriptor hold;
  const std::size_t keep_mapped;
  std::mutex mutex;
  std::set<std::pair<std::uint64_t, std::size_t>> kept;  // offset and size
};

Result<BorrowedMemory> BorrowedMemory::Map(const Descriptor& memory, Descriptor hold,
                                           std::size_t keep_mapped) {
  struct stat about {};
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!sealed || fstat(memory.get(), &about) != 0 || about.st_size <= 0)
    return DataLoss("E-rpc-frame", "the other side offers memory that is not of a fixed size");
  const auto bytes = static_cast<std::size_t>(about.st_size);
  void* pages = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, memory.get(), 0);
  if (pages == MAP_FAILED) return NoMemory(errno);
  return BorrowedMemory(
      std::make_shared<Mapping>(static_cast<std::byte*>(pages), bytes, std::move(hold), keep_mapped));
}

Result<Bytes> BorrowedMemory::Borrow(std::uint64_t offset, std::size_t size,
                                     std::function<void()> done) const {
  if (offset > mapping_->bytes || size > mapping_->bytes - offset) {
    return DataLoss("E-rpc-frame", "a body of ", size, " bytes at ", offset, " of shared memory that has ",
                    mapping_->bytes);
  }
  const std::byte* data = mapping_->pages + offset;
  std::shared_ptr<const void> owner(data,
                                    [mapping = mapping_, offset, size, done = std::move(done)](const void*) {
                                      mapping->LetGo(offset, size);
                                      done();
                                    });
  return Bytes{std::move(owner), data, size};
}

}  // namespace penstock::transport
