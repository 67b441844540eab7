// Measures a server's state machine (ledger and policy) in events per second. Its actions count as done at
// once, so no other work is measured.
#include "executor/pserver/machine/state_machine.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <set>

#include "executor/pserver/machine/policies/async_policy.h"
#include "executor/pserver/machine/policies/sync_policy.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

constexpr std::size_t kChunkBytes = 1024;

// Runs steps of all trainers: push every chunk, end the step, pull every chunk.
class Steps {
 public:
  Steps(int params, int chunks, int trainers, std::unique_ptr<pserver::UpdatePolicy> policy)
      : chunks_(chunks),
        trainers_(trainers),
        machine_(ConfigOf(params, chunks, trainers), std::move(policy)) {
    for (int p = 0; p < params; ++p) params_.insert(p);
  }

  // Runs one step of all trainers; returns the number of events.
  std::int64_t Step() {
    events_ = 0;
    for (int t = 0; t < trainers_; ++t) {
      ForEachChunk([&](int param, int chunk) {
        machine_.Push(
            {.trainer = t, .param = param, .chunk = chunk, .step = step_, .part = 0, .bytes = gradient_},
            actions_);
        CarryOut();
      });
      machine_.EndStep(t, step_, params_, actions_);
      CarryOut();
      ForEachChunk([&](int param, int chunk) {
        machine_.Pull(t, param, chunk, step_ + 1, actions_);
        CarryOut();
      });
    }
    ++step_;
    return events_;
  }

 private:
  static pserver::MachineConfig ConfigOf(int params, int chunks, int trainers) {
    pserver::MachineConfig config{.trainers = trainers, .params = {}};
    for (int p = 0; p < params; ++p) {
      config.params.push_back(
          {.name = StrCat("w", p),
           .bytes_of_chunks = std::vector<std::size_t>(static_cast<std::size_t>(chunks), kChunkBytes)});
    }
    return config;
  }
  template <typename Work>
  void ForEachChunk(const Work& work) {
    for (const int param : params_) {
      for (int chunk = 0; chunk < chunks_; ++chunk) work(param, chunk);
    }
  }
  // Reports all actions as done; a completed action may add further ones.
  void CarryOut() {
    ++events_;
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      if (const auto* merge = std::get_if<pserver::MergeAction>(&actions_[i])) {
        const pserver::ChunkId at{merge->param, merge->chunk};
        machine_.MergeDone(at.param, at.chunk, actions_);
        ++events_;
      } else if (const auto* run = std::get_if<pserver::RunAction>(&actions_[i])) {
        const pserver::ChunkId at{run->param, run->chunk};
        machine_.BlockDone(at.param, at.chunk, OkStatus(), actions_);
        ++events_;
      }
    }
    actions_.clear();
  }

  const int chunks_, trainers_;
  pserver::StateMachine machine_;
  std::set<int> params_;
  const Payload gradient_ = Payload::Of(std::string(kChunkBytes, 'g'));
  pserver::Actions actions_;
  std::uint64_t step_ = 0;
  std::int64_t events_ = 0;
};

template <typename Policy>
void StateMachineEvents(benchmark::State& state) {
  Steps steps(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
              static_cast<int>(state.range(2)), std::make_unique<Policy>());
  std::int64_t events = 0;
  for ([[maybe_unused]] const auto step : state) events += steps.Step();
  state.SetItemsProcessed(events);
}
void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"params", "chunks", "trainers"});
  bench->Args({10, 1, 2})->Args({200, 1, 2})->Args({1, 400, 2})->Args({200, 1, 32});
  bench->Unit(benchmark::kMicrosecond);
}
BENCHMARK_TEMPLATE(StateMachineEvents, pserver::SyncPolicy)->Apply(Sizes);
BENCHMARK_TEMPLATE(StateMachineEvents, pserver::AsyncPolicy)->Apply(Sizes);

}  // namespace
}  // namespace penstock::bench
