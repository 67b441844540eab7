// Writes a job's traces in the format of Perfetto (https://ui.perfetto.dev): a process for each role, a track
// for each thread, and flows from a trainer's send to the server's merge and the update that it causes, and
// from a request to the reply and its arrival; and from a rank's collective operation to that of the rank
// that begins it next.
//
//   AlignClocks(job);
//   WritePerfetto(job, out);                   // std::ostream
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "executor/observe/trace/read.h"

namespace penstock::trace {

// For each event of a lane, in their order, the flows that end in it. An update ends the flows of all merges
// into its chunk since the update before.
using EndingFlows = std::vector<std::vector<std::uint64_t>>;
std::vector<EndingFlows> FlowsToUpdates(const ProcessTrace& process);  // by lane

// Trainers, pservers, others; each by number: "trainer 2" before "trainer 10". Positions in `job`.
std::vector<std::size_t> OrderOf(const std::vector<ProcessTrace>& job);

void WritePerfetto(const std::vector<ProcessTrace>& job, std::ostream& out);

}  // namespace penstock::trace
