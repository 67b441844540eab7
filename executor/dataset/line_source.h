// The lines of a file, or of a command's output: `sh -c COMMAND < FILE`.
//
//   PipeCommands commands;
//   PENSTOCK_ASSIGN_OR_RETURN(auto lines, LineSource::Open("part-0", "python gen.py", commands));
//   std::string_view line;
//   while (true) {
//     PENSTOCK_ASSIGN_OR_RETURN(const bool more, lines->Next(line));
//     if (!more) break;
//   }
//
// The command's standard error is that of this process. Stop, from any thread, ends all commands and waits.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock::dataset {

// The running commands. Thread-safe.
class PipeCommands {
 public:
  PipeCommands();
  ~PipeCommands();
  PipeCommands(const PipeCommands&) = delete;
  PipeCommands& operator=(const PipeCommands&) = delete;

  // Kills the running commands, permanently: later opens and reads return kCancelled.
  void Stop();
  bool stopped() const { return stopped_; }

 private:
  friend class LineSource;
  Status Start(const std::string& command, int in, int out, pid_t& process);
  // Waits for the process to end; returns the status of waitpid.
  int Wait(pid_t process);
  int event() const { return event_; }  // readable once stopped; -1: out of descriptors, so Open fails

  const int event_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::set<pid_t> running_;
};

class LineSource {
 public:
  // kFailedPrecondition E-dataset-file: the file cannot be read, or the command cannot be started;
  // kCancelled. The command "cat" reads the file directly.
  static Result<std::unique_ptr<LineSource>> Open(const std::string& file, const std::string& command,
                                                  PipeCommands& commands);
  ~LineSource();
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;

  // Sets `line` to the next line, without its newline, valid until the next call; returns false at the end.
  // kFailedPrecondition E-dataset-command: the command has failed; E-dataset-file: the file cannot be read.
  // kInvalidArgument E-dataset-line: a line is longer than kLineBytesMax. kCancelled.
  Result<bool> Next(std::string_view& line);
  // "part-0, line 3", or "part-0, line 3 of what "python gen.py" wrote".
  std::string Place() const;

  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;

 private:
  LineSource(std::string file, std::string command, PipeCommands& commands)
      : file_(std::move(file)), command_(std::move(command)), commands_(commands) {}
  Result<bool> Fill();
  Status End();

  const std::string file_, command_;
  PipeCommands& commands_;
  int descriptor_ = -1;
  bool may_wait_ = true;  // whether a read may block
  pid_t process_ = 0;     // 0: none
  std::string buffer_;
  std::size_t begin_ = 0, searched_ = 0;  // the unread part, and its prefix known to have no newline
  std::int64_t line_ = 0;
  bool at_end_ = false;
};

}  // namespace penstock::dataset
