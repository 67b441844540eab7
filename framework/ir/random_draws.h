// Decides which random numbers a persistable variable starts from: those of its draw, its position among the
// ops of a startup program that fill variables with random numbers. Networks built alike therefore start
// alike, whatever their variables are called. In a derived program, such as a pserver's, a variable keeps
// its draw in the source, or the draw of the whole that it is a slice of: the program records the draw
// (ProgramMeta::policies, "draw of w.block0") where the variable's own position differs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/ir/program.h"

namespace penstock {

// The draws of all variables that ops of block 0 fill with random numbers.
std::map<std::string, std::int64_t> DrawsOf(const Program& program);

// The draw of one variable of a block; 0 if no op of the block fills it.
std::int64_t DrawOf(const Program& program, int block, const std::string& name);

// Whether the policy is the record of a draw.
bool RecordsADraw(std::string_view policy);

// Records in `derived` the draws of its variables in `source`.
void KeepDraws(const Program& source, Program& derived);

}  // namespace penstock
