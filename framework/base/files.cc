#include "framework/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/base/check.h"
#include "framework/base/strings.h"

namespace penstock {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib: adding 16 selects the gzip format
constexpr std::size_t kStepBytes = std::size_t{1} << 20;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  // Errors of delayed writes surface here.
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status ReadError(const std::string& path) {
  return InvalidArgument("E-file-read", "cannot read ", path, ": ", std::strerror(errno));
}
Status WriteError(const std::string& path) {
  return InvalidArgument("E-file-write", "cannot write ", path, ": ", std::strerror(errno));
}
Status TooLarge(std::size_t bytes_max) {
  return InvalidArgument("E-file-size", "holds more than the ", bytes_max, " bytes allowed");
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status WriteInPlace(const std::string& path, std::string_view bytes) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !WriteAll(file.get(), bytes) || !file.Close()) return WriteError(path);
  return OkStatus();
}

// Creates a new file beside `path`, under a name that is not taken. An existing file or link is never opened.
FileDescriptor CreateBeside(const std::string& path, std::string& name) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  constexpr int kTries = 100;
  static std::atomic<unsigned> next{0};
  for (int i = 1;; ++i) {
    name = StrCat(path, ".tmp", ::getpid(), "-", next.fetch_add(1));
    const int fd = ::open(name.c_str(), kFlags, 0666);
    if (fd >= 0 || errno != EEXIST || i == kTries) return FileDescriptor(fd);
  }
}

// Forces the names in the folder of `path` to disk. It is no error if this process may not list the folder
// or if the file system does not support the call.
bool SyncFolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) return errno == EACCES;
  return ::fsync(opened.get()) == 0 || errno == EINVAL || errno == ENOTSUP;
}

// Writes a new file beside `path`, forces it to disk, then moves it over `path` in one step.
Status Replace(const std::string& path, std::string_view bytes) {
  std::string beside;
  FileDescriptor file = CreateBeside(path, beside);
  if (file.get() < 0) return WriteError(path);
  if (WriteAll(file.get(), bytes) && ::fsync(file.get()) == 0 && file.Close() &&
      ::rename(beside.c_str(), path.c_str()) == 0) {
    return SyncFolderOf(path) ? OkStatus() : WriteError(path);
  }
  Status error = WriteError(path);
  ::unlink(beside.c_str());
  return error;
}

// Gives zlib the next portion of input if it has used up the previous one, and all of `step` as room for
// output. Input goes in portions, because zlib counts in 32 bits.
void Feed(z_stream& stream, std::string_view& bytes, std::string& step) {
  if (stream.avail_in == 0) {
    const std::size_t next = std::min<std::size_t>(bytes.size(), kStepBytes);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(next);
    bytes.remove_prefix(next);
  }
  stream.next_out = reinterpret_cast<Bytef*>(step.data());
  stream.avail_out = static_cast<uInt>(step.size());
}

}  // namespace

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string Gzip(std::string_view bytes) {
  z_stream stream = {};
  PENSTOCK_CHECK(
      deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      "zlib has no memory");
  std::string out;
  std::string step(kStepBytes, '\0');
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    Feed(stream, bytes, step);
    result = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(step.data(), step.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

bool LeavesFolder(std::string_view name) {
  if (name.starts_with('/')) return true;
  int depth = 0;
  for (const std::string& part : Split(name, '/')) {
    if (part == "..") {
      if (--depth < 0) return true;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
  }
  return false;
}

Result<std::string> Gunzip(std::string_view bytes, std::size_t bytes_max) {
  bytes_max = std::min(bytes_max, UnpackedBytesMax(bytes.size()));
  z_stream stream = {};
  PENSTOCK_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib has no memory");
  std::string out;
  std::string step(std::min(kStepBytes, bytes_max + 1), '\0');
  Status error;
  while (error.ok()) {
    Feed(stream, bytes, step);
    const int result = inflate(&stream, Z_NO_FLUSH);
    out.append(step.data(), step.size() - stream.avail_out);
    if (out.size() > bytes_max) {
      error = TooLarge(bytes_max);
    } else if (result == Z_STREAM_END) {
      if (stream.avail_in == 0 && bytes.empty()) break;
      if (inflateReset(&stream) != Z_OK)
        error = DataLoss("E-file-gzip", "damaged gzip stream");  // another member
    } else if (result != Z_OK) {
      const bool truncated = result == Z_BUF_ERROR;
      error = DataLoss("E-file-gzip", truncated ? "truncated" : "damaged", " gzip stream after ", out.size(),
                       " unpacked bytes");
    }
  }
  inflateEnd(&stream);
  if (!error.ok()) return error;
  return out;
}

Result<std::string> ReadFile(const std::string& path, const ReadOptions& options) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return ReadError(path);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return ReadError(path);
  std::string bytes;
  if (info.st_size > 0) bytes.reserve(std::min(static_cast<std::size_t>(info.st_size), options.bytes_max));
  std::string step(kStepBytes, '\0');
  while (true) {
    const ssize_t got = ::read(file.get(), step.data(), step.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(path);
    if (got == 0) break;
    bytes.append(step.data(), static_cast<std::size_t>(got));
    if (bytes.size() > options.bytes_max) return TooLarge(options.bytes_max).In(path);
  }
  if (!IsGzip(bytes)) return bytes;
  Result<std::string> unpacked = Gunzip(bytes, options.bytes_max);
  if (!unpacked.ok()) return std::move(unpacked).status().In(path);
  return unpacked;
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  std::string packed;
  if (EndsWith(path, ".gz")) {
    packed = Gzip(bytes);
    bytes = packed;
  }
  struct stat info = {};
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  return special ? WriteInPlace(path, bytes) : Replace(path, bytes);
}

}  // namespace penstock
