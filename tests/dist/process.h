// A child process of a test. The destructor kills it, so that no test leaves a process behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace penstock::test {

class Process {
 public:
  // Standard output and standard error go to the file `log`.
  Process(const std::vector<std::string>& command, std::string log);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The exit code, or minus the signal that ended it; nullopt if it still runs after `limit`.
  std::optional<int> Wait(std::chrono::milliseconds limit);
  void Signal(int signal) const;
  pid_t pid() const { return pid_; }
  std::string Log() const;

 private:
  pid_t pid_ = -1;
  int handle_ = -1;  // a pidfd, which allows waiting with a time limit
  std::optional<int> code_;
  const std::string log_;
};

}  // namespace penstock::test
