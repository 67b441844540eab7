// A program as text in which two programs are equal if Fluid could have written either for the other: what
// its hash maps and random numbers decide does not show. The same rules as the corpus's own tool.
#pragma once

#include <string>

#include "framework/ir/program.h"

namespace penstock::test {

// Variables of a block, slots and attributes of an op by name; control variables ("...@0.84") named by first
// use; grad_to_block_id and neighbouring fake_init ops sorted; op_callstack left out; name scopes without the
// numbers that they have by what else the process has built ("/optimizer_4/"). Facts beside Fluid's form do
// not count.
std::string Canon(const Program& program);

// The first lines in which two texts differ, with where; "" if they are equal.
std::string FirstDifference(const std::string& a, const std::string& b);

}  // namespace penstock::test
