// Types and declarations of variables in the textual form.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/var.h"
#include "framework/text/cursor.h"

namespace penstock {

// Parses what follows the ":" of a declaration; sets kind, type and parts of `var`.
Status ParseVarType(Cursor& in, Var& var);

// True at "param", "persist", "data" or "var" followed by a name; no op starts like that.
bool AtDeclaration(Cursor& in);
// The whole declaration, flags included, up to the end of its line.
Result<Var> ParseDeclaration(Cursor& in);

}  // namespace penstock
