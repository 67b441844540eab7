#include "tools/peaks/peaks.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "tools/peaks/time.h"

namespace penstock::bench {
namespace {

constexpr double kLargeBytes = 256e6;  // above the last-level cache of today's machines

double Now(int threads) { return threads == 1 ? ThreadSeconds() : WallSeconds(); }

// Keeps the compiler from leaving out what `memory` points to.
void Use(void* memory) { asm volatile("" : : "g"(memory) : "memory"); }

// The least seconds of one call, over about 20 ms of calls, at least three. Short calls are timed in groups.
template <typename Work>
double LeastSeconds(int threads, const Work& work) {
  work();
  int group = 1;
  double least = std::numeric_limits<double>::infinity();
  const double start = WallSeconds();
  for (int i = 0; i < 3 || WallSeconds() - start < 0.02; ++i) {
    const double began = Now(threads);
    for (int k = 0; k < group; ++k) work();
    const double seconds = (Now(threads) - began) / group;
    least = std::min(least, seconds);
    while (group < 1000 && seconds * group < 20e-6) group *= 2;
  }
  return least;
}

void CopyByTeam(const std::vector<char>& from, std::vector<char>& to, int threads) {
#pragma omp parallel num_threads(threads)
  {
    const std::size_t part = from.size() / static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t begin = part * static_cast<std::size_t>(omp_get_thread_num());
    std::memcpy(to.data() + begin, from.data() + begin, part);
  }
}

}  // namespace

double CopySeconds(double bytes, int threads) {
  const std::size_t size = std::max<std::size_t>(64, static_cast<std::size_t>(bytes / 2));
  std::vector<char> from(size, 1), to(size, 2);
  return LeastSeconds(threads, [&] {
    if (threads == 1) std::memcpy(to.data(), from.data(), size);
    if (threads > 1) CopyByTeam(from, to, threads);
    Use(to.data());
  });
}

double SecondsPerFlop(int threads) {
  constexpr dnnl_dim_t kExtent = 768;
  const std::vector<float> a(kExtent * kExtent, 0.5f), b(kExtent * kExtent, 0.25f);
  std::vector<float> c(kExtent * kExtent);
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const double seconds = LeastSeconds(threads, [&] {
    dnnl_sgemm('N', 'N', kExtent, kExtent, kExtent, 1.0f, a.data(), kExtent, b.data(), kExtent, 0.0f,
               c.data(), kExtent);
    Use(c.data());
  });
  omp_set_num_threads(before);
  return seconds / (2.0 * kExtent * kExtent * kExtent);
}

Peaks MeasurePeaks(int threads) {
  return {.flops = 1 / SecondsPerFlop(threads), .bytes = kLargeBytes / CopySeconds(kLargeBytes, threads)};
}

int DefaultThreads() { return std::max(1, omp_get_max_threads()); }

}  // namespace penstock::bench
