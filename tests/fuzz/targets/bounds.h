// The memory limit of an input: 64 MB or 8 times its size, whichever is larger.
#pragma once

#include <string>
#include <string_view>

namespace penstock::fuzz {

// Calls Try(input); returns the limit that it exceeded, or "". Requires heap.cc.
std::string TryWithinBounds(std::string_view input);

}  // namespace penstock::fuzz
