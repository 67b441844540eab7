// What a role reports to the launcher that started it (python/penstock/distributed/launch/outcome.py).
#pragma once

#include "framework/base/status.h"

namespace penstock::process {

// Tells the launcher, once per process, that a peer's error ends this process, which is then not the cause of
// the job's failure. No effect without PENSTOCK_LAUNCH_FD, or if that descriptor is not the launcher's pipe
// any more.
void TellLauncherOfReaction(const Status& why);

}  // namespace penstock::process
