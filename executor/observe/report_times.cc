#include "executor/observe/report_times.h"

#include <cstdlib>

namespace penstock::observe {

Nanoseconds ReportAfterFromEnvironment() {
  const char* text = std::getenv("PENSTOCK_REPORT_AFTER");
  if (text == nullptr) return kReportAfter;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  const bool is_number = end != text && *end == '\0' && seconds >= 1e-3 && seconds <= 1e6;
  return is_number ? Nanoseconds(static_cast<std::int64_t>(seconds * 1e9)) : kReportAfter;
}

}  // namespace penstock::observe
