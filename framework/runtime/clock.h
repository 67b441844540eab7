// Time for waits and reports, behind an interface so that a simulation can control it. Results of programs
// never depend on it.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock {

using Nanoseconds = std::chrono::nanoseconds;

// Seconds as reports print them: rounded down.
inline long long WholeSeconds(Nanoseconds span) {
  return std::chrono::duration_cast<std::chrono::seconds>(span).count();
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds Now() const = 0;  // monotonic, since an arbitrary start
};

// The machine's monotonic clock. Never destroyed.
Clock& SystemClock();

// A clock for frequent records: returns the time of the machine's last tick, at most some milliseconds ago. A
// reading takes a few nanoseconds.
Clock& CoarseClock();

// A clock that moves only when told to.
class FakeClock : public Clock {
 public:
  Nanoseconds Now() const override { return now_; }
  void Advance(Nanoseconds by) { now_ += by; }

 private:
  Nanoseconds now_{0};
};

}  // namespace penstock
