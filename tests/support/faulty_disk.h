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
// later changes. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  // Called before each operation that changes something: a slow disk waits here.
  std::function<void()> before_operation = [] {};
  // Replaces bytes of a file, as a fault of the medium does.
  void Damage(const std::string& path, std::size_t at);

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenToAppend(const std::string& path) override;
  bool Exists(const std::string& path) override;
  Result<std::uint64_t> SizeOf(const std::string& path) override;
  Result<std::string> Read(const std::string& path, std::uint64_t offset, std::uint64_t size) override;
  Status Rename(const std::string& from, const std::string& to) override;
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
};

}  // namespace penstock::test
