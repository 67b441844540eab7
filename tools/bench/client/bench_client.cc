// bench_client --variables 10000 --servers 32: one line of JSON. A trainer runs steps (push everything, end
// the step, pull everything) against servers that acknowledge each message at once and send one float for
// each pull. Counted is the processor's time of the client alone: the servers' answers to a step's messages
// are made between the measured spans. The best of --repeats steps counts, per message sent or received.
#include <gflags/gflags.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <limits>
#include <optional>
#include <vector>

#include "executor/client/session.h"
#include "executor/protocol/contract.h"
#include "executor/protocol/native_codec.h"
#include "framework/ir/program.h"

DEFINE_int32(variables, 10000, "parameters, and as many gradients");
DEFINE_int32(servers, 32, "parameter servers");
DEFINE_int32(repeats, 20, "steps, of which the best counts");
DEFINE_bool(observed, true, "with a flight recorder and counters, as a process has them");

namespace penstock::bench {
namespace {

template <typename T>
T Must(Result<T> result) {
  PENSTOCK_CHECK(result.ok(), result.status().ToString());
  return *std::move(result);
}
void Must(const Status& status) { PENSTOCK_CHECK(status.ok(), status.ToString()); }

double CpuSeconds() {
  std::timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Keeps what is sent until somebody answers it.
class Wire : public Connection {
 public:
  explicit Wire(ConnectionHandler& handler) : handler(handler) {}
  void Send(Message message) override { sent.push_back(std::move(message)); }
  void Close() override {}
  void Abort() override {}

  ConnectionHandler& handler;
  std::vector<Message> sent;
};

class WireTransport : public Transport {
 public:
  Result<std::unique_ptr<Listener>> Listen(const std::string&, ConnectionHandler&) override {
    return Unimplemented("E-bench", "a trainer does not listen");
  }
  std::shared_ptr<Connection> Connect(const std::string&, ConnectionHandler& handler) override {
    wires.push_back(std::make_shared<Wire>(handler));
    return wires.back();
  }
  std::vector<std::shared_ptr<Wire>> wires;
};

// What a server answers, if anything.
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
  const std::size_t variables_;
  const Tensor value_{DType::kFp32, {1}};
};

Program MakeTrainer(const std::vector<std::string>& servers) {
  Program program;
  Block& main = program.MutableBlock(0);
  for (int i = 0; i < FLAGS_variables; ++i) {
    const std::string name = StrCat("w", 100000 + i);
    const std::vector<std::string> server = {servers[static_cast<std::size_t>(i) % servers.size()]};
    main.SetVar(TensorVar(name, DType::kFp32, {1}));
    main.SetVar(TensorVar(name + "@GRAD", DType::kFp32, {1}));
    main.Append(Op("send").AddInput("X", {name + "@GRAD"}).Set("epmap", server));
    main.Append(Op("recv").AddOutput("Out", {name}).Set("trainer_id", std::int32_t{0}).Set("epmap", server));
  }
  main.Append(Op("send_barrier").Set("endpoints", servers).Set("trainer_id", std::int32_t{0}));
  main.Append(Op("fetch_barrier").Set("endpoints", servers).Set("trainer_id", std::int32_t{0}));
  return program;
}

class Trainer {
 public:
  Trainer() {
    std::vector<std::string> servers;
    for (int i = 0; i < FLAGS_servers; ++i) servers.push_back(StrCat("server", 100 + i, ":1"));
    Must(session_.Attach(MakeTrainer(servers)));
    Exchange();
    for (int i = 0; i < FLAGS_variables; ++i) {
      const std::string name = StrCat("w", 100000 + i);
      const std::string server = servers[static_cast<std::size_t>(i) % servers.size()];
      pushes_.push_back(Must(session_.DeclarePush({.pserver = server, .name = name + "@GRAD"})));
      pulls_.push_back(Must(session_.DeclarePull({.pserver = server, .name = name})));
      values_.emplace_back(DType::kFp32, Shape{1});
    }
    gradient_ = Tensor(DType::kFp32, {1});
    peers_ = Must(session_.DeclarePeers(servers));
  }

  // Processor time of a step, and how many messages it took.
  std::pair<double, std::size_t> Step() {
    double spent = -CpuSeconds();
    for (const PushHandle push : pushes_) Must(session_.Push(push, gradient_));
    Must(session_.EndStep(peers_));
    for (std::size_t i = 0; i < pulls_.size(); ++i) Must(session_.Pull(pulls_[i], values_[i]));
    spent += CpuSeconds();
    const auto [exchanging, messages] = Exchange();
    PENSTOCK_CHECK(session_.PullsDone() && session_.EarlierPushesDone(session_.step()), "a step is over");
    Must(session_.status());
    return {spent + exchanging, messages};
  }

 private:
  struct Delivery {
    std::shared_ptr<Wire> to;
    Message message;
  };

  std::pair<double, std::size_t> Exchange() {
    std::vector<Delivery> deliveries;
    std::size_t messages = 0;
    const Answers answers(static_cast<std::size_t>(FLAGS_variables) * 2);
    for (const auto& wire : transport_.wires) {
      messages += wire->sent.size();
      for (const Message& message : wire->sent) {
        const auto event = Must(protocol::DecodeEvent(message));
        if (const auto reply = std::visit(answers, event.message))
          deliveries.push_back({wire, protocol::Encode(event.sender, *reply)});
      }
      wire->sent.clear();
    }
    messages += deliveries.size();
    const double began = CpuSeconds();
    for (Delivery& delivery : deliveries)
      delivery.to->handler.OnMessage(delivery.to, std::move(delivery.message));
    return {CpuSeconds() - began, messages};
  }

  WireTransport transport_;
  observe::Recorder recorder_{observe::FlightMemory::Own()};
  observe::Observer observer_{recorder_};
  client::Session session_{
      transport_, {.job = "bench", .trainers = 1, .observer = FLAGS_observed ? &observer_ : nullptr}};
  std::vector<PushHandle> pushes_;
  std::vector<PullHandle> pulls_;
  std::vector<Tensor> values_;
  Tensor gradient_;
  PeersHandle peers_;
};

int Main() {
  Trainer trainer;
  double best = std::numeric_limits<double>::infinity();
  std::size_t messages = 0;
  for (int i = 0; i < FLAGS_repeats; ++i) {
    const auto [seconds, count] = trainer.Step();
    best = std::min(best, seconds);
    messages = count;
  }
  std::cout << "{\"variables\": " << FLAGS_variables << ", \"servers\": " << FLAGS_servers
            << ", \"messages\": " << messages
            << ", \"cpu_us_a_message\": " << best * 1e6 / static_cast<double>(messages) << "}\n";
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  gflags::SetUsageMessage("what a message costs a trainer; see tools/bench/client_messages");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_servers < 1 || FLAGS_variables < FLAGS_servers || FLAGS_repeats < 1) {
    std::cerr << "bench_client: --servers and --repeats must be at least 1, --variables at least --servers\n";
    return 2;
  }
  return penstock::bench::Main();
}
