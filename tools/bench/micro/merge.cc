// Measures merging: sums the gradients of two trainers from received messages and, with the last one, divides
// the sum to the mean. Bytes are those of both gradients. A copy of the same bytes is measured too, as the
// lower bound.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>

#include "executor/pserver/memory/gradient_sum.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

constexpr int kTrainers = 2;

Tensor Filled(std::int64_t bytes, float value) {
  Tensor tensor(DType::kFp32, {bytes / 4});
  std::fill(tensor.Span<float>().begin(), tensor.Span<float>().end(), value);
  return tensor;
}

void MergeGradients(benchmark::State& state) {
  const Tensor gradient = Filled(state.range(0), 0.25f);
  const std::vector<Payload> parts = {Payload::Of(gradient, 0, gradient.bytes())};
  Tensor sum = Filled(state.range(0), 0);
  for ([[maybe_unused]] const auto i : state) {
    pserver::AddGradient(parts, {.first = true}, sum);
    pserver::AddGradient(parts, {.factor = 1.0f / kTrainers}, sum);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * kTrainers);
}

void CopyGradients(benchmark::State& state) {
  const Tensor gradient = Filled(state.range(0), 0.25f);
  const Tensor copy = Filled(state.range(0), 0);
  for ([[maybe_unused]] const auto i : state) {
    for (int t = 0; t < kTrainers; ++t) std::memcpy(copy.raw(), gradient.raw(), gradient.bytes());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * kTrainers);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("bytes");
  bench->Arg(1 << 10)->Arg(1 << 20)->Arg(64 << 20);
}
BENCHMARK(MergeGradients)->Apply(Sizes);
BENCHMARK(CopyGradients)->Apply(Sizes);

}  // namespace
}  // namespace penstock::bench
