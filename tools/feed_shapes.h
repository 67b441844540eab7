// The flags --batch and --feed: what a program is fed, for commands that plan its run.
#pragma once

#include <string_view>

#include "executor/schedule/memory_need.h"
#include "framework/base/status.h"

namespace penstock::tools {

// kInvalidArgument E-usage: --feed is not of the form NAME=EXTENTxEXTENT,...
Result<exec::FedShapes> ReadFedShapes(std::string_view command);

}  // namespace penstock::tools
