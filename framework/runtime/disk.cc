#include "framework/runtime/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

Status DiskError(const char* id, const char* did, const std::string& path, int error) {
  return InvalidArgument(id, "cannot ", did, " ", path, ": ", std::strerror(error), " (errno ", error, ")");
}

class SystemFile final : public WritableFile {
 public:
  // `is_own`: no other process writes to the file, so one Append may be several writes.
  SystemFile(int fd, std::string path, bool is_own) : fd_(fd), path_(std::move(path)), is_own_(is_own) {}
  ~SystemFile() override {
    if (fd_ >= 0) ::close(fd_);
  }
  SystemFile(const SystemFile&) = delete;
  SystemFile& operator=(const SystemFile&) = delete;

  Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written =
          ::write(fd_, bytes.data(), is_own_ ? std::min(bytes.size(), kPortion) : bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Error();
      bytes.remove_prefix(static_cast<std::size_t>(written));
      waiting_ += static_cast<std::size_t>(written);
      BeginToStore();
    }
    return OkStatus();
  }
  Status Sync() override { return ::fsync(fd_) == 0 ? OkStatus() : Error(); }
  // Errors of delayed writes appear here.
  Status Close() override { return ::close(std::exchange(fd_, -1)) == 0 ? OkStatus() : Error(); }

 private:
  static constexpr std::size_t kPortion = std::size_t{8} << 20;

  Status Error() const { return DiskError("E-file-write", "write", path_, errno); }
  // The disk works while more is appended, so Sync has little left to wait for. Where the file system does
  // not support this, Sync does it all.
  void BeginToStore() {
    if (waiting_ < kPortion) return;
    const off_t end = ::lseek(fd_, 0, SEEK_CUR);
    const auto size = static_cast<off_t>(std::exchange(waiting_, 0));
    if (end >= size) ::sync_file_range(fd_, end - size, size, SYNC_FILE_RANGE_WRITE);
  }

  int fd_;
  const std::string path_;
  const bool is_own_;
  std::size_t waiting_ = 0;  // bytes that the disk was not asked to store yet
};

class FileToRead {
 public:
  explicit FileToRead(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileToRead() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileToRead(const FileToRead&) = delete;
  FileToRead& operator=(const FileToRead&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

class SystemReadableFile final : public ReadableFile {
 public:
  explicit SystemReadableFile(std::string path) : path_(std::move(path)), file_(path_) {}
  bool is_open() const { return file_.fd() >= 0; }

  Status ReadAt(std::uint64_t offset, std::span<std::byte> bytes) const override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(file_.fd(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return DiskError("E-file-read", "read", path_, errno);
      if (got == 0) {
        return DataLoss("E-file-short", path_, " has ", offset + done, " bytes, and bytes [", offset, ", ",
                        offset, "+", bytes.size(), ") are needed");
      }
      done += static_cast<std::size_t>(got);
    }
    return OkStatus();
  }
  bool ReadIfCached(std::uint64_t offset, std::span<std::byte> bytes) const override {
    const iovec to = {.iov_base = bytes.data(), .iov_len = bytes.size()};
    const ssize_t got = ::preadv2(file_.fd(), &to, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    if (got == static_cast<ssize_t>(bytes.size())) return true;
    ::posix_fadvise(file_.fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes.size()),
                    POSIX_FADV_WILLNEED);
    return false;
  }

 private:
  const std::string path_;
  const FileToRead file_;
};

class OwnDisk final : public Disk {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return Open(path, O_TRUNC);
  }
  Result<std::unique_ptr<WritableFile>> OpenToAppend(const std::string& path) override {
    return Open(path, O_APPEND);
  }
  Result<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override {
    auto file = std::make_unique<SystemReadableFile>(path);
    if (!file->is_open()) return DiskError("E-file-read", "read", path, errno);
    return std::unique_ptr<ReadableFile>(std::move(file));
  }
  bool Exists(const std::string& path) override {
    struct stat info = {};
    return ::lstat(path.c_str(), &info) == 0;
  }
  Result<std::uint64_t> SizeOf(const std::string& path) override {
    struct stat info = {};
    if (::stat(path.c_str(), &info) != 0) return DiskError("E-file-read", "read", path, errno);
    return static_cast<std::uint64_t>(info.st_size);
  }
  Result<std::string> Read(const std::string& path, std::uint64_t offset, std::uint64_t size) override;
  Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return OkStatus();
    return DiskError("E-file-write", "write", to, errno);
  }
  Status Link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) == 0) return OkStatus();
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
      return DiskError("E-file-write", "write", to, errno);
    return Unimplemented("E-file-link", "cannot give ", from, " a second name: ", std::strerror(errno),
                         " (errno ", errno, ")");
  }
  Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return OkStatus();
    return DiskError("E-file-write", "remove", path, errno);
  }
  Status MakeFolder(const std::string& path) override;
  Status RemoveFolder(const std::string& path) override {
    if (::rmdir(path.c_str()) == 0) return OkStatus();
    return DiskError("E-file-write", "remove", path, errno);
  }
  Status SyncFolder(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& folder) override;

 private:
  static Result<std::unique_ptr<WritableFile>> Open(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    if (fd < 0) return DiskError("E-file-write", "write", path, errno);
    return std::unique_ptr<WritableFile>(std::make_unique<SystemFile>(fd, path, (flags & O_APPEND) == 0));
  }
};

Result<std::string> OwnDisk::Read(const std::string& path, std::uint64_t offset, std::uint64_t size) {
  const FileToRead file(path);
  struct stat info = {};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0) return DiskError("E-file-read", "read", path, errno);
  const auto there = static_cast<std::uint64_t>(info.st_size);
  if (offset > there || size > there - offset) {  // before anything is allocated
    return DataLoss("E-file-short", path, " has ", there, " bytes, and bytes [", offset, ", ", offset, "+",
                    size, ") are needed");
  }
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(file.fd(), bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError("E-file-read", "read", path, errno);
    if (got == 0) return DataLoss("E-file-short", path, " became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Status OwnDisk::MakeFolder(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return OkStatus();
  const std::string above = FolderOf(path);
  if (above != path) PENSTOCK_RETURN_IF_ERROR(MakeFolder(above));
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)  // another process may have made it meanwhile
    return DiskError("E-file-write", "make the folder", path, errno);
  if (!std::filesystem::is_directory(path, ignored))
    return DiskError("E-file-write", "make the folder", path, ENOTDIR);
  return SyncFolder(above);
}

// It is no error if this process may not list the folder, or if the file system does not support the call.
Status OwnDisk::SyncFolder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) return OkStatus();
  if (fd < 0) return DiskError("E-file-write", "write", path, errno);
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int error = errno;
  ::close(fd);
  return synced ? OkStatus() : DiskError("E-file-write", "write", path, error);
}

Result<std::vector<std::string>> OwnDisk::List(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) return DiskError("E-file-read", "read", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<std::string> Disk::ReadWhole(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t size, SizeOf(path));
  return Read(path, 0, size);
}

Disk& SystemDisk() {
  static OwnDisk disk;
  return disk;
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status ReplaceFile(Disk& disk, const std::string& path, std::string_view bytes) {
  const std::string beside = path + ".tmp";
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, disk.Create(beside));
  PENSTOCK_RETURN_IF_ERROR(file->Append(bytes));
  PENSTOCK_RETURN_IF_ERROR(file->Sync());
  PENSTOCK_RETURN_IF_ERROR(file->Close());
  PENSTOCK_RETURN_IF_ERROR(disk.Rename(beside, path));
  return disk.SyncFolder(FolderOf(path));
}

}  // namespace penstock
