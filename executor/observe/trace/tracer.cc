#include "executor/observe/trace/tracer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/hash.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"

namespace penstock::trace {
namespace {

constexpr std::size_t kNameMax = 1000;  // bytes of one name
constexpr std::size_t kPlaces = 512;    // names by address that a lane remembers

std::atomic<Tracer*>& OfProcess() {
  static std::atomic<Tracer*> tracer{nullptr};
  return tracer;
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

// Processes of one boot in one time namespace have the same monotonic clock.
std::uint64_t HostId() {
  std::array<char, 256> text{};
  std::uint64_t id = Fnv1a64(HostName());
  if (const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); file >= 0) {
    const ssize_t size = read(file, text.data(), text.size());
    if (size > 0) id = Fnv1a64({text.data(), static_cast<std::size_t>(size)});
    close(file);
  }
  const ssize_t size = readlink("/proc/self/ns/time", text.data(), text.size());
  return size > 0 ? Fnv1a64({text.data(), static_cast<std::size_t>(size)}, id) : id;
}

template <std::size_t N>
void Put(std::array<char, N>& field, std::string_view text) {
  std::memcpy(field.data(), text.data(), std::min(text.size(), N - 1));
}

}  // namespace

struct Tracer::Lane {
  std::uint64_t number = 0;
  std::int64_t thread = 0;
  std::vector<SegmentHeader*> segments;
  std::uint64_t segments_used = 0;  // each time that one is used
  SegmentHeader* segment = nullptr;
  std::uint64_t events = 0;  // in the segment
  std::array<std::pair<const char*, NameId>, kPlaces> places{};
};

// The lanes of a file. Lives as long as a thread that may give its lane back.
class Tracer::Lanes {
 public:
  Lanes(int descriptor, FileHeader& header) : descriptor_(descriptor), header_(header) {}
  ~Lanes() {
    for (const Lane& lane : lanes_) {
      for (SegmentHeader* segment : lane.segments) munmap(segment, kSegmentBytes);
    }
    munmap(&header_, kSegmentsAt);
    close(descriptor_);
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  Lane* Take() {
    const std::lock_guard lock(mutex_);
    Lane* lane = nullptr;
    if (free_.empty()) {
      lane = &lanes_.emplace_back();
      lane->number = lanes_.size() - 1;
      lane->segments.reserve(kSegmentsOfLane);
    } else {
      lane = free_.back();
      free_.pop_back();
    }
    lane->thread = static_cast<std::int64_t>(syscall(SYS_gettid));
    return lane;
  }
  void Give(Lane* lane) {
    const std::lock_guard lock(mutex_);
    free_.push_back(lane);
  }

  // Gives the lane an empty segment: a new one, else its oldest. Returns whether there is any.
  bool Turn(Lane& lane) {
    SegmentHeader* next = lane.segments.size() < kSegmentsOfLane ? MakeSegment() : nullptr;
    if (next != nullptr) {
      lane.segments.push_back(next);
    } else if (lane.segments.empty()) {
      header_.dropped.fetch_add(1, std::memory_order_relaxed);
      return false;
    } else {
      next = lane.segments[lane.segments_used % lane.segments.size()];
    }
    next->events.store(0, std::memory_order_release);
    next->lane = lane.number;
    next->thread = lane.thread;
    next->number = lane.segments_used++;
    lane.segment = next;
    lane.events = 0;
    return true;
  }

  const FileHeader& header() const { return header_; }

 private:
  // Reserves the disk space first: a store to a mapped page without space would end the process.
  SegmentHeader* MakeSegment() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t index = header_.segments.load(std::memory_order_relaxed);
    if (index >= kSegmentsMax || is_full_) return nullptr;
    const auto offset = static_cast<off_t>(kSegmentsAt + index * kSegmentBytes);
    is_full_ = posix_fallocate(descriptor_, offset, kSegmentBytes) != 0;
    if (is_full_) return nullptr;
    void* mapped =
        mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, offset);
    if (mapped == MAP_FAILED) return nullptr;
    header_.segments.store(index + 1, std::memory_order_release);
    return static_cast<SegmentHeader*>(mapped);
  }

  const int descriptor_;
  FileHeader& header_;
  std::mutex mutex_;
  std::deque<Lane> lanes_;
  std::vector<Lane*> free_;
  bool is_full_ = false;
};

// The calling thread's lane; given back when the thread ends.
struct Tracer::Here {
  std::shared_ptr<Lanes> lanes;
  Lane* lane = nullptr;

  ~Here() { Leave(); }
  void Leave() {
    if (lanes != nullptr) lanes->Give(lane);
    lanes.reset();
    lane = nullptr;
  }
};

