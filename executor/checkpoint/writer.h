// Writes one server's parts of a job's checkpoints, and removes old checkpoints.
//
//   Writer writer(SystemDisk(), {.folder = "DIR", .keep = 2});
//   PENSTOCK_RETURN_IF_ERROR(writer.Write({.step = 5, .server = 0, .servers = 2, ...}, values));
//
// Order: the values, their Sync, their folder's Sync, the manifest by a rename, the folder's Sync. So a
// crash leaves a part whole or absent. A checkpoint is removed only when as many newer ones as are kept are
// whole; its manifests go first. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/manifest.h"
#include "framework/base/status.h"
#include "framework/runtime/disk.h"

namespace penstock::checkpoint {

struct WriterOptions {
  std::string folder;
  int keep = 2;  // whole checkpoints that are kept
};

class Writer {
 public:
  Writer(Disk& disk, WriterOptions options) : disk_(disk), options_(std::move(options)) {}

  // `head` without values and bytes. An earlier part of this server for the same step is replaced.
  // kInvalidArgument E-file-write.
  Status Write(Manifest head, const std::vector<Value>& values);
  // Removes what is in the folder of steps after `step`: parts of a run that has ended. Only for steps that
  // are not whole; kFailedPrecondition E-checkpoint-newer: one is.
  Status RemoveAfter(std::uint64_t step);

 private:
  Status WriteValues(const std::string& file, const std::vector<Value>& values, Manifest& manifest);
  Status RemoveOld();
  Status RemoveStep(const std::string& folder);

  Disk& disk_;
  const WriterOptions options_;
};

}  // namespace penstock::checkpoint
