// Measures an all-reduce and prints the figures, for all programs of this benchmark.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/collective/all_reducer.h"

namespace penstock::bench {

inline double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double CpuSecondsOfThisProcess() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Repeats the all-reduce for 0.1 s on every rank, so that the system has scheduled each rank on a core and
// mapped its memory. The sum itself tells all ranks when to stop.
inline void WarmUp(AllReducer& group, std::vector<float>& values) {
  constexpr double kSeconds = 0.1;
  const double begin = Seconds();
  do {
    values[0] = Seconds() - begin < kSeconds ? 1.0f : 0.0f;
    group.Sum(values.data(), values.size());
  } while (values[0] > 0);
}

// Returns the median seconds of one operation; all ranks take the same number of samples. cpu_of_one: this
// rank's CPU seconds per operation.
inline double Measure(AllReducer& group, std::size_t bytes, double& cpu_of_one) {
  const std::size_t count = std::max<std::size_t>(1, bytes / sizeof(float));
  const std::size_t samples = std::clamp<std::size_t>((std::size_t{1} << 30) / bytes, 7, 300);
  std::vector<float> values(count, 0.0f);
  WarmUp(group, values);
  std::vector<double> times;
  const double cpu_before = CpuSecondsOfThisProcess();
  for (std::size_t i = 0; i < samples; ++i) {
    const double begin = Seconds();
    group.Sum(values.data(), count);
    times.push_back(Seconds() - begin);
  }
  cpu_of_one = (CpuSecondsOfThisProcess() - cpu_before) / static_cast<double>(samples);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(samples / 2), times.end());
  return times[samples / 2];
}

// Prints one line. `bytes`: of one rank; `seconds`: per operation; `cpu`: mean CPU seconds of a rank.
inline void PrintFigure(std::string_view backend, int ranks, std::size_t bytes, double seconds, double cpu) {
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  std::printf("%s, %d ranks, %zu bytes: %.9f s, %.2f GB/s, %.3f CPU-s/GB\n", std::string(backend).c_str(),
              ranks, bytes, seconds, gigabytes / seconds, cpu / gigabytes);
}

}  // namespace penstock::bench
