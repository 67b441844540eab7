// Reads the files of Tracer.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const std::vector<ProcessTrace> job, ReadFolder("traces"));
//   for (const ProcessTrace& process : job)
//     for (const Lane& lane : process.lanes) for (const Event& event : lane.events) process.Name(event.name);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/observe/trace/event.h"
#include "framework/base/status.h"

namespace penstock::trace {

struct Lane {
  std::int64_t thread = 0;    // the system's number of the thread that used it last
  std::vector<Event> events;  // in the order in which they ended
};

struct ProcessTrace {
  std::string file;  // its path
  std::string role;  // "trainer 0"; empty: it has none
  std::string job, host_name;
  std::uint64_t host = 0;  // processes of one host have the same clock
  std::int64_t pid = 0;
  std::int64_t wall_ns = 0;  // the wall clock minus the monotonic clock
  std::vector<Lane> lanes;
  std::string names;          // as in the file
  std::uint64_t dropped = 0;  // events that the process could not store
  std::uint64_t invalid = 0;  // events left out, for they were being written when the file was copied

  std::string_view Name(NameId id) const;  // "" for 0
};

// Works however the process ended, and while it runs (then the newest events may be missing).
// kInvalidArgument E-trace-file: the file is none of Tracer's, or a part of one.
Result<ProcessTrace> ReadTrace(const std::string& path);

// All trace.* files of the folder, by name. kInvalidArgument E-trace-folder: there are none, or it is no
// folder; E-trace-jobs: they are of different jobs; E-trace-file.
Result<std::vector<ProcessTrace>> ReadFolder(const std::string& folder);

}  // namespace penstock::trace
