#include "framework/runtime/process_id.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
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

// Reads /proc/PID/stat; nullopt if there is no such file or this user may not read it.
std::optional<ProcessStat> StatOf(std::int64_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
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
