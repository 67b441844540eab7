// Messages as lines of text, which PS_VERBOSE prints on both sides of a connection.
//
//   if (ShowsMessage(event)) Log(LogSeverity::kInfo, StrCat("to pserver ", address, ": ", TextOf(event)));
//   // to pserver 10.0.0.2:6174: Push variable=3 chunk=0 step=7 part=0 bytes=1024
//
// PS_VERBOSE=1 shows what is rare: hellos, declarations of keys, optimizers, barriers, ends. 2 shows pushes,
// pulls and their answers as well.
#pragma once

#include <string>

#include "executor/protocol/events.h"

namespace penstock::protocol {

// The value of PS_VERBOSE when it is first needed.
bool ShowsMessage(const Event& event);
bool ShowsMessage(const Reply& reply);
// The level from which it is shown: 1 or 2.
int LevelOf(const Event& event);
int LevelOf(const Reply& reply);

std::string TextOf(const Event& event);
std::string TextOf(const Reply& reply);

}  // namespace penstock::protocol
