// The wire protocol of a job's processes, by the name that users give: PENSTOCK_WIRE, the launcher's --wire,
// the Executor's `wire`. Programs do not contain it.
#pragma once

#include <string>

#include "framework/base/status.h"

namespace penstock::process {

enum class WireName { kNative, kFluid };

// "native" or "fluid"; empty: native. kInvalidArgument E-wire-name.
Result<WireName> WireNamed(const std::string& name);

}  // namespace penstock::process
