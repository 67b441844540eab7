#include "executor/process/launcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

namespace penstock::process {
namespace {

// Returns the descriptor in PENSTOCK_LAUNCH_FD ("descriptor:inode"), or -1 if it is not that pipe: the number
// may have been reused for another file.
int LauncherPipe() {
  const char* text = std::getenv("PENSTOCK_LAUNCH_FD");
  if (text == nullptr) return -1;
  char* end = nullptr;
  const long descriptor = std::strtol(text, &end, 10);
  if (end == text || *end != ':') return -1;
  struct stat facts {};
  if (fstat(static_cast<int>(descriptor), &facts) != 0 || !S_ISFIFO(facts.st_mode)) return -1;
  return std::to_string(facts.st_ino) == end + 1 ? static_cast<int>(descriptor) : -1;
}

}  // namespace

void TellLauncherOfReaction(const Status& why) {
  static std::atomic<bool> told = false;
  const int pipe = LauncherPipe();
  if (pipe < 0 || told.exchange(true)) return;
  std::string line = StrCat("reacted\t", why.message());
  line.resize(std::min<std::size_t>(line.size(), 1000));
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  // The pipe does not block. A failed write is ignored: then the launcher is gone.
  [[maybe_unused]] const auto written = write(pipe, line.data(), line.size());
}

}  // namespace penstock::process
