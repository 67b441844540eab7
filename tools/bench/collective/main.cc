// All-reduce of floats between processes of this host.
//
//   bench_collective shared_memory|tcp|gloo ranks bytes...     "bench_collective tcp 4 1024 400000000"
//
// shared_memory and tcp are ours, gloo is Gloo's own algorithm. Ranks of shared_memory are each bound to a
// core if there are enough cores, as mpirun does.
//
// Prints for each size the median time, one rank's bytes divided by that time, and the CPU time per GB over
// the data of all ranks.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/base/strings.h"
#include "tools/bench/collective/all_reducer.h"
#include "tools/bench/collective/measure.h"
#include "tools/bench/job/processes.h"

namespace penstock::bench {
namespace {

// An array in memory that all processes share.
double* SharedNumbers(std::size_t count) {
  void* const memory =
      mmap(nullptr, count * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return static_cast<double*>(memory);
}

// Binds each rank to a core if there are enough cores, as mpirun does.
void Bind(int rank, int ranks) {
  if (ranks > static_cast<int>(std::thread::hardware_concurrency())) return;
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(rank, &core);
  sched_setaffinity(0, sizeof(core), &core);  // if it fails, the figure is only slower
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
      if (backend == "shared_memory") Bind(rank, ranks);
      const auto group = backend == "gloo"  ? MakeGlooReducer(self)
                         : backend == "tcp" ? MakeTcpReducer(self)
                                            : MakeSharedMemoryReducer(self);
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
    PrintFigure(backend, ranks, sizes[i], times[i * n], cpu_of_all / ranks);
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
  const bool known = backend == "shared_memory" || backend == "tcp" || backend == "gloo";
  if (!known || ranks < 1 || sizes.empty() || std::count(sizes.begin(), sizes.end(), 0u) > 0) {
    std::fprintf(stderr, "usage: bench_collective shared_memory|tcp|gloo ranks bytes...\n");
    return 2;
  }
  return penstock::bench::Run(backend, ranks, sizes);
}
