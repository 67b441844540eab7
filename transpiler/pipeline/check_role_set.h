// The proof of what Transpile made, before anybody gets it.
//
//   const CheckReport report = CheckRoleSet(AllOps(), roles, main, startup);
//   if (report.errors() > 0) ...   // nothing of `roles` is handed out, but in Fluid's dialect
#pragma once

#include "transpiler/check/check.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock {

// The set as files, called as `penstock transpile` calls them.
check::RoleFiles FilesOf(const RoleSet& roles);

// CheckRoles with the programs that the set was made of. In Fluid's dialect errors become warnings: such sets
// are made to be compared with Fluid's, defects included. `threads` changes speed alone.
check::CheckReport CheckRoleSet(const OpRegistry& ops, const RoleSet& roles, const Program& main,
                                const Program& startup, ThreadPool* threads = nullptr);

// The first error as a status, for callers that return one; ok if there is none.
Status FirstError(const check::CheckReport& report);

}  // namespace penstock
