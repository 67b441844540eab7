#include "tests/support/faulty_disk.h"

#include <algorithm>
#include <cstring>

namespace penstock::test {

class FaultyDisk::File : public WritableFile {
 public:
  File(FaultyDisk& disk, std::string path, std::shared_ptr<Content> content)
      : disk_(disk), path_(std::move(path)), content_(std::move(content)) {}

  Status Append(std::string_view bytes) override {
    const bool begun = disk_.Begin();
    const std::lock_guard lock(disk_.content_);
    if (!begun) {  // torn
      bytes = bytes.substr(0, disk_.random_() % (bytes.size() + 1));
    } else if (disk_.room_ && *disk_.room_ < bytes.size()) {
      bytes = bytes.substr(0, *disk_.room_);
      content_->bytes += bytes;
      disk_.room_ = 0;
      return InvalidArgument("E-file-write", "cannot write ", path_, ": No space left on device (errno 28)");
    }
    if (disk_.room_) *disk_.room_ -= bytes.size();
    if (begun || !std::exchange(torn_, true)) content_->bytes += bytes;
    return begun ? OkStatus() : disk_.Failed(path_);
  }
  Status Sync() override {
    if (!disk_.Begin()) return disk_.Failed(path_);
    content_->synced = content_->bytes.size();
    return OkStatus();
  }
  Status Close() override { return disk_.crashed() ? disk_.Failed(path_) : OkStatus(); }

 private:
  FaultyDisk& disk_;
  const std::string path_;
  const std::shared_ptr<Content> content_;
  bool torn_ = false;
};

class FaultyDisk::OpenFile : public ReadableFile {
 public:
  OpenFile(const FaultyDisk& disk, std::string path, std::shared_ptr<Content> content)
      : disk_(disk), path_(std::move(path)), content_(std::move(content)), open_(disk.open_files_) {
    ++*open_;
  }
  ~OpenFile() override { --*open_; }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  Status ReadAt(std::uint64_t offset, std::span<std::byte> bytes) const override {
    if (disk_.refuses_reads_)
      return InvalidArgument("E-file-read", "cannot read ", path_, ": Input/output error (errno 5)");
    const std::lock_guard lock(disk_.content_);
    const std::size_t there = content_->bytes.size();
    if (offset > there || bytes.size() > there - offset)
      return DataLoss("E-file-short", path_, " has ", there, " bytes");
    std::memcpy(bytes.data(), content_->bytes.data() + offset, bytes.size());
    return OkStatus();
  }
  bool ReadIfCached(std::uint64_t offset, std::span<std::byte> bytes) const override {
    return disk_.cached_ && ReadAt(offset, bytes).ok();
  }

 private:
  const FaultyDisk& disk_;
  const std::string path_;
  const std::shared_ptr<Content> content_;
  const std::shared_ptr<int> open_;
};

bool FaultyDisk::Begin() {
  before_operation();
  if (crashed()) return false;
  ++operations_;
  return !crashed();
}

Status FaultyDisk::Failed(const std::string& path) const {
  return InvalidArgument("E-file-write", "cannot write ", path, ": the disk has stopped");
}

void FaultyDisk::ApplyTo(Names& names, const Change& change) {
  for (const std::string& name : change.removed) names.erase(name);
  for (const auto& [name, content] : change.added) names[name] = content;
}

void FaultyDisk::Apply(const std::string& folder, Change change) {
  ApplyTo(now_, change);
  unsynced_[folder].push_back(std::move(change));
}

void FaultyDisk::Restart() {
  for (const auto& [folder, changes] : unsynced_) {
    const std::size_t kept = random_() % (changes.size() + 1);
    for (std::size_t i = 0; i < kept; ++i) ApplyTo(durable_, changes[i]);
  }
  unsynced_.clear();
  std::erase_if(durable_, [&](const auto& entry) {  // its folder was lost
    const std::string folder = FolderOf(entry.first);
    return folder != "." && folder != "/" && !durable_.contains(folder);
  });
  for (const auto& [name, content] : durable_) {
    if (content == nullptr) continue;
    const std::size_t later = content->bytes.size() - content->synced;
    const std::size_t kept = random_() % (later + 1);
    content->bytes.resize(content->synced + kept);
    if (random_() % 2 == 0) content->bytes.resize(content->synced + later, '\0');
    content->synced = content->bytes.size();
  }
  now_ = durable_;
  crash_at_.reset();
}

void FaultyDisk::Damage(const std::string& path, std::size_t at) {
  const Names& names = now_.contains(path) ? now_ : opened_;
  char& byte = names.at(path)->bytes.at(at);
  byte = static_cast<char>(byte ^ 0x40);
}

Result<std::unique_ptr<WritableFile>> FaultyDisk::Create(const std::string& path) {
  if (!Begin()) return Failed(path);
  auto content = std::make_shared<Content>();
  Apply(FolderOf(path), {.removed = {}, .added = {{path, content}}});
  return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, path, content));
}

