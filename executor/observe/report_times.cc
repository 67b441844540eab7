#include "executor/observe/report_times.h"

#include "framework/base/environment.h"

namespace penstock::observe {

Result<Nanoseconds> ReportAfterFromEnvironment() {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<double> seconds, env::Number("PENSTOCK_REPORT_AFTER"));
  return seconds ? Nanoseconds(static_cast<std::int64_t>(*seconds * 1e9)) : kReportAfter;
}

}  // namespace penstock::observe
