#include "framework/runtime/process_id.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/strings.h"

namespace penstock {
namespace {

// The boot of the kernel and the pid namespace: within both, a number belongs to one process at a time.
std::string HostOfProcesses() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> space{};
  const ssize_t length = readlink("/proc/self/ns/pid", space.data(), space.size());
  return length <= 0 || boot.empty()
             ? std::string()
             : StrCat(boot, "/", std::string(space.data(), static_cast<std::size_t>(length)));
}

struct ProcessStat {
  char state = 0;
  std::string start;  // ticks since the boot
};

// The text of a small file of /proc, which arrives in one read. Empty if it cannot be opened or read: the
// process may end in between (ESRCH), where a file stream's iterator would throw.
std::string SmallFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 4096> bytes;
  const ssize_t length = read(file, bytes.data(), bytes.size());
  close(file);
  return length <= 0 ? std::string() : std::string(bytes.data(), static_cast<std::size_t>(length));
}

// Reads /proc/PID/stat; nullopt if there is no such process or this user may not read its file.
std::optional<ProcessStat> StatOf(std::int64_t pid) {
  const std::string text = SmallFile(StrCat("/proc/", pid, "/stat"));
  const std::size_t name_end = text.rfind(')');  // the second field, which may contain spaces
  if (name_end == std::string::npos) return std::nullopt;
  constexpr std::size_t kState = 0, kStart = 19;  // among the fields after the name
  const std::vector<std::string> fields = Split(text.substr(name_end + 2), ' ');
  if (fields.size() <= kStart || fields[kState].empty()) return std::nullopt;
  return ProcessStat{.state = fields[kState].front(), .start = fields[kStart]};
}

}  // namespace

std::string DescribeThisProcess() {
  const std::string host = HostOfProcesses();
  const std::optional<ProcessStat> stat = StatOf(getpid());
  return host.empty() || !stat ? std::string() : StrCat(host, " ", getpid(), " ", stat->start);
}

ProcessState StateOfProcess(std::string_view description) {
  const std::vector<std::string> fields = Split(std::string(description), ' ');
  if (fields.size() != 3 || fields[0].empty() || fields[0] != HostOfProcesses())
    return ProcessState::kUnknown;
  std::int64_t pid = 0;
  const char* const end = fields[1].data() + fields[1].size();
  if (std::from_chars(fields[1].data(), end, pid).ptr != end || pid <= 0) return ProcessState::kUnknown;
  if (const std::optional<ProcessStat> stat = StatOf(pid)) {
    const bool over = stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
    return over || stat->start != fields[2] ? ProcessState::kEnded : ProcessState::kRuns;
  }
  // The file is hidden from other users on some systems, the number is not.
  const bool none = kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
  return none ? ProcessState::kEnded : ProcessState::kUnknown;
}

}  // namespace penstock
