// Which random numbers a lasting variable starts from: those of its draw, its place among the ops of a
// startup program that fill variables with random numbers. So networks that are built alike start
// alike, whatever their variables are called. In a program that is made of another one, such as a pserver's,
// a variable keeps the draw that it has there, or that the whole has which it is a slice of: the program
// records it (ProgramMeta::policies, "draw of w.block0") where the variable's own place is another.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/ir/program.h"

namespace penstock {

// The draw of each variable that an op of block 0 fills with random numbers.
std::map<std::string, std::int64_t> DrawsOf(const Program& program);

// The draw of one variable of a block; 0 if no op of the block fills it.
std::int64_t DrawOf(const Program& program, int block, const std::string& name);

// Whether a policy of a program is such a record.
bool RecordsADraw(std::string_view policy);

// Records in `derived` the draws that its variables have in `source`.
void KeepDraws(const Program& source, Program& derived);

}  // namespace penstock
