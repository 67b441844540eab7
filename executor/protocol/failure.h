// How the failure of one process reads in another.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::protocol {

// Of an exception in a trainer's own code, which only that trainer can do something about.
inline constexpr char kTrainerRaised[] = "E-trainer-raised";

// What the failure of `peer`, such as "trainer 1", is to this process. An interrupt and an exception of the
// user's code are kUnavailable here. What says of another peer that it failed stays as it is; other errors
// keep their code and id, and are told as the peer's.
Status FailureOf(std::string_view peer, const Status& why);

// " after a silence of 13 s", to follow the words for a lost connection; empty where a loss was noticed at
// once.
std::string SilenceText(Nanoseconds since_heard);

}  // namespace penstock::protocol
