// A folder of role programs, as `penstock transpile` writes it and Fluid's tools do.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "transpiler/check/check.h"

namespace penstock::tools {

// Reads trainer.pb, trainer_tK.pb, pserver_K.pb and their _startup files from `folder`, each plain or gzipped
// (.pb.gz), in the order of their numbers.
//
// kInvalidArgument: no such folder, no trainer in it, a file that is no program (named).
Result<RoleFiles> ReadRoleFiles(const std::string& folder);

}  // namespace penstock::tools