Result<std::unique_ptr<Tracer>> Tracer::Make(const TracerOptions& options) {
  const std::string path = StrCat(options.folder, "/trace.", HostName(), ".", getpid());
  const std::string part = path + ".part";
  std::remove(part.c_str());
  const int descriptor = open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  const auto failed = [&](int error) {
    if (descriptor >= 0) std::remove(part.c_str());
    return InvalidArgument("E-trace-write", "trace: ", path, " cannot be made: ", std::strerror(error));
  };
  if (descriptor < 0) return failed(errno);
  std::unique_ptr<Tracer> made(new Tracer(options, path, descriptor));
  if (made->header_ == nullptr) return failed(errno);
  // The file appears under its name once its header is complete.
  if (std::rename(part.c_str(), path.c_str()) != 0) return failed(errno);
  return made;
}

Tracer::Tracer(const TracerOptions& options, std::string path, int descriptor)
    : clock_(*options.clock), path_(std::move(path)), descriptor_(descriptor), serial_([] {
        static std::atomic<std::uint64_t> made{0};
        return made.fetch_add(1) + 1;
      }()) {
  const int error = posix_fallocate(descriptor, 0, kSegmentsAt);
  void* mapped = MAP_FAILED;
  if (error == 0) mapped = mmap(nullptr, kSegmentsAt, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    if (error != 0) errno = error;
    close(descriptor);
    return;
  }
  header_ = new (mapped) FileHeader();
  header_->host = HostId();
  header_->pid = getpid();
  header_->wall_ns =
      std::chrono::duration_cast<Nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
      clock_.Now().count();
  Put(header_->job, options.job);
  Put(header_->host_name, HostName());
  names_ = static_cast<char*>(mapped) + FileHeader::kBytes;
  lanes_ = std::make_shared<Lanes>(descriptor, *header_);
}

Tracer::~Tracer() = default;

Tracer* Tracer::OfThisProcess() {
  static const bool wanted = [] {
    const std::string folder = env::Text("PENSTOCK_TRACE");
    if (folder.empty()) return false;
    auto made = Make({.folder = folder, .job = env::Text("PENSTOCK_JOB_ID")});
    if (!made.ok()) {
      Log(LogSeverity::kWarning, made.status().ToString());
      return false;
    }
    OfProcess().store(made->release());
    pthread_atfork(nullptr, nullptr, &ForgetInChild);
    return true;
  }();
  return wanted ? OfProcess().load(std::memory_order_relaxed) : nullptr;
}

// The child shares the mappings, so its records would mix with its parent's.
void Tracer::ForgetInChild() {
  if (Tracer* const parents = OfProcess().exchange(nullptr)) parents->is_off_.store(true);
}

void Tracer::SetRole(std::string_view role) {
  const std::lock_guard lock(mutex_);
  if (header_->role[0] == 0) Put(header_->role, role);
}

Tracer::Lane* Tracer::LaneOfThisThread() noexcept {
  thread_local std::uint64_t serial = 0;
  thread_local Lane* lane = nullptr;
  if (serial == serial_) [[likely]]
    return lane;
  thread_local Here here;
  here.Leave();
  lane = here.lane = lanes_->Take();
  here.lanes = lanes_;
  serial = serial_;
  return lane;
}

void Tracer::Record(const Event& event) noexcept {
  if (is_off_.load(std::memory_order_relaxed)) [[unlikely]]
    return;
  Lane& lane = *LaneOfThisThread();
  if (lane.segment == nullptr || lane.events == kEventsOfSegment) [[unlikely]] {
    if (!lanes_->Turn(lane)) return;
  }
  std::memcpy(reinterpret_cast<Event*>(lane.segment + 1) + lane.events, &event, sizeof(event));
  lane.segment->events.store(++lane.events, std::memory_order_release);
}

NameId Tracer::Intern(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const std::string_view kept = name.substr(0, kNameMax);
  const auto known = known_.find(kept);
  if (known != known_.end()) return known->second;
  const std::uint64_t at = header_->names_end.load(std::memory_order_relaxed);
  if (at + 2 + kept.size() > kNamesBytes || is_off_.load(std::memory_order_relaxed)) return 0;
  names_[at] = static_cast<char>(kept.size() & 0xff);
  names_[at + 1] = static_cast<char>(kept.size() >> 8);
  std::memcpy(names_ + at + 2, kept.data(), kept.size());
  header_->names_end.store(at + 2 + kept.size(), std::memory_order_release);
  const auto id = static_cast<NameId>(at);
  known_.emplace(kept, id);
  return id;
}

std::string_view Tracer::NameAt(NameId id) const {
  const auto* at = reinterpret_cast<const unsigned char*>(names_) + id;
  return {reinterpret_cast<const char*>(at) + 2, static_cast<std::size_t>(at[0]) + (std::size_t{at[1]} << 8)};
}

// The text is compared, because another name may have come to the address.
NameId Tracer::InternInPlace(std::string_view name) {
  if (is_off_.load(std::memory_order_relaxed)) [[unlikely]]
    return 0;
  auto& [place, id] =
      LaneOfThisThread()->places[reinterpret_cast<std::uintptr_t>(name.data()) / 16 % kPlaces];
  if (place == name.data() && id != 0 && NameAt(id) == name) [[likely]]
    return id;
  id = Intern(name);
  place = name.data();
  return id;
}

}  // namespace penstock::trace
