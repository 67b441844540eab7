// The canonical text of a program: equal for programs that differ only in details which Fluid's hash maps and
// random numbers decide. The rules are those of the corpus's own tool.
#pragma once

#include <string>

#include "framework/ir/program.h"

namespace penstock::test {

// Sorts the variables of a block, and the slots and attributes of an op, by name; names control variables
// ("...@0.84") by first use; sorts grad_to_block_id and adjacent fake_init ops; omits op_callstack; and
// removes numbers from name scopes ("/optimizer_4/"), because they depend on what else the process has built.
// Ignores properties that Fluid's format does not have.
std::string Canon(const Program& program);

// The first lines in which two texts differ, with their position; "" if the texts are equal.
std::string FirstDifference(const std::string& a, const std::string& b);

}  // namespace penstock::test
