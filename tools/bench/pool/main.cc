// The compute pool (framework/runtime/compute_pool.h) beside OpenMP's teams on two threads: alone, beside a
// process that keeps the last core busy, and two such programs at once.
//
//   bench_pool [WORK_US] [SECONDS]      default: 40 2
//
// A sample is 100 loops, each of WORK_US microseconds in four chunks. Per line: median, p95 and maximum of
// the samples' wall time, and the process's CPU time per sample, all in milliseconds.
#include <omp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "framework/runtime/compute_pool.h"

namespace {

enum class Kind { kOneThread, kOpenMp, kPool };
constexpr std::array<const char*, 3> kNames = {"one thread", "OpenMP", "pool"};
constexpr int kLoops = 100, kChunks = 4, kThreads = 2;

double Now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

volatile float sink;
void Spin(int turns) {
  float a = 1;
  for (int i = 0; i < turns; ++i) a = a * 1.000001f + 1e-7f;
  sink = a;
}

// The turns of Spin that take `us` microseconds.
int TurnsOf(double us) {
  constexpr int kTurns = 100'000;
  double best = 1e9;
  for (int i = 0; i < 100; ++i) {
    const double start = Now(CLOCK_THREAD_CPUTIME_ID);
    Spin(kTurns);
    best = std::min(best, Now(CLOCK_THREAD_CPUTIME_ID) - start);
  }
  return std::max(1, static_cast<int>(us * 1e-3 / best * kTurns));
}

void RunLoop(Kind kind, int turns) {
  switch (kind) {
    case Kind::kOneThread:
      for (int i = 0; i < kChunks; ++i) Spin(turns);
      return;
    case Kind::kOpenMp:
#pragma omp parallel for num_threads(kThreads) schedule(static)
      for (int i = 0; i < kChunks; ++i) Spin(turns);
      return;
    case Kind::kPool:
      penstock::ComputePool::OfThisProcess().ForEach(kChunks, kThreads, [turns](int) { Spin(turns); });
      return;
  }
}

struct Figures {
  double median, p95, max, cpu;
};

Figures Measure(Kind kind, int turns, double seconds) {
  std::vector<double> samples;
  RunLoop(kind, turns);
  const double cpu = Now(CLOCK_PROCESS_CPUTIME_ID), end = Now(CLOCK_MONOTONIC) + seconds * 1e3;
  do {
    const double start = Now(CLOCK_MONOTONIC);
    for (int loop = 0; loop < kLoops; ++loop) RunLoop(kind, turns);
    samples.push_back(Now(CLOCK_MONOTONIC) - start);
  } while (Now(CLOCK_MONOTONIC) < end);
  const std::size_t count = samples.size();
  const double used = Now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  std::sort(samples.begin(), samples.end());
  return {samples[count / 2], samples[count * 95 / 100], samples.back(), used / static_cast<double>(count)};
}

// Runs `programs` processes at once and returns the figures of the slowest one.
Figures InProcesses(int programs, Kind kind, int turns, double seconds) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::abort();
  std::vector<pid_t> children;
  for (int i = 0; i < programs; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const Figures own = Measure(kind, turns, seconds);
    _exit(write(ends[1], &own, sizeof(own)) == sizeof(own) ? 0 : 1);
  }
  Figures worst{};
  for (int i = 0; i < programs; ++i) {
    Figures one{};
    if (read(ends[0], &one, sizeof(one)) != sizeof(one)) std::abort();
    if (i == 0 || one.median > worst.median) worst = one;
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  return worst;
}

pid_t StartBusyProcess() {
  const pid_t child = fork();
  if (child != 0) return child;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &set)) --last;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    sched_setaffinity(0, sizeof(set), &set);
  }
  for (;;) Spin(1000);
}

void Print(const char* where, Kind kind, const Figures& f) {
  std::printf("%-20s %-10s median %7.2f p95 %7.2f max %7.2f cpu %7.2f ms\n", where,
              kNames[static_cast<std::size_t>(kind)], f.median, f.p95, f.max, f.cpu);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double work_us = argc > 1 ? std::atof(argv[1]) : 40, seconds = argc > 2 ? std::atof(argv[2]) : 2;
  if (argc > 3 || !(work_us > 0) || !(seconds > 0)) {
    std::fprintf(stderr, "usage: bench_pool [WORK_US] [SECONDS]\n");
    return 2;
  }
  const int turns = TurnsOf(work_us / kChunks);
  constexpr std::array<Kind, 3> kKinds = {Kind::kOneThread, Kind::kOpenMp, Kind::kPool};
  for (const Kind kind : kKinds) Print("alone", kind, InProcesses(1, kind, turns, seconds));
  for (const Kind kind : kKinds) {
    const pid_t busy = StartBusyProcess();
    const Figures figures = InProcesses(1, kind, turns, seconds);
    kill(busy, SIGKILL);
    waitpid(busy, nullptr, 0);
    Print("beside a busy one", kind, figures);
  }
  for (const Kind kind : kKinds) Print("two at once", kind, InProcesses(2, kind, turns, seconds));
  return 0;
}
