// Converts a program to each of its forms and back. With PENSTOCK_VERIFY=roundtrip in the environment, the
// pass manager and the executor do this with every program, so that every test also proves that no form loses
// information: PENSTOCK_VERIFY=roundtrip ctest -L quick.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

// Serializes and parses the program, then prints and parses it. Returns the same blocks with the same OpIds;
// ops, variables and attributes are the parsed ones. kInternal E-round-trip: a form does not read back to the
// same program.
Result<Program> RoundTrip(const Program& program);

// Whether PENSTOCK_VERIFY=roundtrip was set at startup. It adds checks and never changes results.
bool RoundTripsAreAsked();

// RoundTrip if it is enabled, else the program itself.
Result<Program> Verified(Program program);

}  // namespace penstock
