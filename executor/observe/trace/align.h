// Brings the times of a job's processes to one clock.
//
//   AlignClocks(job);               // every message now arrives after it was sent; the first event is at 0
//
// Processes of one host share its monotonic clock. The clocks of two hosts differ by an offset, and little by
// their rates. A message from a to b says offset(a) - offset(b) <= arrival - departure; the closest of these
// bounds, over all messages and along all paths between two hosts, leave each offset an interval. Its middle
// is taken (as NTP does, where delays are equal in both directions). Where messages give no bound, the hosts'
// wall clocks decide. If no offsets satisfy all bounds,
// because the rates differ, all are relaxed by the same least amount; then each message that would still
// arrive before it was sent moves its host's later events forward, so that no arrow goes backward.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/observe/trace/read.h"

namespace penstock::trace {

void AlignClocks(std::vector<ProcessTrace>& job);

// A message between hosts, by the clock of each.
struct Message {
  std::size_t from = 0, to = 0;
  std::int64_t sent_ns = 0, arrived_ns = 0;
};

// What to add to the times of each host: its offset, and from a time of its clock on a further amount.
struct HostClock {
  struct Step {
    std::int64_t from_ns;  // by the host's clock
    std::int64_t more_ns;  // in all, since the beginning
  };
  std::int64_t offset_ns = 0;
  std::vector<Step> steps;  // ascending in both

  std::int64_t Aligned(std::int64_t time_ns) const;
};

// `walls`: of each host, its wall clock minus its monotonic clock.
std::vector<HostClock> SolveClocks(const std::vector<Message>& messages,
                                   const std::vector<std::int64_t>& walls);

}  // namespace penstock::trace
