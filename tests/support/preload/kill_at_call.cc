// A library for LD_PRELOAD: kills the process before one of the system calls by which it changes a folder.
//
//   LD_PRELOAD=libkill_at_call.so KILL_FOLDER=/tmp/ckpt KILL_AT=7 ...     # before the seventh
//
// A write of which the turn has come writes half of its bytes first.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> calls = 0;
std::array<std::atomic<bool>, 4096> in_folder;  // by file descriptor

bool IsInFolder(const char* path) {
  static const char* const folder = std::getenv("KILL_FOLDER");
  return folder != nullptr && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool IsTurn() {
  static const char* const at = std::getenv("KILL_AT");
  return ++calls == (at == nullptr ? 0 : std::atoi(at));
}

void Count(bool changes) {
  if (changes && IsTurn()) ::kill(::getpid(), SIGKILL);
}

bool IsInFolder(int fd) {
  return fd >= 0 && fd < static_cast<int>(in_folder.size()) && in_folder[static_cast<std::size_t>(fd)];
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int Open(const char* name, const char* path, int flags, mode_t mode) {
  const bool inside = IsInFolder(path);
  Count(inside && (flags & O_CREAT) != 0);
  const int fd = Next<int(const char*, int, ...)>(name)(path, flags, mode);
  if (fd >= 0 && fd < static_cast<int>(in_folder.size())) in_folder[static_cast<std::size_t>(fd)] = inside;
  return fd;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return Open("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return Open("open64", path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  const auto next = Next<ssize_t(int, const void*, size_t)>("write");
  if (IsInFolder(fd) && IsTurn()) {
    static_cast<void>(next(fd, bytes, size / 2));
    ::kill(::getpid(), SIGKILL);
  }
  return next(fd, bytes, size);
}

int fsync(int fd) {
  Count(IsInFolder(fd));
  return Next<int(int)>("fsync")(fd);
}

int rename(const char* from, const char* to) noexcept {
  Count(IsInFolder(to));
  return Next<int(const char*, const char*)>("rename")(from, to);
}

int link(const char* from, const char* to) noexcept {
  Count(IsInFolder(to));
  return Next<int(const char*, const char*)>("link")(from, to);
}

int unlink(const char* path) noexcept {
  Count(IsInFolder(path));
  return Next<int(const char*)>("unlink")(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  Count(IsInFolder(path));
  return Next<int(const char*, mode_t)>("mkdir")(path, mode);
}

int rmdir(const char* path) noexcept {
  Count(IsInFolder(path));
  return Next<int(const char*)>("rmdir")(path);
}

}  // extern "C"
