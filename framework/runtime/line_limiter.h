// Limits log lines that unknown peers can cause: passes on a few per minute and counts the others.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "framework/base/strings.h"
#include "framework/runtime/clock.h"

namespace penstock {

// Thread-safe.
class LineLimiter {
 public:
  LineLimiter(std::function<void(const std::string&)> report, Clock* clock)
      : report_(std::move(report)), clock_(*clock) {}

  void Report(const std::string& line) {
    const std::lock_guard lock(mutex_);
    MoveOn();
    if (++lines_ <= kLinesMax) {
      report_(line);
    } else {
      ++left_out_;
    }
  }
  // Reports the number of omitted lines once their minute is over.
  void Tick() {
    const std::lock_guard lock(mutex_);
    MoveOn();
  }

 private:
  static constexpr int kLinesMax = 10;
  static constexpr Nanoseconds kWindow = std::chrono::minutes(1);

  void MoveOn() {
    const Nanoseconds now = clock_.Now();
    if (lines_ == 0) began_ = now;
    if (now - began_ < kWindow) return;
    if (left_out_ > 0)
      report_(StrCat(left_out_, " more lines of this kind in the minute before were left out"));
    lines_ = left_out_ = 0;
    began_ = now;
  }

  const std::function<void(const std::string&)> report_;
  Clock& clock_;
  std::mutex mutex_;
  Nanoseconds began_{0};
  int lines_ = 0, left_out_ = 0;
};

}  // namespace penstock
