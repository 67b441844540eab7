// Measures encoding and decoding of messages of the native wire, and their checksums. Bytes are those of the
// body; encoding a body whose checksum is known, such as a published parameter, does not read it.
#include <benchmark/benchmark.h>

#include <string>

#include "executor/protocol/native_codec.h"
#include "framework/base/crc32c.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

constexpr protocol::Sender kSender{.job = 1, .contract = 2, .incarnation = 3, .trainer = 4};

Payload Body(std::int64_t bytes) { return Payload::Of(std::string(static_cast<std::size_t>(bytes), 'x')); }

void CountBytes(benchmark::State& state) { state.SetBytesProcessed(state.iterations() * state.range(0)); }

void Crc(benchmark::State& state) {
  const std::string body(static_cast<std::size_t>(state.range(0)), 'x');
  for ([[maybe_unused]] const auto i : state) benchmark::DoNotOptimize(Crc32c(0, body.data(), body.size()));
  CountBytes(state);
}

void CrcCombine(benchmark::State& state) {
  for ([[maybe_unused]] const auto i : state)
    benchmark::DoNotOptimize(Crc32cCombine(1, 2, static_cast<std::size_t>(state.range(0))));
}

void EncodePush(benchmark::State& state) {
  const protocol::Event push = protocol::Push{.at = {1, 2}, .step = 3, .bytes = Body(state.range(0))};
  for ([[maybe_unused]] const auto i : state) benchmark::DoNotOptimize(protocol::Encode(kSender, push));
  CountBytes(state);
}

void DecodePush(benchmark::State& state) {
  const protocol::Event push = protocol::Push{.at = {1, 2}, .step = 3, .bytes = Body(state.range(0))};
  const Message message = protocol::Encode(kSender, push);
  for ([[maybe_unused]] const auto i : state) benchmark::DoNotOptimize(Must(protocol::DecodeEvent(message)));
  CountBytes(state);
}

void EncodePulled(benchmark::State& state) {
  Payload body = Body(state.range(0));
  body.set_crc32c(Crc32c(0, body.pieces().front().data, body.size()));
  const protocol::Reply pulled = protocol::Pulled{.at = {1, 2}, .version = 3, .bytes = body};
  for ([[maybe_unused]] const auto i : state) benchmark::DoNotOptimize(protocol::Encode(kSender, pulled));
  CountBytes(state);
}

void DecodePulled(benchmark::State& state) {
  const protocol::Reply pulled = protocol::Pulled{.at = {1, 2}, .version = 3, .bytes = Body(state.range(0))};
  const Message message = protocol::Encode(kSender, pulled);
  for ([[maybe_unused]] const auto i : state) benchmark::DoNotOptimize(Must(protocol::DecodeReply(message)));
  CountBytes(state);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("bytes");
  bench->Arg(1 << 10)->Arg(1 << 20)->Arg(4 << 20);
}
BENCHMARK(Crc)->Apply(Sizes);
BENCHMARK(CrcCombine)->Apply(Sizes);
BENCHMARK(EncodePush)->Apply(Sizes);
BENCHMARK(DecodePush)->Apply(Sizes);
BENCHMARK(EncodePulled)->Apply(Sizes);
BENCHMARK(DecodePulled)->Apply(Sizes);

}  // namespace
}  // namespace penstock::bench
