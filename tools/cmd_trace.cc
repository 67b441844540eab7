// penstock trace: merges the traces of a job's processes into a file for Perfetto.
#include <iostream>

#include "executor/observe/trace/merge.h"
#include "framework/base/strings.h"
#include "tools/command.h"

namespace penstock::tools {

int RunTrace(const Arguments& arguments) {
  if (arguments.empty() || arguments.size() > 2) return BadUsage("trace", "DIR [FILE]");
  const std::string& folder = arguments[0];
  const std::string out = arguments.size() > 1 ? arguments[1] : StrCat(folder, "/job.pftrace");
  const Result<trace::MergedTrace> merged = trace::MergeTraces(folder, out);
  if (!merged.ok()) return BadInput(merged.status());
  for (const trace::MergedTrace::Process& process : merged->processes) {
    std::cout << (process.role.empty() ? process.file : process.role) << ": " << process.events << " events";
    if (process.left_out > 0) std::cout << ", " << process.left_out << " left out";
    std::cout << "\n";
  }
  if (merged->hosts > 1) std::cout << "the clocks of " << merged->hosts << " hosts were aligned\n";
  std::cout << "open " << out << " at https://ui.perfetto.dev\n";
  return kExitOk;
}

}  // namespace penstock::tools
