// Measures the cost of a message in a trainer's client: steps (push all, end the step, pull all) with
// variables of one float, against servers that acknowledge at once, without a network. Sent and received
// messages count; the servers' work does not.
#include <benchmark/benchmark.h>

#include <optional>

#include "executor/protocol/native_codec.h"
#include "framework/base/strings.h"
#include "tools/bench/micro/trainer.h"

namespace penstock::bench {
namespace {

// The server's answer to a message, if any.
class Answers {
 public:
  explicit Answers(std::size_t variables) : variables_(variables) {}

  std::optional<protocol::Reply> operator()(const protocol::Hello&) const {
    return protocol::Welcome{.body = {.part_bytes = 1 << 20,
                                      .window = 2,
                                      .chunk_rows = std::vector<std::uint64_t>(variables_, 1)}};
  }
  std::optional<protocol::Reply> operator()(const protocol::Push& m) const {
    return protocol::Pushed{.at = m.at, .step = m.step, .part = m.part, .welcome_below = m.step + 2};
  }
  std::optional<protocol::Reply> operator()(const protocol::EndStep& m) const {
    return protocol::StepEnded{.step = m.step};
  }
  std::optional<protocol::Reply> operator()(const protocol::Pull& m) const {
    return protocol::Pulled{
        .at = m.at, .version = m.version, .welcome_below = m.version + 2, .bytes = Payload::Of(value_, 0, 4)};
  }
  template <typename Other>
  std::optional<protocol::Reply> operator()(const Other&) const {
    return std::nullopt;
  }

 private:
  const std::size_t variables_;  // gradients and parameters
  const Tensor value_{DType::kFp32, {1}};
};

struct Delivery {
  std::size_t server;
  Message message;
};

std::vector<Delivery> AnswersTo(Trainer& trainer, const Answers& answers) {
  std::vector<Delivery> deliveries;
  for (std::size_t s = 0; s < trainer.servers(); ++s) {
    for (const Message& message : trainer.ToServer(s)) {
      const auto event = Must(protocol::DecodeEvent(message));
      if (const auto reply = std::visit(answers, event.message))
        deliveries.push_back({s, protocol::Encode(event.sender, *reply)});
    }
    trainer.ToServer(s).clear();
  }
  return deliveries;
}

std::size_t Waiting(Trainer& trainer) {
  std::size_t messages = 0;
  for (std::size_t s = 0; s < trainer.servers(); ++s) messages += trainer.ToServer(s).size();
  return messages;
}

void ClientMessages(benchmark::State& state) {
  Job job{.variables = static_cast<int>(state.range(0)), .servers = {}};
  for (int s = 0; s < state.range(1); ++s) job.servers.push_back(StrCat("server", 100 + s, ":1"));
  const Answers answers(static_cast<std::size_t>(job.variables) * 2);
  Trainer trainer(job, 0);
  const auto answer = [&] {
    for (Delivery& delivery : AnswersTo(trainer, answers))
      trainer.Deliver(delivery.server, std::move(delivery.message));
  };
  answer();  // to the hellos
  trainer.Step();
  answer();  // all memory is allocated now
  std::size_t messages = 0;
  for ([[maybe_unused]] const auto step : state) {
    trainer.Step();
    state.PauseTiming();
    messages += Waiting(trainer);
    std::vector<Delivery> deliveries = AnswersTo(trainer, answers);
    messages += deliveries.size();
    state.ResumeTiming();
    for (Delivery& delivery : deliveries) trainer.Deliver(delivery.server, std::move(delivery.message));
    state.PauseTiming();
    deliveries.clear();
    trainer.CheckDone();
    state.ResumeTiming();
  }
  state.counters["cpu_a_message"] = benchmark::Counter(
      static_cast<double>(messages), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetLabel("target 5 us of CPU a message");
}
BENCHMARK(ClientMessages)
    ->ArgNames({"variables", "servers"})
    ->Args({100, 32})
    ->Args({10000, 32})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::bench
