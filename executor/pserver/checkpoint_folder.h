// The folder in which a server saves tables and slices of parameters when a trainer requests it
// (checkpoint_notify). The trainer can only name files inside it.
//
//   CheckpointFolder folder("/data/job7");
//   PENSTOCK_ASSIGN_OR_RETURN(const std::string path, folder.Claim("model/t_0"));   // "/data/job7/model/t_0"
//   ... write it ...
//   PENSTOCK_RETURN_IF_ERROR(folder.Wrote(path));
//
// Files that servers have written there, this one or others, now or in earlier jobs, may be overwritten; all
// other files are protected. The names are kept in the folder's file .penstock_saved, one per line.
#pragma once

#include <set>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/disk.h"

namespace penstock::pserver {

// Not thread-safe.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string folder, Disk& disk = SystemDisk())
      : folder_(std::move(folder)), disk_(disk) {}

  // The path of a file by its name in the folder.
  // kInvalidArgument E-server-save-path: an absolute path, one that leaves the folder, or not a file name.
  // kFailedPrecondition E-server-save-exists: a file that no server has written.
  Result<std::string> Claim(const std::string& name);
  // Records that the claimed path may be overwritten later. kInvalidArgument E-file-write.
  Status Wrote(const std::string& path) const;

 private:
  bool WasWritten(const std::string& name) const;

  const std::string folder_;
  Disk& disk_;
  std::set<std::string> claimed_;  // by this process
};

}  // namespace penstock::pserver
