#include "tests/dist/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/base/check.h"
#include "framework/base/files.h"

namespace penstock::test {

Process::Process(const std::vector<std::string>& command, std::string log) : log_(std::move(log)) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  PENSTOCK_CHECK(pid_ >= 0, "cannot fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child dies if the test crashes
    const int out = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(out, 1);
    dup2(out, 2);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  handle_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  PENSTOCK_CHECK(handle_ >= 0, "pidfd_open");
}

Process::~Process() {
  if (!code_.has_value()) {
    Signal(SIGKILL);
    Wait(std::chrono::seconds(10));
  }
  close(handle_);
}

std::optional<int> Process::Wait(std::chrono::milliseconds limit) {
  if (code_.has_value()) return code_;
  pollfd waiting{handle_, POLLIN, 0};
  if (poll(&waiting, 1, static_cast<int>(limit.count())) <= 0) return std::nullopt;
  int status = 0;
  waitpid(pid_, &status, 0);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return code_;
}

void Process::Signal(int signal) const { kill(pid_, signal); }

std::string Process::Log() const {
  const Result<std::string> text = ReadFile(log_);
  return text.ok() ? *text : "";
}

}  // namespace penstock::test
