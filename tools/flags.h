// gflags per sub-command: a command accepts only the flags that it lists, and a wrong flag returns an error
// instead of ending the process inside the library.
#pragma once

#include "framework/base/status.h"
#include "tools/command.h"

namespace penstock::tools {

// Sets the flags among `arguments` ("--name=value", "--name value", "--name" for a boolean, "-" for "_" in
// names; "--" ends them) and returns the rest. kInvalidArgument E-flag.
Result<Arguments> TakeFlags(const Command& command, const Arguments& arguments);

// One line of help per flag of `command`.
std::string FlagHelp(const Command& command);

}  // namespace penstock::tools
