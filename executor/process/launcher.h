// What a role tells the launcher that started it (python/penstock/distributed/launch/outcome.py).
#pragma once

#include "framework/base/status.h"

namespace penstock::process {

// Says on the launcher's pipe, once a process, that an error of a peer ends this one: then it is not the
// cause of the job's failure. Does nothing without PENSTOCK_LAUNCH_FD, or where that descriptor is not the
// pipe any more.
void TellLauncherOfReaction(const Status& why);

}  // namespace penstock::process
