// The report as a page of HTML: one file without scripts, that loads nothing.
#pragma once

#include <string>

#include "tools/profile/report.h"

namespace penstock::profile {

std::string PageOf(const Report& report);

}  // namespace penstock::profile
