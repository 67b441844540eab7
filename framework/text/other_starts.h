// The variables that a trainer's program reads and that its startup program leaves to the startup program of
// another program of the same job, as ProgramMeta::policies of the startup program:
//
//   "start of w" -> "another program"
#pragma once

#include <string>
#include <string_view>

#include "framework/ir/program.h"

namespace penstock {

void LeaveStartToAnother(const std::string& variable, ProgramMeta& meta);
bool AnotherStarts(std::string_view variable, const ProgramMeta& meta);
// Whether the key `policy` of ProgramMeta::policies is one of these.
bool RecordsAStart(std::string_view policy);

}  // namespace penstock
