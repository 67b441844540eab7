// Checks the result of Transpile before it is used.
//
//   const CheckReport report = CheckRoleSet(AllOps(), roles, main, startup);
//   if (report.errors() > 0) ...   // do not use `roles`
#pragma once

#include "transpiler/check/check.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock {

// The set as files, with the file names of `penstock transpile`.
check::RoleFiles FilesOf(const RoleSet& roles);

// Runs CheckRoles with the programs that the set was made from. In Fluid's dialect errors become warnings,
// because such sets reproduce Fluid's defects for comparison. `threads` only changes the speed.
check::CheckReport CheckRoleSet(const OpRegistry& ops, const RoleSet& roles, const Program& main,
                                const Program& startup, ThreadPool* threads = nullptr);

// The first error of the report as a status; ok if there is none.
Status FirstError(const check::CheckReport& report);

}  // namespace penstock
