// gflags behind sub-commands: a flag is known only to the commands that list it, and a wrong one is an error
// of ours, not an exit from inside the library.
#pragma once

#include "framework/base/status.h"
#include "tools/command.h"

namespace penstock::tools {

// Sets the flags among `arguments` ("--name=value", "--name value", "--name" for a boolean, "-" for "_" in
// names; "--" ends them) and returns the rest. kInvalidArgument E-flag.
Result<Arguments> TakeFlags(const Command& command, const Arguments& arguments);

// A line for each flag, for the usage.
std::string FlagHelp(const Command& command);

}  // namespace penstock::tools
