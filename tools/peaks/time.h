// Clocks of measurements.
#pragma once

#include <ctime>

namespace penstock::bench {

inline double SecondsOf(clockid_t clock) {
  std::timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// CPU seconds of the calling thread, which other processes disturb less than the wall-clock time.
inline double ThreadSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }
inline double WallSeconds() { return SecondsOf(CLOCK_MONOTONIC); }

}  // namespace penstock::bench
