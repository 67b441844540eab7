// The runs of blocks in the trace of a process, with the ops of each.
//
//   for (const Run& run : RunsOf(process))
//     for (const OpRun& op : run.ops) Print(op.type, op.self_ns);
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "executor/observe/trace/read.h"

namespace penstock::profile {

// An op as it ran once. `self_ns` leaves out the ops of the blocks that it runs, which are in the list
// themselves.
struct OpRun {
  std::string_view type;  // of the ProcessTrace
  int block = 0;
  int position = 0;  // in the block
  std::int64_t begin_ns = 0;
  std::int64_t self_ns = 0;
  std::int64_t waited_ns = 0;  // of self_ns: for messages of other processes
};

struct Run {
  int block = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::vector<OpRun> ops;  // in the order in which they began; with those of the blocks that they run

  std::int64_t ns() const { return end_ns - begin_ns; }
};

// The runs that no other run of their thread contains, by thread and time. `process` outlives the result. A
// run whose first events were overwritten (executor/observe/trace) lacks these ops.
std::vector<Run> RunsOf(const trace::ProcessTrace& process);

}  // namespace penstock::profile
