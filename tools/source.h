// The user's own programs and the description of the job, as the flags say: --main, --startup, --facts,
// --config, --compat, and those that win over the file.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "tools/case/case_file.h"

namespace penstock::tools {

struct Source {
  Program main, startup;
  CaseFile job;
};

// kInvalidArgument: E-usage (a flag is missing; `command` says whose) and what is wrong in a file, which is
// named.
Result<Source> ReadSource(std::string_view command);
// --main, --startup and --facts alone, where no job is described.
Result<Source> ReadSourcePrograms(std::string_view command);
// Whether one of --main and --startup is given.
bool HasSourcePrograms();
// Whether the flag stands on the command line, with whatever value.
bool IsGiven(const char* flag);

}  // namespace penstock::tools
