// A transport that delays, reorders, repeats and drops messages by a seed, like the simulated network
// (tests/sim/network.h), but between real processes.
//
//   LossyTransport lossy(transport::MakeGrpcTransport(options), seed, {.lost = 0.05, .twice = 0.05});
//   ... a client or server with a short resend_after on `lossy` ...
//   lossy.lost()
//
// A delayed message shares the memory of its body, as in a transport's queue; a repeated message is a copy,
// because the network already has the bytes. Thread-safe, like every Transport.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/runtime/transport.h"

namespace penstock::test {

struct MessageFaults {
  std::chrono::microseconds delay_max{10'000};
  double lost = 0.05, twice = 0.05;
};

// Calls functions after a delay, on one thread. The destructor drops calls that are not due yet.
class Later {
 public:
  Later();
  ~Later();
  void Call(std::chrono::microseconds delay, std::function<void()> function);

 private:
  using Time = std::chrono::steady_clock::time_point;
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Time, std::function<void()>> due_;
  bool stop_ = false;
  std::thread thread_;
};

class LossyTransport : public Transport {
 public:
  LossyTransport(std::unique_ptr<Transport> inner, std::uint64_t seed, MessageFaults faults);
  ~LossyTransport() override;

  Result<std::unique_ptr<Listener>> Listen(const std::string& address, ConnectionHandler& handler) override;
  std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) override;

  int lost() const { return lost_; }
  int repeated() const { return repeated_; }

 private:
  class End;       // one end of a connection
  class AtClient;  // handlers
  class AtServer;
  double Uniform();
  std::chrono::microseconds Delay();

  const std::unique_ptr<Transport> inner_;
  const MessageFaults faults_;
  std::mutex mutex_;  // guards the members below
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<ConnectionHandler>> handlers_;
  std::atomic<int> lost_{0}, repeated_{0};
  Later later_;  // destroyed first, because its calls use the members above
};

}  // namespace penstock::test
