#include "executor/process/diagnosis.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "executor/observe/receipt.h"
#include "framework/base/environment.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"

namespace penstock::process {
namespace {

// The role as part of a file name: "trainer 0" -> "trainer.0", "pserver 10.0.0.1:6174" ->
// "pserver.10.0.0.1_6174".
std::string FileNameOf(const std::string& role) {
  std::string name = role;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (c == ' ') c = '.';
    if (!plain && c != '.') c = '_';
  }
  return name;
}

}  // namespace

Diagnosis& Diagnosis::OfThisProcess() {
  static std::mutex mutex;
  static Diagnosis* made = nullptr;  // never destroyed: threads may record until the process ends
  static pid_t made_by = 0;
  const std::lock_guard lock(mutex);
  if (made_by != getpid()) made = new Diagnosis();
  made_by = getpid();
  return *made;
}

Diagnosis::Diagnosis()
    : recorder_(observe::FlightMemory::FromEnvironment()),
      observer_(recorder_, CoarseClock(), trace::Tracer::OfThisProcess()) {}

void Diagnosis::Begin(const std::string& role) {
  const std::lock_guard lock(mutex_);
  if (!role_.empty()) return;
  role_ = role;
  if (observer_.tracer() != nullptr) observer_.tracer()->SetRole(role);
  StartMetrics();
}

void Diagnosis::StartMetrics() {
  // An invalid value is an error of env::CheckAll, before this call.
  const Result<std::optional<std::int64_t>> port = env::Integer("PENSTOCK_METRICS");
  if (!port.ok() || !*port) return;
  auto started = observe::MetricsServer::Start(static_cast<std::uint16_t>(**port), [this, role = role_] {
    return observe::Exposition(role, observer_.Now());
  });
  if (!started.ok()) return Log(LogSeverity::kWarning, started.status().ToString());
  metrics_ = *std::move(started);
  const std::string address = StrCat("127.0.0.1:", metrics_->port());
  Log(LogSeverity::kInfo, StrCat("metrics are at http://", address, "/metrics"));
  Write(StrCat("metrics.", FileNameOf(role_)), StrCat(address, "\n"));
}

void Diagnosis::End() {
  const std::lock_guard lock(mutex_);
  if (role_.empty() || std::exchange(ended_, true)) return;
  const observe::Counts counts = observer_.Now();
  if (counts.peers.empty()) return;
  Log(LogSeverity::kInfo, observe::ReceiptLine(counts));
  Write(StrCat("receipt.", FileNameOf(role_), ".json"), observe::ReceiptJson(role_, counts));
}

// Replaces the file atomically, so a reader never sees a part of it. Follows no link out of the folder.
void Diagnosis::Write(const std::string& name, const std::string& text) const {
  const std::string folder = env::Text("PENSTOCK_LOG_DIR");
  if (folder.empty()) return;
  const std::string path = StrCat(folder, "/", name), part = StrCat(path, ".part", getpid());
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool closed = file >= 0 && close(file) == 0;
  if (written && closed && std::rename(part.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  if (file >= 0) std::remove(part.c_str());
  Log(LogSeverity::kWarning, StrCat(path, " could not be written: ", why));
}

}  // namespace penstock::process
