// Files as a checkpoint needs them, behind a seam so that a simulation can stop the machine between any two
// calls.
//
// What a crash may lose: everything since the last Sync of that file, and a new, renamed or removed name
// until the Sync of its folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock {

class DiskFile {
 public:
  virtual ~DiskFile() = default;
  virtual Status Append(std::string_view bytes) = 0;
  virtual Status Sync() = 0;  // the bytes are on the medium
};

// Thread-safe for different paths. kInvalidArgument E-disk-*: with the system's reason; kDataLoss
// E-disk-read: a medium that does not give back what was written.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual Result<std::unique_ptr<DiskFile>> Create(
      const std::string& path) = 0;  // empty, also if it was there
  virtual Result<std::string> Read(const std::string& path) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;  // replaces `to` at once
  virtual Status Remove(const std::string& path) = 0;
  virtual Status MakeFolder(const std::string& path) = 0;  // and its parents
  virtual Status SyncFolder(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> List(const std::string& folder) = 0;  // names, sorted
};

}  // namespace penstock
