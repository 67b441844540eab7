// Log lines of a process, by glog, on standard error:
//
//   I20261123 05:48:12.123456 4242 pserver.cc:190] pserver 0: waiting 10 s ...
//
//   SetLogRole("trainer 0");                     // once, when the process knows what it is
//   Log(LogSeverity::kWarning, StrCat("refused a connection: ", why));
//   if (LogsDetail(1)) Log(LogSeverity::kInfo, ...);
//
// GLOG_minloglevel (0 info, 1 warning, 2 error) and GLOG_v are heeded. Of glog's other habits none is left:
// it writes no files, handles no signals and ends no process. Thread-safe; a child of fork may log too.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

enum class LogSeverity { kInfo = 0, kWarning = 1, kError = 2 };

// `text` may have several lines; only the first gets the prefix.
// The place of the call is that of the caller; another language gives its own.
void Log(LogSeverity severity, std::string_view text, const char* file = __builtin_FILE(),
         int line = __builtin_LINE());

// Whether details of this level are wanted: GLOG_v is at least `level`.
bool LogsDetail(int level);

// What each line begins with, such as "pserver 1"; replaces what was set before.
void SetLogRole(std::string role);
// Sets it unless there is one.
void ProposeLogRole(std::string role);

}  // namespace penstock
