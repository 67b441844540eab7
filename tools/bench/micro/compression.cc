// Measures compression of a gradient on a trainer and expansion on a server, in bytes of float32 per second.
// `ratio` is the number of float32 bytes per sent byte. The gradient is that of a chunk: 1 MB or less.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "executor/protocol/compressed.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

using Kind = Compression::Kind;

std::vector<float> Gradient(std::int64_t bytes) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(static_cast<std::size_t>(bytes) / sizeof(float));
  for (float& value : gradient) value = normal(random);
  return gradient;
}

void Count(benchmark::State& state, const Compression& how) {
  const std::int64_t bytes = state.range(0);
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["ratio"] = static_cast<double>(bytes) /
                            static_cast<double>(how.Bytes(bytes / static_cast<std::int64_t>(sizeof(float))));
}

void CompressGradient(benchmark::State& state, Kind kind) {
  const Compression how{.kind = kind};
  const std::vector<float> gradient = Gradient(state.range(0));
  std::vector<float> residual(gradient.size(), 0.0f);
  std::vector<std::byte> out(static_cast<std::size_t>(how.Bytes(static_cast<std::int64_t>(gradient.size()))));
  for ([[maybe_unused]] const auto i : state) {
    protocol::Compress(how, gradient, residual, out.data());
    benchmark::ClobberMemory();
  }
  Count(state, how);
}

void ExpandGradient(benchmark::State& state, Kind kind) {
  const Compression how{.kind = kind};
  const std::vector<float> gradient = Gradient(state.range(0));
  std::vector<float> residual(gradient.size(), 0.0f), out(gradient.size());
  std::string bytes(static_cast<std::size_t>(how.Bytes(static_cast<std::int64_t>(gradient.size()))), '\0');
  protocol::Compress(how, gradient, residual, reinterpret_cast<std::byte*>(bytes.data()));
  const std::vector<Payload> parts = {Payload::Of(bytes)};
  for ([[maybe_unused]] const auto i : state) {
    Must(protocol::Expand(how, parts, out));
    benchmark::ClobberMemory();
  }
  Count(state, how);
}

void Sizes(benchmark::internal::Benchmark* bench) { bench->ArgName("bytes")->Arg(16 << 10)->Arg(1 << 20); }
BENCHMARK_CAPTURE(CompressGradient, fp16, Kind::kFp16)->Apply(Sizes);
BENCHMARK_CAPTURE(CompressGradient, bf16, Kind::kBf16)->Apply(Sizes);
BENCHMARK_CAPTURE(CompressGradient, two_bit, Kind::kTwoBit)->Apply(Sizes);
BENCHMARK_CAPTURE(CompressGradient, top_k, Kind::kTopK)->Apply(Sizes);
BENCHMARK_CAPTURE(ExpandGradient, fp16, Kind::kFp16)->Apply(Sizes);
BENCHMARK_CAPTURE(ExpandGradient, bf16, Kind::kBf16)->Apply(Sizes);
BENCHMARK_CAPTURE(ExpandGradient, two_bit, Kind::kTwoBit)->Apply(Sizes);
BENCHMARK_CAPTURE(ExpandGradient, top_k, Kind::kTopK)->Apply(Sizes);

}  // namespace
}  // namespace penstock::bench
