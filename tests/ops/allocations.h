// Counts what a kernel allocates when it runs again.
#pragma once

#include <cstdint>

#include "tests/support/allocations/allocations.h"
#include "tests/support/op_harness.h"

namespace penstock::test {

// How many allocations the second run makes goes to `allocations`.
inline SecondRun CountInto(std::int64_t& allocations) {
  return {BeginCounting, [&allocations] { allocations = EndCounting(); }};
}

}  // namespace penstock::test
