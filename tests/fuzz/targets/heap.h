// The bytes that the C++ code of the process holds on its heap. Requires heap.cc, which counts them.
#pragma once

#include <cstdint>

namespace penstock::fuzz {

std::int64_t HeapBytes();
// The maximum since the last call of ResetHeapPeak.
std::int64_t HeapPeak();
void ResetHeapPeak();

}  // namespace penstock::fuzz
