// A folder of role programs, as `penstock transpile` writes it and Fluid's tools do.
#pragma once

#include <set>
#include <string>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"
#include "transpiler/check/check.h"

namespace penstock::tools {

// Reads trainer.pb, trainer_tK.pb, pserver_K.pb and their _startup files from `folder`, each plain or gzipped
// (.pb.gz), in the order of their numbers.
//
// kInvalidArgument: no such folder, no trainer in it, a file that is no program (named).
Result<check::RoleFiles> ReadRoleFiles(const std::string& folder, ThreadPool* threads = nullptr);

// Removes from `folder` the role programs that are not among `kept`, names of files: those of a set that
// stood there before would be read with the new one. Other files are left alone. E-roles-folder.
Status RemoveOtherRoleFiles(const std::string& folder, const std::set<std::string>& kept);

}  // namespace penstock::tools
