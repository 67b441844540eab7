// Reads the source programs and the job's configuration from the flags --main, --startup, --facts, --config,
// --compat, and the flags that override settings of the --config file.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "tools/case/case_file.h"

namespace penstock::tools {

struct Source {
  Program main, startup;
  CaseFile job;
};

// kInvalidArgument: E-usage (a flag of `command` is missing or invalid), and errors in a file, which they
// name.
Result<Source> ReadSource(std::string_view command);
// Reads only --main, --startup and --facts, for commands without a job.
Result<Source> ReadSourcePrograms(std::string_view command);
// Whether --main or --startup is given.
bool HasSourcePrograms();
// Registers the flags of the table of settings (transpiler/plan/settings.h); once, before flags are read.
void DefineSettingFlags();
// All flags that ReadSource reads.
std::vector<std::string_view> JobFlags();
// Whether the flag is on the command line, with any value.
bool IsGiven(const char* flag);

}  // namespace penstock::tools
