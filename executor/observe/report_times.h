// The times at which to report a wait: after an initial time, then each time the wait has doubled.
//
//   ReportTimes times(10s);                        // 10 s, 20 s, 40 s ... after the wait began
//   while (!WaitFor(answer, times.next() - waited)) { Report(); times.Pass(); }
#pragma once

#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::observe {

constexpr Nanoseconds kReportAfter = std::chrono::seconds(10);

class ReportTimes {
 public:
  explicit ReportTimes(Nanoseconds first) : next_(first) {}
  Nanoseconds next() const { return next_; }  // since the wait began
  void Pass() { next_ *= 2; }

 private:
  Nanoseconds next_;
};

// PENSTOCK_REPORT_AFTER, in seconds ("0.2"), at least a millisecond; kReportAfter if it is not set.
// kInvalidArgument E-environment.
Result<Nanoseconds> ReportAfterFromEnvironment();

}  // namespace penstock::observe
