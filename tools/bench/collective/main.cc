// All-reduce of floats between processes of this host.
//
//   bench_collective shared_memory|gloo ranks bytes...     "bench_collective shared_memory 4 1024 400000000"
//
// Prints for each size the median time, bytes of one rank by that time, and the processor time of all ranks
// for a GB of all ranks' data.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "framework/base/strings.h"
#include "tools/bench/collective/all_reducer.h"
#include "tools/bench/job/processes.h"

namespace penstock::bench {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSecondsOfThisProcess() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What each rank has used for each size; shared by all processes.
double* SharedNumbers(std::size_t count) {
  void* const memory =
      mmap(nullptr, count * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return static_cast<double*>(memory);
}

// Median seconds of one operation. All ranks take the same number of samples.
double Measure(AllReducer& group, std::size_t bytes, double& cpu_of_one) {
  const std::size_t count = std::max<std::size_t>(1, bytes / sizeof(float));
  const std::size_t samples = std::clamp<std::size_t>((std::size_t{1} << 30) / bytes, 7, 300);
  std::vector<float> values(count, 0.0f);
  for (int i = 0; i < 2; ++i) group.Sum(values.data(), count);
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

int Run(std::string_view backend, int ranks, const std::vector<std::size_t>& sizes) {
  const std::string job = StrCat("bench-collective-", getpid());
  const auto n = static_cast<std::size_t>(ranks);
  double* const cpu = SharedNumbers(sizes.size() * n);
  double* const times = SharedNumbers(sizes.size() * n);
  std::vector<pid_t> processes;
  processes.reserve(n);
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(Fork([&, rank] {
      const BenchRank self{.rank = rank, .ranks = ranks, .job = job};
      const auto group = backend == "gloo" ? MakeGlooReducer(self) : MakeSharedMemoryReducer(self);
      if (group == nullptr) std::exit(3);
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::size_t at = i * n + static_cast<std::size_t>(rank);
        times[at] = Measure(*group, sizes[i], cpu[at]);
      }
    }));
  }
  int worst = 0;
  for (const pid_t process : processes) {
    int end = 0;
    waitpid(process, &end, 0);
    worst = std::max(worst, WIFEXITED(end) ? WEXITSTATUS(end) : 1);
  }
  if (worst == 3) std::fprintf(stderr, "bench_collective: built without Gloo (libgloo-dev)\n");
  if (worst != 0) return worst;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    double cpu_of_all = 0;
    for (std::size_t rank = 0; rank < n; ++rank) cpu_of_all += cpu[i * n + rank];
    const double gigabytes = static_cast<double>(sizes[i]) * 1e-9;
    std::printf("%s, %d ranks, %zu bytes: %.6f s, %.2f GB/s, %.3f CPU-s/GB\n", std::string(backend).c_str(),
                ranks, sizes[i], times[i * n], gigabytes / times[i * n], cpu_of_all / gigabytes / ranks);
  }
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  const std::string_view backend = argc > 1 ? argv[1] : "";
  std::vector<std::size_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 0;
  const bool known = backend == "shared_memory" || backend == "gloo";
  if (!known || ranks < 1 || sizes.empty() || std::count(sizes.begin(), sizes.end(), 0u) > 0) {
    std::fprintf(stderr, "usage: bench_collective shared_memory|gloo ranks bytes...\n");
    return 2;
  }
  return penstock::bench::Run(backend, ranks, sizes);
}
