// Makes random programs with every kind of value, name, variable, fact and block.
#pragma once

#include <cstdint>

#include "framework/ir/program.h"

namespace penstock::test {

// A seed always gives the same program. The program can be serialized, but need not pass the verifier.
Program RandomProgram(std::uint64_t seed);

}  // namespace penstock::test
