// Time for waits and reports, behind a seam so that a simulation can own it. Programs' results never depend
// on it.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock {

using Nanoseconds = std::chrono::nanoseconds;

// As reports give a wait: rounded down.
inline long long WholeSeconds(Nanoseconds span) {
  return std::chrono::duration_cast<std::chrono::seconds>(span).count();
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds Now() const = 0;  // monotonic, since an arbitrary start
};

// The machine's monotonic clock; lives forever.
Clock& SystemClock();

// The same time as of the machine's last tick, some milliseconds ago at most: a reading takes a few
// nanoseconds. For records that may be many.
Clock& CoarseClock();

// A clock that stands until it is told to move.
class FakeClock : public Clock {
 public:
  Nanoseconds Now() const override { return now_; }
  void Advance(Nanoseconds by) { now_ += by; }

 private:
  Nanoseconds now_{0};
};

}  // namespace penstock
