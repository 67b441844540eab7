// How the failure of one process is reported in another.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::protocol {

// The id of an exception in a trainer's own code, which only that trainer can fix.
inline constexpr char kTrainerRaised[] = "E-trainer-raised";

// Returns this process's error for the failure `why` of `peer` ("trainer 1"). An interrupt or an exception of
// the user's code becomes kUnavailable. An error that already blames another peer is unchanged. Other errors
// keep their code and id, and name the peer.
Status FailureOf(std::string_view peer, const Status& why);

// " after a silence of 13 s", to be appended to the text about a lost connection; empty if the loss was
// noticed at once.
std::string SilenceText(Nanoseconds since_heard);

// "3.2 s": how long a peer was out of reach.
std::string OutageText(Nanoseconds span);

}  // namespace penstock::protocol
