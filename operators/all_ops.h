// The registry of all ops.
//
//   const OpDef* def = AllOps().Find("mul");
#pragma once

#include "framework/op/op_registry.h"

namespace penstock {

// Adds all ops to `ops`, for a registry that holds further ops too. The caller must call Finish.
void RegisterAllOps(OpRegistry& ops);

// Returns the registry of all ops. It is built once, never changes and is never destroyed. Thread-safe.
const OpRegistry& AllOps();

}  // namespace penstock