Result<std::unique_ptr<WritableFile>> FaultyDisk::OpenToAppend(const std::string& path) {
  const auto found = now_.find(path);
  if (found == now_.end()) return Create(path);
  if (!Begin()) return Failed(path);
  return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, path, found->second));
}

Result<std::unique_ptr<ReadableFile>> FaultyDisk::OpenToRead(const std::string& path) {
  const auto found = now_.find(path);
  if (found == now_.end() || found->second == nullptr)
    return InvalidArgument("E-file-read", "cannot read ", path, ": No such file or directory (errno 2)");
  opened_[path] = found->second;
  return std::unique_ptr<ReadableFile>(std::make_unique<OpenFile>(*this, path, found->second));
}

bool FaultyDisk::Exists(const std::string& path) { return now_.contains(path); }

Result<std::uint64_t> FaultyDisk::SizeOf(const std::string& path) {
  const auto found = now_.find(path);
  if (found == now_.end() || found->second == nullptr)
    return InvalidArgument("E-file-read", "cannot read ", path, ": No such file or directory (errno 2)");
  return std::uint64_t{found->second->bytes.size()};
}

Result<std::string> FaultyDisk::Read(const std::string& path, std::uint64_t offset, std::uint64_t size) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t there, SizeOf(path));
  if (offset > there || size > there - offset)
    return DataLoss("E-file-short", path, " has ", there, " bytes");
  return now_.at(path)->bytes.substr(offset, size);
}

Status FaultyDisk::Rename(const std::string& from, const std::string& to) {
  if (!Begin()) return Failed(to);
  Apply(FolderOf(to), {.removed = {from}, .added = {{to, now_.at(from)}}});
  return OkStatus();
}

Status FaultyDisk::Link(const std::string& from, const std::string& to) {
  if (!Begin()) return Failed(to);
  if (refuses_links_)
    return Unimplemented("E-file-link", "cannot give ", from, " a second name: Operation not supported");
  if (!now_.contains(from) || now_.contains(to))
    return InvalidArgument("E-file-write", "cannot write ", to, ": there is no ", from, ", or it exists");
  Apply(FolderOf(to), {.removed = {}, .added = {{to, now_.at(from)}}});
  return OkStatus();
}

Status FaultyDisk::Remove(const std::string& path) {
  if (!Begin()) return Failed(path);
  if (!now_.contains(path))
    return InvalidArgument("E-file-write", "cannot remove ", path, ": No such file or directory (errno 2)");
  Apply(FolderOf(path), {.removed = {path}, .added = {}});
  return OkStatus();
}

Status FaultyDisk::MakeFolder(const std::string& path) {
  if (path == "." || path == "/" || now_.contains(path)) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(MakeFolder(FolderOf(path)));
  if (!Begin()) return Failed(path);
  Apply(FolderOf(path), {.removed = {}, .added = {{path, nullptr}}});
  return SyncFolder(FolderOf(path));
}

Status FaultyDisk::RemoveFolder(const std::string& path) { return Remove(path); }

Status FaultyDisk::SyncFolder(const std::string& path) {
  if (!Begin()) return Failed(path);
  for (const Change& change : std::exchange(unsynced_[path], {})) ApplyTo(durable_, change);
  return OkStatus();
}

Result<std::vector<std::string>> FaultyDisk::List(const std::string& folder) {
  if (folder != "." && !now_.contains(folder))
    return InvalidArgument("E-file-read", "cannot read ", folder, ": No such file or directory (errno 2)");
  std::vector<std::string> names;
  for (const auto& [path, content] : now_) {
    if (FolderOf(path) == folder) names.push_back(path.substr(path.rfind('/') + 1));
  }
  return names;
}

}  // namespace penstock::test
