#include "executor/dataset/line_source.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

extern char** environ;

namespace penstock::dataset {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

std::string Reason(int error) { return std::generic_category().message(error); }

Status Stopped() { return Cancelled("E-dataset-stopped", "the data set is read no further"); }

Status Unreadable(const std::string& file, std::string_view reason) {
  return FailedPrecondition("E-dataset-file", "dataset: ", file, " cannot be read: ", reason);
}

// The set-up of posix_spawn: standard input and output, and the default action of SIGPIPE, which Python
// ignores in this process.
class SpawnPlan {
 public:
  SpawnPlan(int in, int out) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files_, out, STDOUT_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes_, &pipes);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int Spawn(pid_t& process, const std::string& command) {
    std::string shell = "sh", option = "-c", text = command;
    char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
    return posix_spawn(&process, "/bin/sh", &files_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return StrCat("was ended by signal ", WTERMSIG(status));
  return StrCat("ended with exit code ", WEXITSTATUS(status));
}

}  // namespace

PipeCommands::PipeCommands() : event_(eventfd(0, EFD_CLOEXEC)) {}

PipeCommands::~PipeCommands() {
  if (event_ >= 0) close(event_);
}

void PipeCommands::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  const std::uint64_t one = 1;
  if (event_ >= 0) static_cast<void>(write(event_, &one, sizeof one));
  for (const pid_t process : running_) kill(process, SIGKILL);
}

Status PipeCommands::Start(const std::string& command, int in, int out, pid_t& process) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return Stopped();
  SpawnPlan plan(in, out);
  const int error = plan.Spawn(process, command);
  if (error != 0)
    return FailedPrecondition("E-dataset-file", "dataset: /bin/sh cannot be started: ", Reason(error));
  running_.insert(process);
  return OkStatus();
}

// Reaps the process under the lock, so that Stop never kills a process id that has been reused.
int PipeCommands::Wait(pid_t process) {
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  running_.erase(process);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Result<std::unique_ptr<LineSource>> LineSource::Open(const std::string& file, const std::string& command,
                                                     PipeCommands& commands) {
  if (commands.stopped()) return Stopped();
  if (commands.event() < 0) return Unreadable(file, "the process has no file descriptor left");
  std::unique_ptr<LineSource> source(new LineSource(file, command == "cat" ? "" : command, commands));
  const int in = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return Unreadable(file, Reason(errno));
  source->descriptor_ = in;
  struct stat about {};
  if (fstat(in, &about) == 0 && S_ISDIR(about.st_mode)) return Unreadable(file, "it is a folder");
  source->may_wait_ = !source->command_.empty() || !S_ISREG(about.st_mode);
  if (source->command_.empty()) return source;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Unreadable(file, Reason(errno));
  const Status started = commands.Start(command, in, ends[1], source->process_);
  close(ends[1]);
  close(in);
  source->descriptor_ = ends[0];
  PENSTOCK_RETURN_IF_ERROR(started);
  return source;
}

LineSource::~LineSource() {
  if (descriptor_ >= 0) close(descriptor_);
  if (process_ == 0) return;
  kill(process_, SIGKILL);  // its output was read to the end, or is no longer needed
  commands_.Wait(process_);
}

Result<bool> LineSource::Next(std::string_view& line) {
  while (true) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos || (at_end_ && begin_ < buffer_.size())) {
      const std::size_t size = std::min(end, buffer_.size()) - begin_;
      line = std::string_view(buffer_).substr(begin_, size);
      begin_ = searched_ = std::min(begin_ + size + 1, buffer_.size());
      ++line_;
      return true;
    }
    if (at_end_) {
      PENSTOCK_RETURN_IF_ERROR(End());
      return false;
    }
    PENSTOCK_ASSIGN_OR_RETURN(at_end_, Fill());
  }
}

// Reads more bytes into the buffer. Returns true at the end of the input.
Result<bool> LineSource::Fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  searched_ = buffer_.size();
  if (buffer_.size() > kLineBytesMax) {
    ++line_;
    return InvalidArgument("E-dataset-line", "dataset: ", Place(), ": it has more than ", kLineBytesMax,
                           " bytes");
  }
  if (may_wait_) {
    pollfd both[] = {{descriptor_, POLLIN, 0}, {commands_.event(), POLLIN, 0}};
    while (poll(both, 2, -1) < 0 && errno == EINTR) {
    }
  }
  if (commands_.stopped()) return Stopped();
  buffer_.resize(searched_ + kReadBytes);
  ssize_t got = 0;
  while ((got = read(descriptor_, buffer_.data() + searched_, kReadBytes)) < 0 && errno == EINTR) {
  }
  const int error = errno;
  buffer_.resize(searched_ + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return Unreadable(file_, Reason(error));
  return got == 0;
}

Status LineSource::End() {
  if (process_ == 0) return OkStatus();
  const int status = commands_.Wait(process_);
  process_ = 0;
  if (commands_.stopped()) return Stopped();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return OkStatus();
  return FailedPrecondition("E-dataset-command", "dataset: ", file_, ": the pipe command ", Quote(command_),
                            " ", HowItEnded(status), " after ", line_,
                            " lines; what it said stands in this process's errors");
}

std::string LineSource::Place() const {
  return StrCat(file_, ", line ", line_,
                command_.empty() ? "" : StrCat(" of what ", Quote(command_), " wrote"));
}

}  // namespace penstock::dataset
