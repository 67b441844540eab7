// A sub-command of `penstock`. Each has its own cmd_*.cc and one row in the table of main.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"

namespace penstock::tools {

// The README at the root lists the exit codes in section "Exit codes".
inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;
inline constexpr int kExitBadInput = 2;

using Arguments = std::vector<std::string>;  // the arguments that are not flags

struct Command {
  std::string_view name;
  std::string_view arguments;           // "A B", for the usage line
  std::string_view does;                // one line
  std::vector<std::string_view> flags;  // its gflags; all other flags are rejected
  int (*run)(const Arguments& arguments);
};

int RunCheck(const Arguments& arguments);
int RunCkpt(const Arguments& arguments);
int RunConvert(const Arguments& arguments);
int RunDiff(const Arguments& arguments);
int RunDoctor(const Arguments& arguments);
int RunScale(const Arguments& arguments);
int RunMemoryOptimize(const Arguments& arguments);
int RunReleaseMemory(const Arguments& arguments);
int RunPlan(const Arguments& arguments);
int RunPlot(const Arguments& arguments);
int RunProfile(const Arguments& arguments);
int RunShow(const Arguments& arguments);
int RunTop(const Arguments& arguments);
int RunTrace(const Arguments& arguments);
int RunTranspile(const Arguments& arguments);

// The first word of the command line, argv[0].
const std::string& Invoked();

// A pool of threads on all cores, for the running command.
ThreadPool& Threads();

// Prints the first line of the error, with its id, to standard error. Returns kExitBadInput.
int BadInput(const Status& status);
// Does the same for a wrong number of arguments: prints the usage of `command`.
int BadUsage(std::string_view command, std::string_view expected);

}  // namespace penstock::tools
