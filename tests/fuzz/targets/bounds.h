// What an input may take: no more memory than 64 MB or 8 times its size, whichever is more.
#pragma once

#include <string>
#include <string_view>

namespace penstock::fuzz {

// Tries it; what it took too much of, "" if nothing. Link heap.cc too.
std::string TryWithinBounds(std::string_view input);

}  // namespace penstock::fuzz
