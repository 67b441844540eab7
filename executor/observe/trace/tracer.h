// Records what the threads of this process do into a file (file.h), which `penstock trace` merges with those
// of the job's other processes.
//
//   Tracer* const tracer = Tracer::OfThisProcess();                  // null: no trace is wanted
//   const NameId w = tracer->Intern("w@GRAD");                       // at set-up
//   const Nanoseconds begin = tracer->Now();
//   ...
//   tracer->Record({.begin_ns = begin.count(), .end_ns = tracer->Now().count(), .name = w, ...});
//
// Record writes one cache line into memory of the calling thread: no lock, no allocation, no system call, but
// for a new segment after each 4,095 events until the thread has all of its 32. It then overwrites its oldest
// 4,095 events. Thread-safe. A forked child records nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "executor/observe/trace/event.h"
#include "executor/observe/trace/file.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::trace {

struct TracerOptions {
  std::string folder;                   // must exist
  std::string job = {};                 // its name: files of two jobs are not merged
  const Clock* clock = &SystemClock();  // monotonic
};

class Tracer {
 public:
  // kInvalidArgument E-trace-write: no file can be made in the folder.
  static Result<std::unique_ptr<Tracer>> Make(const TracerOptions& options);
  // The tracer of PENSTOCK_TRACE, made by the first call; null if the variable is not set, or in a forked
  // child. A file that cannot be made causes a log line, not an error. Never destroyed.
  static Tracer* OfThisProcess();

  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  const std::string& path() const { return path_; }
  Nanoseconds Now() const { return clock_.Now(); }
  void SetRole(std::string_view role);  // "trainer 0"; the first one given stays
  void Record(const Event& event) noexcept;

  // The id of a name; equal names have the same id. 0 once the names take a million bytes. Takes a lock.
  NameId Intern(std::string_view name);
  // As Intern, but remembers the names of each thread by address, and takes no lock for one that it knows.
  // For names that stay where they are, such as the types of ops.
  NameId InternInPlace(std::string_view name);

 private:
  class Lanes;
  struct Lane;
  struct Here;

  Tracer(const TracerOptions& options, std::string path, int descriptor);
  Status MakeHeader(const TracerOptions& options);
  Lane* LaneOfThisThread() noexcept;
  std::string_view NameAt(NameId id) const;
  static void ForgetInChild();

  const Clock& clock_;
  const std::string path_;
  const int descriptor_;
  FileHeader* header_ = nullptr;  // the mapping of header and names
  char* names_ = nullptr;
  std::shared_ptr<Lanes> lanes_;  // shared with the threads that use them
  std::atomic<bool> is_off_{false};
  const std::uint64_t serial_;

  std::mutex mutex_;  // guards what follows
  std::map<std::string, NameId, std::less<>> known_;
};

}  // namespace penstock::trace
