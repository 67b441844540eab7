// Measures a server's own work on small variables: two trainers push each variable, the server merges and
// updates it, and both trainers pull it. The CPU time runs from the arrival of a message to its answers and
// includes decoding, checksums and encoding, but not the transport (see tools/bench/transport).
#include <benchmark/benchmark.h>

#include <deque>
#include <functional>

#include "executor/pserver/pserver.h"
#include "executor/pserver/service/native_service.h"
#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tools/bench/micro/trainer.h"

namespace penstock::bench {
namespace {

// One server and its trainers, in one thread.
class OneServer {
 public:
  explicit OneServer(const Job& job) : program_(ServerProgram(job, 0)) {
    FillServer(job, 0, scope_);
    pserver::PserverOptions options;
    options.job = "bench";
    options.run = [this](std::function<void()> work) { later_.push_back(std::move(work)); };
    options.report = [](const std::string&) {};
    options.observer = &observer_;
    server_ = Must(pserver::Pserver::Make(program_, *program_.main().ops().back().op, scope_, AllOps(),
                                          blocks_, std::move(options)));
    service_ = std::make_unique<pserver::NativeService>(*server_);
    for (int t = 0; t < job.trainers; ++t) {
      trainers_.push_back(std::make_unique<Trainer>(job, t));
      to_trainers_.push_back(std::make_shared<KeptMessages>());
    }
    Serve();
    Answer();
  }

  void Step() {
    for (const auto& trainer : trainers_) trainer->Step();
  }
  // The measured part: the server handles all messages of the trainers, trainer by trainer.
  void Serve() {
    for (std::size_t t = 0; t < trainers_.size(); ++t) {
      for (Message& message : trainers_[t]->ToServer(0)) {
        service_->OnMessage(to_trainers_[t], std::move(message));
        for (; !later_.empty(); later_.pop_front()) later_.front()();
      }
      trainers_[t]->ToServer(0).clear();
    }
  }
  void Answer() {
    for (std::size_t t = 0; t < trainers_.size(); ++t) {
      for (Message& message : to_trainers_[t]->sent) trainers_[t]->Deliver(0, std::move(message));
      to_trainers_[t]->sent.clear();
    }
  }
  void CheckDone() const {
    for (const auto& trainer : trainers_) trainer->CheckDone();
  }

 private:
  const Program program_;
  Scope scope_;
  exec::Executor blocks_{AllOps(), {.threads = 1}};
  observe::Recorder recorder_{observe::FlightMemory::Own()};
  observe::Observer observer_{recorder_};
  std::deque<std::function<void()>> later_;
  std::unique_ptr<pserver::Pserver> server_;
  std::unique_ptr<pserver::NativeService> service_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::shared_ptr<KeptMessages>> to_trainers_;
};

void ServerSmallVariables(benchmark::State& state) {
  const Job job{
      .variables = static_cast<int>(state.range(0)), .shape = {state.range(1) / 64, 16}, .trainers = 2};
  OneServer server(job);
  server.Step();
  server.Serve();  // compiles the blocks
  server.Answer();
  std::size_t calls = 0;
  for ([[maybe_unused]] const auto step : state) {
    state.PauseTiming();
    server.Step();
    state.ResumeTiming();
    server.Serve();
    state.PauseTiming();
    server.Answer();
    server.CheckDone();
    calls += static_cast<std::size_t>(job.variables * job.trainers);
    state.ResumeTiming();
  }
  state.counters["cpu_a_push_and_pull"] = benchmark::Counter(
      static_cast<double>(calls), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetLabel("target 20 us of CPU");
}
BENCHMARK(ServerSmallVariables)
    ->ArgNames({"variables", "bytes"})
    ->Args({10, 1024})
    ->Args({200, 1024})
    ->Args({10000, 1024})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::bench
