// Reads a folder of role programs, as `penstock transpile` and Fluid's tools write it.
#pragma once

#include <set>
#include <string>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"
#include "transpiler/check/check.h"

namespace penstock::tools {

// Reads trainer.pb, trainer_tK.pb, pserver_K.pb and their _startup files from `folder`, each plain or gzipped
// (.pb.gz), in order of their numbers.
//
// kInvalidArgument: the folder does not exist or contains no trainer, or a file, which the error names, is
// not a program.
Result<check::RoleFiles> ReadRoleFiles(const std::string& folder, ThreadPool* threads = nullptr);

// Removes all role programs from `folder` whose file names are not in `kept`, so that a later read does not
// mix an older set with the new one. Does not touch other files. E-roles-folder.
Status RemoveOtherRoleFiles(const std::string& folder, const std::set<std::string>& kept);

}  // namespace penstock::tools
