#include "executor/observe/trace/merge.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>
#include <string_view>

#include "executor/observe/trace/align.h"
#include "executor/observe/trace/perfetto.h"
#include "executor/observe/trace/read.h"
#include "framework/base/strings.h"

namespace penstock::trace {
namespace {

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return false;
    bytes.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
  }
  return true;
}

// Replaces the file as a whole; follows no link.
Status Replace(const std::string& path, std::string_view bytes) {
  const std::string part = StrCat(path, ".part", getpid());
  std::remove(part.c_str());
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  const bool written = file >= 0 && WriteAll(file, bytes);
  if (written && close(file) == 0 && std::rename(part.c_str(), path.c_str()) == 0) return OkStatus();
  const std::string why = std::strerror(errno);
  if (file >= 0 && !written) close(file);
  if (file >= 0) std::remove(part.c_str());
  return InvalidArgument("E-trace-write", "trace: ", path, " cannot be written: ", why);
}

}  // namespace

Result<MergedTrace> MergeTraces(const std::string& folder, const std::string& out) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<ProcessTrace> job, ReadFolder(folder));
  AlignClocks(job);
  MergedTrace merged;
  std::set<std::uint64_t> hosts;
  for (const ProcessTrace& process : job) {
    hosts.insert(process.host);
    MergedTrace::Process& one = merged.processes.emplace_back();
    one.role = process.role;
    one.file = process.file;
    one.left_out = process.dropped + process.invalid;
    for (const Lane& lane : process.lanes) one.events += lane.events.size();
  }
  merged.hosts = hosts.size();

  std::ostringstream bytes;
  WritePerfetto(job, bytes);
  PENSTOCK_RETURN_IF_ERROR(Replace(out, bytes.str()));
  return merged;
}

}  // namespace penstock::trace
