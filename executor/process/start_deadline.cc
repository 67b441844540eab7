#include "executor/process/start_deadline.h"

#include <atomic>

#include "framework/base/environment.h"

namespace penstock::process {
namespace {

std::atomic<double>& Chosen() {
  static std::atomic<double> seconds{0};  // 0: none
  return seconds;
}

Nanoseconds OfSeconds(double seconds) { return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9)); }

}  // namespace

Status SetStartDeadline(double seconds) {
  if (!(seconds >= 1e-3 && seconds <= 1e6)) {
    return InvalidArgument("E-executor-start-s", "start_s is ", seconds,
                           "; it must be a number of seconds from 0.001 to 1000000");
  }
  double before = 0;
  if (Chosen().compare_exchange_strong(before, seconds) || before == seconds) return OkStatus();
  return FailedPrecondition("E-executor-start", "an executor of this process waits ", before,
                            " s for the job's processes to start; another cannot wait ", seconds, " s");
}

Result<Nanoseconds> StartDeadline() {
  if (const double chosen = Chosen(); chosen > 0) return OfSeconds(chosen);
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<double> seconds, env::Number("PENSTOCK_START_S"));
  if (seconds) return OfSeconds(*seconds);
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> fluid_ms, env::Integer("FLAGS_rpc_deadline"));
  return fluid_ms ? Nanoseconds(std::chrono::milliseconds(*fluid_ms)) : kStartDeadline;
}

Result<Nanoseconds> ReconnectDeadline() {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<double> seconds, env::Number("PENSTOCK_RECONNECT_S"));
  return seconds ? OfSeconds(*seconds) : kReconnectDeadline;
}

}  // namespace penstock::process
