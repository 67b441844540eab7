// How a process is recognised from another one of the same host, whatever happens to their connection.
//
//   const std::string me = DescribeThisProcess();        // sent to a peer
//   ... at the peer:  StateOfProcess(me)                 // kRuns, until this process ends
#pragma once

#include <string>
#include <string_view>

namespace penstock {

enum class ProcessState {
  kRuns,
  kEnded,
  kUnknown,  // it is on another host or in another pid namespace, or the text describes no process
};

// The host (its boot and pid namespace), the number and the start time of this process.
std::string DescribeThisProcess();

// The state of the process that `description` describes. A process that ended and whose number another one
// has now is kEnded. The text may come from a peer: it is checked.
ProcessState StateOfProcess(std::string_view description);

}  // namespace penstock
