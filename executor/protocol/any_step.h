// What Welcome::steps_ended says to a new process of a trainer when the server does not know where that
// process continues, because the server updates nothing: at any step that the other servers name.
#pragma once

#include <cstdint>
#include <limits>

namespace penstock::protocol {

inline constexpr std::uint64_t kAnyStep = std::numeric_limits<std::uint64_t>::max();

}  // namespace penstock::protocol
