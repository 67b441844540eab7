// bench_transpile --params 1000 --pservers 4: prints one line of JSON. Times are seconds per job, each the
// best of --repeats samples: "x_s" is wall-clock time on all cores; "x_cpu_s" is the CPU time of all threads,
// which other processes disturb less. A sample is --batch jobs in sequence. To compare sizes, choose batches
// so that samples take about the same time: on a machine whose speed varies within a second, the best of
// short samples is better than the best of long ones.
#include <gflags/gflags.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <vector>

#include "framework/runtime/core_threads.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tools/bench/core/network.h"
#include "transpiler/pipeline/check_role_set.h"

DEFINE_int32(params, 1000, "trained parameters, half of them biases");
DEFINE_int32(pservers, 4, "parameter servers");
DEFINE_int32(repeats, 5, "samples, of which the best counts");
DEFINE_int32(batch, 1, "how often the work is done in a sample");

namespace penstock::bench {
namespace {

double Seconds(clockid_t clock) {
  std::timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Time {
  double wall = std::numeric_limits<double>::infinity();
  double cpu = std::numeric_limits<double>::infinity();
};

Time Best(const std::function<void()>& work) {
  Time best;
  for (int i = 0; i < FLAGS_repeats; ++i) {
    const double wall = Seconds(CLOCK_MONOTONIC);
    const double cpu = Seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int k = 0; k < FLAGS_batch; ++k) work();
    best.wall = std::min(best.wall, (Seconds(CLOCK_MONOTONIC) - wall) / FLAGS_batch);
    best.cpu = std::min(best.cpu, (Seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / FLAGS_batch);
  }
  return best;
}

std::string Fields(std::string_view name, const Time& time) {
  return StrCat("\"", name, "_s\": ", time.wall, ", \"", name, "_cpu_s\": ", time.cpu, ", ");
}

template <typename T>
T Must(Result<T> result) {
  PENSTOCK_CHECK(result.ok(), result.status().ToString());
  return *std::move(result);
}

RoleSet MakeRoles(const Network& network) {
  CoreThreads threads;
  plan::TranspileConfig config;
  config.trainers = 2;
  for (int i = 0; i < FLAGS_pservers; ++i) config.pservers.push_back(StrCat("127.0.0.1:", 6000 + i));
  return Must(Transpile(AllOps(), network.main, network.startup, config, {.threads = &threads}));
}

// In parallel, as `penstock transpile` does.
std::size_t Serialize(const RoleSet& roles) {
  std::vector<const Program*> programs;
  for (const TrainerPrograms& role : roles.trainers) programs.push_back(&role.main);
  for (const PserverPrograms& role : roles.pservers) programs.push_back(&role.main);
  for (const TrainerPrograms& role : roles.trainers) programs.push_back(&role.startup);
  for (const PserverPrograms& role : roles.pservers) programs.push_back(&role.startup);
  CoreThreads threads;
  std::atomic<std::size_t> bytes{0};
  threads.ForEach(programs.size(), [&](std::size_t i) { bytes += SerializeProgram(*programs[i]).size(); });
  return bytes;
}

void Check(const RoleSet& roles, const Network& network) {
  CoreThreads threads;
  const check::CheckReport report = CheckRoleSet(AllOps(), roles, network.main, network.startup, &threads);
  PENSTOCK_CHECK(report.errors() == 0, report.ToString());
}

int Main() {
  const Network network = MakeNetwork(AllOps(), FLAGS_params);
  const RoleSet roles = MakeRoles(network);
  std::size_t role_bytes = 0;
  const Time make = Best([&] { MakeRoles(network); });
  const Time serialize = Best([&] { role_bytes = Serialize(roles); });
  const Time check = Best([&] { Check(roles, network); });
  const Time all = Best([&] {
    const RoleSet made = MakeRoles(network);
    Serialize(made);
    Check(made, network);
  });
  std::string bytes;
  const Time save = Best([&] { bytes = SerializeProgram(network.main); });
  std::vector<Program> loaded;  // kept alive, so that destruction is not measured
  loaded.reserve(static_cast<std::size_t>(FLAGS_repeats) * static_cast<std::size_t>(FLAGS_batch));
  CoreThreads threads;
  const Time load = Best([&] { loaded.push_back(Must(ParseProgram(bytes, &threads))); });
  const double megabytes = static_cast<double>(bytes.size()) / 1e6;
  std::cout << "{\"params\": " << FLAGS_params << ", \"pservers\": " << FLAGS_pservers << ", "
            << Fields("make", make) << Fields("serialize", serialize) << Fields("check", check)
            << Fields("all", all) << "\"role_bytes\": " << role_bytes
            << ", \"program_bytes\": " << bytes.size() << ", \"load_mb_s\": " << megabytes / load.wall
            << ", \"save_mb_s\": " << megabytes / save.wall << "}\n";
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  gflags::SetUsageMessage("how fast role programs are made; see tools/bench/transpile");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_params < 2 || FLAGS_params % 2 != 0 || FLAGS_pservers < 1 || FLAGS_repeats < 1 ||
      FLAGS_batch < 1) {
    std::cerr << "bench_transpile: --params must be even and at least 2, --pservers, --repeats and --batch "
                 "at least 1\n";
    return 2;
  }
  return penstock::bench::Main();
}
