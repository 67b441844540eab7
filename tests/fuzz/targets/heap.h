// What the C++ code of the process holds on its heap. Link heap.cc to count.
#pragma once

#include <cstdint>

namespace penstock::fuzz {

std::int64_t HeapBytes();
// The most since the last call of ResetHeapPeak.
std::int64_t HeapPeak();
void ResetHeapPeak();

}  // namespace penstock::fuzz
