// Parses rates of networks.
#pragma once

#include <string_view>

#include "framework/base/status.h"

namespace penstock::tools {

// "10Gbit", "25 Gbit/s", "100Mbit", "1.2GB" or "1.2GB/s" (bytes), to bits per second; k, M, G, T are powers
// of 1,000. kInvalidArgument E-net.
Result<double> ParseRate(std::string_view text);

}  // namespace penstock::tools
