// Every op there is.
//
//   const OpDef* def = AllOps().Find("mul");
#pragma once

#include "framework/op/op_registry.h"

namespace penstock {

// Adds each op; the caller calls Finish. For a registry that holds further ops.
void RegisterAllOps(OpRegistry& ops);

// All of them, built once, never changed: safe for any number of threads. Lives forever.
const OpRegistry& AllOps();

}  // namespace penstock
