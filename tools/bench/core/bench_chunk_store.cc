// Measures the memory operations of a pserver's step without a network: merges the gradients of N trainers,
// runs sgd, and publishes the new version to every trainer.
//
//   bench_chunk_store --mb 300 --trainers 4 --steps 3           one line of figures
//   bench_chunk_store --kept ...                                with a block that sums in its own order
//
// Prints CPU seconds per step and phase, and the peak memory of the parameter plus all memory allocated after
// it, as a multiple of the parameter. Trainers push and pull one after the other, which is the worst case:
// first all chunks have a sum, then all have a copy.
#include <gflags/gflags.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "executor/protocol/envelope.h"
#include "executor/pserver/memory/chunk_store.h"
#include "executor/schedule/executor.h"
#include "framework/base/strings.h"
#include "operators/all_ops.h"

DEFINE_int32(mb, 300, "of the parameter");
DEFINE_int32(trainers, 4, "that push and pull");
DEFINE_int32(steps, 3, "after a first one that is not counted");
DEFINE_bool(kept, false, "the block sums the gradients in an order that the store does not support");

namespace penstock {
namespace {

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::size_t PeakKb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kb = 0;
    if (word == "VmHWM:" && status >> kb) return kb;
  }
  return 0;
}

struct Job {
  Program program;
  roles::PserverFacts facts;
  Scope scope;
};

void Declare(Program& program, const std::string& name, const Shape& shape) {
  Var var;
  var.name = name;
  var.type = TensorType{DType::kFp32, shape};
  var.persistable = true;
  program.MutableBlock(0).SetVar(std::move(var));
}

void Make(Job& job) {
  const Shape shape{Dim{FLAGS_mb} * 256, 1024};
  const Shape one{1};
  Declare(job.program, "w", shape);
  Declare(job.program, "w@GRAD", shape);
  Declare(job.program, "lr", one);
  std::vector<std::string> grads;
  for (int t = 0; t < FLAGS_trainers; ++t) {
    grads.push_back(StrCat("w@GRAD.trainer_", t));
    Declare(job.program, grads.back(), shape);
  }
  Block& block = job.program.AddBlock(0);
  block.Append(Op("sum").AddInput("X", grads).AddOutput("Out", {"w@GRAD"}));
  block.Append(Op("scale")
                   .AddInput("X", {"w@GRAD"})
                   .AddOutput("Out", {"w@GRAD"})
                   .Set("scale", static_cast<float>(1.0 / FLAGS_trainers)));
  block.Append(Op("sgd")
                   .AddInput("Param", {"w"})
                   .AddInput("Grad", {"w@GRAD"})
                   .AddInput("LearningRate", {"lr"})
                   .AddOutput("ParamOut", {"w"}));
  if (FLAGS_kept) std::swap(grads.front(), grads.back());
  job.facts.address = "bench";
  job.facts.trainers = FLAGS_trainers;
  job.facts.params.push_back({.param = {.name = "w", .dtype = DType::kFp32, .shape = shape},
                              .block = block.index(),
                              .grads = grads,
                              .elementwise = true});
  for (const auto& [name, made] : {std::pair{"w", shape}, std::pair{"lr", one}}) {
    Tensor tensor(DType::kFp32, made);
    std::fill(tensor.Span<float>().begin(), tensor.Span<float>().end(), 0.5f);
    job.scope.FindOrCreate(name)->As<Tensor>() = std::move(tensor);
  }
}

// Seals the parts as a reply would. With --kept, the checksum is computed for each trainer.
void Send(const pserver::Published& published) {
  for (std::size_t part = 0; part < published.part_count(); ++part) {
    Payload body = published.part(part);
    if (FLAGS_kept) body = Payload(body.pieces().front());
    protocol::Seal({.kind = protocol::MessageKind::kPulled}, std::move(body));
  }
}

int Main() {
  Job job;
  Make(job);
  exec::Executor executor(AllOps(), {.threads = 1});
  const auto store = pserver::ChunkStore::Make(job.program, job.facts, job.scope).value();
  const auto chunks = static_cast<int>(store->chunk_count(0));
  Tensor gradient(DType::kFp32, {store->chunk_rows(0), 1024});
  std::fill(gradient.Span<float>().begin(), gradient.Span<float>().end(), 0.25f);
  const std::size_t before_kb = PeakKb();
  double merge_s = 0, run_s = 0, publish_s = 0;
  for (int step = 0; step <= FLAGS_steps; ++step) {
    if (step == 1) merge_s = run_s = publish_s = 0;
    const auto version = static_cast<std::uint64_t>(step);
    const double start = CpuSeconds();
    for (int t = 0; t < FLAGS_trainers; ++t) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const Payload part = Payload::Of(gradient, 0, store->ChunkBytes(0, chunk));
        PENSTOCK_CHECK(store->Merge({.chunk = chunk, .trainer = t, .step = version, .parts = {part}}).ok(),
                       "merged");
      }
    }
    const double merged = CpuSeconds();
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Status run = store->Run({.param = 0, .chunk = chunk, .step = version}, executor);
      if (!run.ok()) std::cerr << run.ToString() << "\n";
    }
    const double updated = CpuSeconds();
    for (int t = 0; t < FLAGS_trainers; ++t) {
      for (int chunk = 0; chunk < chunks; ++chunk) Send(*store->Publish(0, chunk, version + 1, t, true));
    }
    merge_s += merged - start;
    run_s += updated - merged;
    publish_s += CpuSeconds() - updated;
  }
  const double times = 1 + static_cast<double>(PeakKb() - before_kb) / 1024 / FLAGS_mb;
  std::printf(
      "%s: %d MB, %d trainers: merge %.3f s, block %.3f s, publish %.3f s, peak %.2f x the parameter\n",
      FLAGS_kept ? "kept" : "streamed", FLAGS_mb, FLAGS_trainers, merge_s / FLAGS_steps, run_s / FLAGS_steps,
      publish_s / FLAGS_steps, times);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return penstock::Main();
}
