// A program through all of its forms and back. With PENSTOCK_VERIFY=roundtrip in the environment the pass
// manager and the executor send every program through this, so that any test also proves that nothing a
// program means is lost on the way: PENSTOCK_VERIFY=roundtrip ctest -L quick.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

// Serialized and parsed, printed and read: the same blocks under the same OpIds, with the ops, variables and
// attributes that were read. kInternal E-round-trip: a form that does not read back, or not to the same.
Result<Program> RoundTrip(const Program& program);

// Whether the process was started with PENSTOCK_VERIFY=roundtrip. It changes what is proved, never a result.
bool RoundTripsAreAsked();

// RoundTrip if it is asked for, else the program.
Result<Program> Verified(Program program);

}  // namespace penstock
