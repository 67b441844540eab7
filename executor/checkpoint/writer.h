// Writes one server's parts of a job's checkpoints, and removes old checkpoints.
//
//   Writer writer(SystemDisk(), {.folder = "DIR", .keep = 2});
//   PENSTOCK_RETURN_IF_ERROR(writer.Write({.step = 5, .server = 0, .servers = 2, ...}, values));
//
// Order: the values, their Sync, their folder's Sync, the manifest by a rename, the folder's Sync. So a
// crash leaves a part whole or absent. A checkpoint is removed only when as many newer ones as are kept are
// whole; its manifests go first.
//
// Rows are saved incrementally: Value::Rows::kBase has all of them, kChanges those that have changed since
// the Write before. Their files are linked into each later step's folder, so a checkpoint needs no other
// one, and removing one takes nothing from those that follow.
//
// A table's rows may come in portions, before Write, while others are still being copied:
//
//   PENSTOCK_RETURN_IF_ERROR(writer.Append(head, rows));     // several values of the same name
//   PENSTOCK_RETURN_IF_ERROR(writer.Write(head, the_others));
//
// Not thread-safe, except that TakesChanges may be called during Append.
#pragma once

#include <map>
#include <memory>
#include <optional>
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
  Writer(Disk& disk, WriterOptions options);
  ~Writer();

  // Begins the part of head.step, if it is not begun, and writes the value. After an error, Write returns it.
  Status Append(const Manifest& head, const Value& value);
  // `head` without values and bytes. A part of an earlier run for the same step is replaced. One of this run
  // remains, if it is whole: what is given is dropped, and the next part is a base. kInvalidArgument
  // E-file-write.
  Status Write(Manifest head, const std::vector<Value>& values);
  // Whether the next Write may have rows of kChanges: there is a base of this Writer, the changes since are
  // at most half as long, and the file system has links.
  bool TakesChanges() const;
  // Removes what is in the folder of steps after `step`: parts of a run that has ended. Only for steps that
  // are not whole; kFailedPrecondition E-checkpoint-newer: one is.
  Status RemoveAfter(std::uint64_t step);

 private:
  struct Part;  // that is being written
  // What the next part may continue.
  struct Last {
    std::string folder;
    std::vector<RowsFile> files;  // the base, then changes
    std::map<std::string, std::vector<Record>> records;
  };
  Status Begin(const Manifest& head);
  bool HasPart(const std::string& folder, const Manifest& head) const;
  Status Add(const Value& value);
  Status AddRows(const Value& value, Part& part);
  Status BeginRows(bool changes, Part& part);
  Status FinishFiles(Part& part, Manifest& head);
  Status LinkLast(const std::string& folder);
  Status ProbeLinks(const std::string& file);
  Status RemoveRows(const std::string& folder, const Manifest& head);
  Status RemoveOld();
  Status RemoveStep(const std::string& folder);

  Disk& disk_;
  const WriterOptions options_;
  std::unique_ptr<Part> part_;
  std::optional<std::uint64_t> kept_;  // instead of part_: the step whose part was there
  Status failed_;                      // of part_
  std::optional<Last> last_;
  std::optional<bool> has_links_;  // the file system; nullopt: not known yet
};

}  // namespace penstock::checkpoint
