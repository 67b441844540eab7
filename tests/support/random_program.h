// Programs that nobody would write: every kind of value, name, variable, fact and block, from a seed.
#pragma once

#include <cstdint>

#include "framework/ir/program.h"

namespace penstock::test {

// The same seed gives the same program. Well-formed in that it can be written down; it need not verify.
Program RandomProgram(std::uint64_t seed);

}  // namespace penstock::test
