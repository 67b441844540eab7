// Log lines of a process, by glog, on standard error:
//
//   I20261123 05:48:12.123456 4242 pserver.cc:190] pserver 0: waiting 10 s ...
//
//   SetLogRole("trainer 0");                     // once, when the process knows what it is
//   Log(LogSeverity::kWarning, StrCat("refused a connection: ", why));
//   if (LogsDetail(1)) Log(LogSeverity::kInfo, ...);
//
// Respects GLOG_minloglevel (0 info, 1 warning, 2 error) and GLOG_v. glog's log files, signal handlers and
// aborts are switched off. Thread-safe, also in a child after fork.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

enum class LogSeverity { kInfo = 0, kWarning = 1, kError = 2 };

// `text` may have several lines; only the first gets the prefix. `file` and `line` default to those of the
// caller; bindings of other languages pass their own.
void Log(LogSeverity severity, std::string_view text, const char* file = __builtin_FILE(),
         int line = __builtin_LINE());

// Whether messages of this level are logged: GLOG_v is at least `level`.
bool LogsDetail(int level);

// Sets the prefix of each line, such as "pserver 1"; replaces an earlier one.
void SetLogRole(std::string role);
// Sets the prefix unless one is set.
void ProposeLogRole(std::string role);

}  // namespace penstock
