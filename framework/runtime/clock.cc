#include "framework/runtime/clock.h"

#include <ctime>

namespace penstock {
namespace {

class MonotonicClock : public Clock {
 public:
  Nanoseconds Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

class TickClock : public Clock {
 public:
  Nanoseconds Now() const override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
  }
};

}  // namespace

Clock& SystemClock() {
  static MonotonicClock clock;
  return clock;
}

Clock& CoarseClock() {
  static TickClock clock;
  return clock;
}

}  // namespace penstock
