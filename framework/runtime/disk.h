// The file system, for code whose files must survive a crash. Tests replace it by one that tears, loses and
// refuses writes (tests/support/faulty_disk.h).
//
//   PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, disk.Create("dir/part"));
//   PENSTOCK_RETURN_IF_ERROR(file->Append(bytes));
//   PENSTOCK_RETURN_IF_ERROR(file->Sync());
//   PENSTOCK_RETURN_IF_ERROR(file->Close());
//   PENSTOCK_RETURN_IF_ERROR(disk.SyncFolder("dir"));     // now the file survives a crash
//
// After a crash a file has the bytes that it had at its last Sync, and perhaps more; a folder has the names
// that it had at its last SyncFolder, or some of the later changes. A Rename happens whole or not at all.
//
// Errors name the path, the system's reason and its number: kInvalidArgument E-file-write, E-file-read.
// Thread-safe for different paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock {

// A file that is written from one end to the other. The destructor closes it and ignores errors.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(std::string_view bytes) = 0;
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

// A file that is read at any position; its bytes can be read as long as it is open, even if its name is
// removed. Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Reads bytes.size() bytes from `offset` on. kDataLoss E-file-short: the file ends before.
  virtual Status ReadAt(std::uint64_t offset, std::span<std::byte> bytes) const = 0;
  // Does the same if it need not wait for a device; otherwise the system begins to read them, and the result
  // is false: then use ReadAt.
  virtual bool ReadIfCached(std::uint64_t offset, std::span<std::byte> bytes) const = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;

  // A new file; an existing one is emptied. A symbolic link is not followed.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Writes at the end of the file, which is created if it does not exist. Each Append is one write, so
  // processes that append to one file do not mix their bytes. A symbolic link is not followed.
  virtual Result<std::unique_ptr<WritableFile>> OpenToAppend(const std::string& path) = 0;
  virtual Result<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  virtual Result<std::uint64_t> SizeOf(const std::string& path) = 0;
  // `size` bytes of the file from `offset` on. kDataLoss E-file-short: it ends before.
  virtual Result<std::string> Read(const std::string& path, std::uint64_t offset, std::uint64_t size) = 0;
  // Replaces `to`, which is in the same folder.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // A second name for the file `from`; its bytes are there until all its names are removed. `to` must not
  // exist. kUnimplemented E-file-link: the file system has no such names.
  virtual Status Link(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
  // And those above it that do not exist; all of them survive a crash once this has returned.
  virtual Status MakeFolder(const std::string& path) = 0;
  virtual Status RemoveFolder(const std::string& path) = 0;  // an empty one
  virtual Status SyncFolder(const std::string& path) = 0;
  // The names in the folder, sorted.
  virtual Result<std::vector<std::string>> List(const std::string& folder) = 0;

  Result<std::string> ReadWhole(const std::string& path);
};

// The process's file system.
Disk& SystemDisk();

// The folder of a path: "a/b" for "a/b/c", "." for "c".
std::string FolderOf(const std::string& path);

// Replaces the file at `path`: after a crash it has either its old content or all of `bytes`, and the new
// content once this has returned. Uses the name `path` + ".tmp". The folder must exist.
Status ReplaceFile(Disk& disk, const std::string& path, std::string_view bytes);

}  // namespace penstock
