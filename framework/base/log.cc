#include "framework/base/log.h"

#include <glog/logging.h>
#include <pthread.h>

#include <mutex>

namespace penstock {
namespace {

// The mutex is held for each line and during a fork, so that a child gets our state and glog's locks in a
// consistent state. Never destroyed, because threads may log while the process ends.
struct State {
  std::mutex mutex;
  std::string role;
};

State& TheState() {
  static auto* state = [] {
    auto* made = new State();
    pthread_atfork([] { TheState().mutex.lock(); }, [] { TheState().mutex.unlock(); },
                   [] { TheState().mutex.unlock(); });
    // A process that uses glog itself has set it up already.
    if (!google::IsGoogleLoggingInitialized()) {
      FLAGS_logtostderr = true;  // no files
      google::InitGoogleLogging("penstock");
    }
    return made;
  }();
  return *state;
}

}  // namespace

void Log(LogSeverity severity, std::string_view text, const char* file, int line) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  google::LogMessage message(file, line, static_cast<int>(severity));
  if (!state.role.empty()) message.stream() << state.role << ": ";
  message.stream() << text;
}

bool LogsDetail(int level) { return FLAGS_v >= level; }

void SetLogRole(std::string role) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.role = std::move(role);
}

void ProposeLogRole(std::string role) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  if (state.role.empty()) state.role = std::move(role);
}

}  // namespace penstock
