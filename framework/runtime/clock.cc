#include "framework/runtime/clock.h"

namespace penstock {
namespace {

class MonotonicClock : public Clock {
 public:
  Nanoseconds Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

}  // namespace

Clock& SystemClock() {
  static MonotonicClock clock;
  return clock;
}

}  // namespace penstock
