// The wire that the processes of a job speak, by the name under which a user chooses it: PENSTOCK_WIRE, the
// launcher's --wire, the Executor's `wire`. No program says it.
#pragma once

#include <string>

#include "framework/base/status.h"

namespace penstock::process {

enum class WireName { kNative, kFluid };

// "native" or "fluid"; empty: native. kInvalidArgument E-wire-name.
Result<WireName> WireNamed(const std::string& name);

}  // namespace penstock::process
