// A sub-command of `penstock`. Each lies in its own cmd_*.cc and has one row in the table of main.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"

namespace penstock::tools {

// The table of exit codes is in the README at the root, section "Exit codes".
inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;
inline constexpr int kExitBadInput = 2;

using Arguments = std::vector<std::string>;  // what is left without the flags

struct Command {
  std::string_view name;
  std::string_view arguments;           // "A B", for the usage line
  std::string_view does;                // one line
  std::vector<std::string_view> flags;  // the gflags it takes; every other is refused
  int (*run)(const Arguments& arguments);
};

int RunCheck(const Arguments& arguments);
int RunConvert(const Arguments& arguments);
int RunDiff(const Arguments& arguments);
int RunMemoryOptimize(const Arguments& arguments);
int RunReleaseMemory(const Arguments& arguments);
int RunPlan(const Arguments& arguments);
int RunPlot(const Arguments& arguments);
int RunShow(const Arguments& arguments);
int RunTop(const Arguments& arguments);
int RunTranspile(const Arguments& arguments);

// How this command was called: the first word of its command line.
const std::string& Invoked();

// Of all cores, for the command that runs.
ThreadPool& Threads();

// Prints the first line of the error to standard error: what and where. Returns kExitBadInput.
int BadInput(const Status& status);
// The same for a wrong number of arguments.
int BadUsage(std::string_view command, std::string_view expected);

}  // namespace penstock::tools
