// Traces made up in text, for golden cases.
#pragma once

#include <string>
#include <vector>

#include "executor/observe/trace/read.h"
#include "framework/base/status.h"

namespace penstock::test {

// "process 'trainer 0' pid=10 host=1", "thread 10", "KIND BEGIN END NAME peer='pserver 0' flow=7 step=1 ..."
Result<std::vector<trace::ProcessTrace>> ParseTraces(const std::string& text);

}  // namespace penstock::test
