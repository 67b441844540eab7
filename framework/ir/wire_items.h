// The parts of the binary form that wire.cc puts together: one op, one variable, the extension.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

Result<Op> ParseOp(std::string_view bytes);
Result<Var> ParseVar(std::string_view bytes);

// The bytes of ProgramExtra; empty if all facts are defaults.
std::string MakeExtra(const Program& program);
Status ApplyExtra(std::string_view bytes, Program& program);

}  // namespace penstock
