// bench_push_pull --mb 400 --keys 100 --servers 2 --trainers 2: prints one line of JSON. In each round every
// trainer pushes a gradient for every key and pulls every key, as ps-lite's own benchmark does; servers merge
// the gradients and update with sgd. Trainers compute nothing: they push the same gradients in every round.
//
// Times are those of trainer 0, from its first push to its last pull. CPU seconds are those of all processes,
// per GB that trainers push and pull.
#include <gflags/gflags.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <numeric>
#include <vector>

#include "executor/process/grpc_client.h"
#include "executor/process/grpc_server.h"
#include "executor/schedule/executor.h"
#include "framework/base/strings.h"
#include "operators/all_ops.h"
#include "tools/bench/job/job.h"
#include "tools/bench/job/processes.h"

DEFINE_double(mb, 400, "MiB that each trainer pushes and pulls per round");
DEFINE_int32(keys, 100, "number of variables, all of the same size");
DEFINE_int32(servers, 2, "");
DEFINE_int32(trainers, 2, "");
DEFINE_int32(rounds, 15, "measured rounds");
DEFINE_int32(warm, 3, "warm-up rounds");
DEFINE_string(transport, "auto", "auto or tcp");

namespace penstock::bench {
namespace {

constexpr Dim kWidth = 1024;

Job MakeJob() {
  const auto rows = static_cast<Dim>(FLAGS_mb * (1 << 20) / FLAGS_keys / (kWidth * 4));
  Job job{.variables = FLAGS_keys,
          .shape = {std::max<Dim>(rows, 1), kWidth},
          .trainers = FLAGS_trainers,
          .servers = {}};
  for (int s = 0; s < FLAGS_servers; ++s) job.servers.push_back(StrCat("127.0.0.1:", FreePort()));
  return job;
}

void Serve(const Job& job, int server) {
  const Program program = ServerProgram(job, server);
  Scope scope;
  FillServer(job, server, scope);
  exec::Executor blocks(AllOps(), {.threads = 1});
  const auto loop = Must(process::MakeGrpcServer(
      AllOps(), blocks,
      {.job = "bench", .token = {}, .tls = {}, .carrier = FLAGS_transport, .report = [](const std::string&) {
       }}));
  Must(loop->Serve(program, *program.main().ops().back().op, scope));
}

class PushPullTrainer {
 public:
  PushPullTrainer(const Job& job, int id)
      : client_(Must(process::MakeGrpcClient({.job = "bench",
                                              .token = {},
                                              .tls = {},
                                              .carrier = FLAGS_transport,
                                              .report = [](const std::string&) {}}))),
        values_(static_cast<std::size_t>(job.variables)) {
    Must(client_->Attach(TrainerProgram(job, id)));
    for (int i = 0; i < job.variables; ++i) {
      RemotePiece piece{job.ServerOf(i), job.Grad(i, id), DType::kFp32, job.shape, id};
      pushes_.push_back(Must(client_->DeclarePush(piece)));
      piece.name = job.Param(i);
      pulls_.push_back(Must(client_->DeclarePull(piece)));
      Tensor gradient(DType::kFp32, job.shape);
      std::fill(gradient.Span<float>().begin(), gradient.Span<float>().end(), 0.25f);
      gradients_.emplace_back().As<Tensor>() = gradient;
    }
    peers_ = Must(client_->DeclarePeers(job.servers, id));
  }

  void Round() {
    for (std::size_t i = 0; i < pushes_.size(); ++i) Must(client_->Push(pushes_[i], gradients_[i]));
    Must(client_->EndStep(peers_));
    for (std::size_t i = 0; i < pulls_.size(); ++i) Must(client_->Pull(pulls_[i], values_[i]));
    Must(client_->CompletePulls(peers_));
  }
  void Rounds(int count) {
    for (int i = 0; i < count; ++i) Round();
  }
  void Complete() { Must(client_->Complete()); }

 private:
  const std::unique_ptr<RpcClient> client_;
  std::vector<Variable> gradients_, values_;
  std::vector<PushHandle> pushes_;
  std::vector<PullHandle> pulls_;
  PeersHandle peers_;
};

// The milliseconds of each round, ascending, and the CPU seconds of all processes.
struct Measured {
  std::vector<double> ms;
  double cpu_s = 0;
};

Measured Measure(PushPullTrainer& trainer, const std::vector<pid_t>& processes) {
  const auto cpu = [&] {
    return std::accumulate(processes.begin(), processes.end(), 0.0,
                           [](double sum, pid_t process) { return sum + CpuSeconds(process); });
  };
  Measured measured{.ms = {}, .cpu_s = -cpu()};
  for (int i = 0; i < FLAGS_rounds; ++i) {
    const auto began = std::chrono::steady_clock::now();
    trainer.Round();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    measured.ms.push_back(took.count());
  }
  measured.cpu_s += cpu();
  std::sort(measured.ms.begin(), measured.ms.end());
  return measured;
}

void Print(const Job& job, const Measured& measured) {
  const double round_gb = 2e-9 * 4 * static_cast<double>(job.shape.Count()) * job.variables * job.trainers;
  const double median = measured.ms[measured.ms.size() / 2];
  std::cout << "{\"mb\": " << FLAGS_mb << ", \"keys\": " << job.variables
            << ", \"servers\": " << job.servers.size() << ", \"trainers\": " << job.trainers
            << ", \"transport\": \"" << FLAGS_transport << "\", \"median_ms\": " << median
            << ", \"least_ms\": " << measured.ms.front() << ", \"most_ms\": " << measured.ms.back()
            << ", \"gb_s\": " << round_gb / (median * 1e-3)
            << ", \"cpu_s_gb\": " << measured.cpu_s / (round_gb * FLAGS_rounds) << "}\n";
}

int Main() {
  const Job job = MakeJob();
  std::vector<pid_t> processes;
  processes.reserve(static_cast<std::size_t>(FLAGS_servers) + static_cast<std::size_t>(FLAGS_trainers));
  for (int s = 0; s < FLAGS_servers; ++s) processes.push_back(Fork([&] { Serve(job, s); }));
  for (int t = 1; t < FLAGS_trainers; ++t) {
    processes.push_back(Fork([&] {
      PushPullTrainer trainer(job, t);
      trainer.Rounds(FLAGS_warm + FLAGS_rounds);
      trainer.Complete();
    }));
  }
  PushPullTrainer trainer(job, 0);
  trainer.Rounds(FLAGS_warm);
  std::vector<pid_t> all = processes;
  all.push_back(getpid());
  Print(job, Measure(trainer, all));
  trainer.Complete();
  bool well = true;
  for (const pid_t process : processes) {
    int status = 0;
    well &= waitpid(process, &status, 0) == process && status == 0;
  }
  return well ? 0 : 1;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  gflags::SetUsageMessage("trainers that push and pull, and compute nothing; see tools/bench/ps");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_mb <= 0 || FLAGS_keys < FLAGS_servers || FLAGS_servers < 1 || FLAGS_trainers < 1 ||
      FLAGS_rounds < 1 || FLAGS_warm < 1) {
    std::cerr
        << "bench_push_pull: --servers, --trainers, --rounds and --warm must be at least 1, --mb above 0, "
           "--keys at least --servers\n";
    return 2;
  }
  return penstock::bench::Main();
}
