// Decides which random numbers make the initial value of a persistable variable. A variable's draw is its
// position among the ops of the startup program that fill variables with random numbers. Two networks built
// the same way therefore get equal initial values, whatever their variables are called.
//
// In a derived program, such as a pserver's, a variable keeps the draw that it has in the source program; a
// slice keeps the draw of its whole variable. The derived program records the draw (ProgramMeta::policies,
// "draw of w.block0") if the variable's own position differs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/ir/program.h"

namespace penstock {

// The draws of all variables that ops of block 0 fill with random numbers.
std::map<std::string, std::int64_t> DrawsOf(const Program& program);

// The draw of one variable of a block; 0 if no op of the block fills it with random numbers.
std::int64_t DrawOf(const Program& program, int block, const std::string& name);

// Whether the key `policy` of ProgramMeta::policies records a draw.
bool RecordsADraw(std::string_view policy);

// Records in `derived` the draws that its variables have in `source`, where they differ.
void KeepDraws(const Program& source, Program& derived);

}  // namespace penstock
