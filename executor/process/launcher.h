// What a role reports to the launcher that started it (python/penstock/_src/launch/outcome.py). No function
// has an effect without PENSTOCK_LAUNCH_FD, or if that descriptor is no longer the launcher's pipe.
#pragma once

#include <string>

#include "framework/base/status.h"

namespace penstock::process {

// Tells the launcher that this process has joined the other ranks of its job: they would notice its end. A
// reaction that was told before no longer counts: the process has recovered from it.
void TellLauncherOfMeeting();

// Tells the launcher, once after each meeting, that a peer's error ends this process, so the launcher does
// not blame this process for the job's failure. The text of `why` begins with the peer's name.
void TellLauncherOfReaction(const Status& why);

// Tells the launcher, once per process, why this process cannot be started again by itself.
void TellLauncherThatFixed(const std::string& why);
// Tells the launcher, once per process, what this process, started again by itself, has recovered.
void TellLauncherThatBack(const std::string& what);

}  // namespace penstock::process
