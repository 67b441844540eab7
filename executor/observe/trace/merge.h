// Merges the traces of a job's processes into one file for Perfetto, as `penstock trace` and the launcher do.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const MergedTrace merged, MergeTraces("traces", "traces/job.pftrace"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace penstock::trace {

struct MergedTrace {
  struct Process {
    std::string role;
    std::string file;
    std::uint64_t events = 0;
    std::uint64_t left_out = 0;  // events that could not be stored or read
  };
  std::vector<Process> processes;
  std::uint64_t hosts = 0;  // with clocks of their own
};

// Replaces `out` atomically. Errors: those of ReadFolder; kInvalidArgument E-trace-write: `out` cannot be
// written.
Result<MergedTrace> MergeTraces(const std::string& folder, const std::string& out);

}  // namespace penstock::trace
