// Measures the transport between two processes of this host: large bodies in one direction, and small
// messages.
//
//   bench_transport auto|tcp [streams] [body bytes] [bodies] [small messages]
//
// Bodies are parts of a buffer of 128 MB; the receiver copies each into a buffer of the same size, in place
// of a merge, which reads a body once. CPU time is that of both processes.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "executor/transport/grpc_transport.h"
#include "tools/bench/job/processes.h"

namespace penstock {
namespace {

constexpr char kToken[] = "a token of this run";
constexpr int kInFlight = 64;                            // small messages
constexpr std::size_t kBuffer = std::size_t{128} << 20;  // the buffers of sender and receiver

// Admits every connection, copies bodies, and answers messages that ask for an answer.
class Receiver : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    from->Admit();
    at_ = at_ + message.body.size() > kBuffer ? 0 : at_;
    message.body.CopyTo(buffer_.data() + at_);
    at_ += message.body.size();
    if (message.head.starts_with("ask")) from->Send({"answer", {}});
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override { _exit(0); }

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBuffer);
  std::size_t at_ = 0;
};

class Sender : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message) override {
    const std::lock_guard lock(mutex_);
    ++answers_;
    changed_.notify_all();
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status& why) override {
    if (why.ok()) return;
    std::fprintf(stderr, "%s\n", why.ToString().c_str());
    std::_Exit(1);
  }
  void WaitFor(long answers) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_ >= answers; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  long answers_ = 0;
};

// Wall seconds, and CPU seconds of both processes.
struct Cost {
  double wall, cpu;
};
template <typename Work>
Cost Measure(pid_t server, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  const double cpu = bench::CpuSeconds(getpid()) + bench::CpuSeconds(server);
  work();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {wall.count(), bench::CpuSeconds(getpid()) + bench::CpuSeconds(server) - cpu};
}

int Main(int argc, char** argv) {
  const auto number = [&](int at, long otherwise) { return argc > at ? std::atol(argv[at]) : otherwise; };
  const std::string carrier = argc > 1 ? argv[1] : "auto";
  const int streams = static_cast<int>(number(2, 2));
  const auto body = static_cast<std::size_t>(number(3, 4 << 20));
  const long bodies = number(4, 256), small = number(5, 20000);
  const std::string address = StrCat("127.0.0.1:", bench::FreePort());
  const auto make = [&] {
    return transport::MakeGrpcTransport({.token = kToken,
                                         .report = [](const std::string& line) { std::puts(line.c_str()); },
                                         .carrier = transport::CarrierOf(carrier).value(),
                                         .streams = streams,
                                         .tell = [](const std::string& line) { std::puts(line.c_str()); }});
  };
  const pid_t server = bench::Fork([&] {
    Receiver receiver;
    const auto transport = make();
    const auto listener = transport->Listen(address, receiver).value();
    pause();
  });
  Sender sender;
  const auto transport = make();
  const auto connection = transport->Connect(address, sender);
  const Payload buffer = Payload::Of(std::string(kBuffer, 'x')),
                kilobyte = Payload::Of(std::string(1024, 'x'));
  const Bytes& bytes = buffer.pieces().front();
  std::vector<Payload> large;
  for (std::size_t at = 0; at + body <= kBuffer; at += body)
    large.emplace_back(Bytes{bytes.owner, bytes.data + at, body});
  long answers = 0;
  connection->Send({"ask", {}});
  sender.WaitFor(++answers);
  const auto send = [&](const std::vector<Payload>& payloads, long count, long in_flight) {
    const long before = answers;
    for (long i = 0; i < count; ++i) {
      connection->Send({"ask", payloads[static_cast<std::size_t>(i) % payloads.size()]});
      if (++answers - before > in_flight) sender.WaitFor(answers - in_flight);
    }
    sender.WaitFor(answers);
  };
  send(large, 64, 8);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Cost cost = Measure(server, [&] { send(large, bodies, 16); });
    const double gb = 1e-9 * static_cast<double>(body) * static_cast<double>(bodies);
    std::printf("bodies of %zu bytes: %.2f GB/s, %.3f CPU-s/GB\n", body, gb / cost.wall, cost.cpu / gb);
  }
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Cost cost = Measure(server, [&] { send({kilobyte}, small, kInFlight); });
    const double each = 1e6 / static_cast<double>(small);
    std::printf("1 KB and its answer: %.1f us, %.1f us of CPU\n", cost.wall * each, cost.cpu * each);
  }
  const Cost cost = Measure(server, [&] { send({kilobyte}, 2000, 0); });
  std::printf("1 KB and its answer, one at a time: %.1f us, %.1f us of CPU\n", cost.wall * 500,
              cost.cpu * 500);
  connection->Close();
  waitpid(server, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
