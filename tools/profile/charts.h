// The drawings of the page: SVG, made here.
#pragma once

#include <string>

#include "tools/profile/report.h"

namespace penstock::profile {

// Each op whose operations and bytes are known, by operations per byte and by operations per second, below
// the roof of the machine. "" if there is no such op.
std::string RooflineChart(const Report& report);

// The memory of a run by time.
std::string MemoryChart(const Report& report);

}  // namespace penstock::profile
