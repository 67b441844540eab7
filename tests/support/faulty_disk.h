// A disk in memory that fails as disks do: it is full, it stops in the middle of an operation, and what was
// not synced is lost.
//
//   FaultyDisk disk(seed);
//   disk.CrashAt(7);            // the operation number 7 and all later ones fail
//   ... write ...
//   disk.Restart();             // what survived; works again
//
// After Restart a file has the bytes of its last Sync and, chosen by the seed, a part of those appended
// later, perhaps with zeros after it. A folder has the names of its last SyncFolder and the first few of its
// later changes. Not thread-safe, but for reads of open files beside one thread that appends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/runtime/disk.h"

namespace penstock::test {

class FaultyDisk : public Disk {
 public:
  explicit FaultyDisk(std::uint64_t seed = 0) : random_(seed) {}

  // The number of operations that have changed something so far, which is the number of the next one.
  int operations() const { return operations_; }
  void CrashAt(int operation) { crash_at_ = operation; }
  bool crashed() const { return crash_at_ && operations_ >= *crash_at_; }
  void Restart();
  // From now on there is room for this many bytes.
  void SetRoom(std::uint64_t bytes) { room_ = bytes; }
  // From now on Link is an error, as in a file system without hard links.
  void RefuseLinks() { refuses_links_ = true; }
  // Called before each operation that changes something: a slow disk waits here.
  std::function<void()> before_operation = [] {};
  // Replaces bytes of a file, as a fault of the medium does; also of one whose name is removed.
  void Damage(const std::string& path, std::size_t at);
  // From now on, reads of files opened by OpenToRead fail with errno 5, or find nothing cached.
  void RefuseReads(bool refuses) { refuses_reads_ = refuses; }
  void SetCached(bool cached) { cached_ = cached; }
  // The files that were opened by OpenToRead and still are open.
  int open_files() const { return *open_files_; }

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenToAppend(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override;
  bool Exists(const std::string& path) override;
  Result<std::uint64_t> SizeOf(const std::string& path) override;
  Result<std::string> Read(const std::string& path, std::uint64_t offset, std::uint64_t size) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Link(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status MakeFolder(const std::string& path) override;
  Status RemoveFolder(const std::string& path) override;
  Status SyncFolder(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& folder) override;

 private:
  struct Content {
    std::string bytes;
    std::size_t synced = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<Content>>;  // null: a folder
  // A change of the names of one folder: removes the first names, then adds the others.
  struct Change {
    std::vector<std::string> removed;
    Names added;
  };
  class File;
  class OpenFile;

  bool Begin();  // counts an operation; false: it fails
  Status Failed(const std::string& path) const;
  void Apply(const std::string& folder, Change change);
  static void ApplyTo(Names& names, const Change& change);

  std::mt19937_64 random_;
  Names now_, durable_;
  std::map<std::string, std::vector<Change>> unsynced_;  // by folder
  int operations_ = 0;
  std::optional<int> crash_at_;
  std::optional<std::uint64_t> room_;
  bool refuses_links_ = false, refuses_reads_ = false, cached_ = true;
  std::shared_ptr<int> open_files_ = std::make_shared<int>(0);
  mutable std::mutex content_;  // guards the bytes of files
  Names opened_;                // the last files of these names that were opened to be read
};

}  // namespace penstock::test
