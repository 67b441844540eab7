#include "executor/process/launcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "framework/base/environment.h"

namespace penstock::process {
namespace {

// Returns the descriptor in PENSTOCK_LAUNCH_FD ("descriptor:inode"), or -1 if it is not that pipe: the number
// may have been reused for another file.
int LauncherPipe() {
  const std::string text = env::Text("PENSTOCK_LAUNCH_FD");
  char* end = nullptr;
  const long descriptor = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != ':') return -1;
  struct stat facts {};
  if (fstat(static_cast<int>(descriptor), &facts) != 0 || !S_ISFIFO(facts.st_mode)) return -1;
  return std::to_string(facts.st_ino) == end + 1 ? static_cast<int>(descriptor) : -1;
}

std::atomic<bool> told_reaction = false;  // since the last meeting

void Tell(std::string line) {
  const int pipe = LauncherPipe();
  if (pipe < 0) return;
  line.resize(std::min<std::size_t>(line.size(), 1000));
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  // The pipe does not block. A failed write is ignored: then the launcher is gone.
  [[maybe_unused]] const auto written = write(pipe, line.data(), line.size());
}

}  // namespace

void TellLauncherOfMeeting() {
  Tell("met");
  told_reaction = false;
}

void TellLauncherOfReaction(const Status& why) {
  if (!told_reaction.exchange(true)) Tell(StrCat("reacted\t", why.message()));
}

void TellLauncherThatFixed(const std::string& why) {
  static std::atomic<bool> told = false;
  if (!told.exchange(true)) Tell(StrCat("fixed\t", why));
}

void TellLauncherThatBack(const std::string& what) {
  static std::atomic<bool> told = false;
  if (!told.exchange(true)) Tell(StrCat("back\t", what));
}

}  // namespace penstock::process
