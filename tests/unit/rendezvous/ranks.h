// Runs the ranks of a job as threads of this process over real sockets, each with its own transport.
//
//   Job job(3);
//   std::future<Status> late = job.Start(2, [](Store& store) { return store.Barrier("b"); });
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/collective/rendezvous/store.h"
#include "executor/transport/grpc_transport.h"
#include "tests/support/free_port.h"

namespace penstock::rendezvous {

// A clock that the test advances while ranks read it.
class ManualClock : public Clock {
 public:
  Nanoseconds Now() const override { return Nanoseconds(now_.load()); }
  void Advance(Nanoseconds by) { now_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_ = 0;
};

// The lines that ranks report, in any order.
class ReportedLines {
 public:
  std::function<void(const std::string&)> sink() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      changed_.notify_all();
    };
  }
  // Waits for `count` lines, at most 30 s; returns the lines, sorted.
  std::vector<std::string> Take(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return lines_.size() >= count; });
    std::vector<std::string> lines = std::exchange(lines_, {});
    std::sort(lines.begin(), lines.end());
    return lines;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

// The transport of this test run, from PENSTOCK_TRANSPORT.
inline transport::Carrier CarrierUnderTest() {
  const char* carrier = std::getenv("PENSTOCK_TRANSPORT");
  return transport::CarrierOf(carrier == nullptr ? "" : carrier).value();
}

// A handler of messages that counts those that the given one has handled.
class CountingHandler : public ConnectionHandler {
 public:
  // Before the first message.
  void Forward(ConnectionHandler& handler) { handler_ = &handler; }
  bool Wait(int count) {  // for so many messages, at most 30 s
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return handled_ >= count; });
  }

 private:
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    handler_->OnMessage(from, std::move(message));
    const std::lock_guard lock(mutex_);
    ++handled_;
    changed_.notify_all();
  }
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override {
    handler_->OnClosed(from, why);
  }

  ConnectionHandler* handler_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  int handled_ = 0;
};

// The transport of a rank: one listener and one connection at most.
class CountingTransport : public Transport {
 public:
  explicit CountingTransport(const std::string& token)
      : real_(transport::MakeGrpcTransport(
            {.token = token, .report = [](auto&) {}, .carrier = CarrierUnderTest(), .tell = [](auto&) {}})) {}
  Result<std::unique_ptr<Listener>> Listen(const std::string& address, ConnectionHandler& handler) override {
    listener_.Forward(handler);
    return real_->Listen(address, listener_);
  }
  std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) override {
    connection_.Forward(handler);
    return real_->Connect(address, connection_);
  }
  bool WaitForMessages(int count) { return listener_.Wait(count); }
  bool WaitForAnswers(int count) { return connection_.Wait(count); }

 private:
  CountingHandler listener_, connection_;
  const std::unique_ptr<Transport> real_;
};

class Job {
 public:
  using Part = std::function<Status(Store&)>;

  explicit Job(int ranks) {
    for (int i = 0; i < ranks; ++i) addresses.push_back(StrCat("127.0.0.1:", test::FreePort()));
  }

  StoreOptions Options(int rank) {
    return {.job = "job",
            .rank = rank,
            .addresses = addresses,
            .start_limit = std::chrono::seconds(60),
            .limit = std::chrono::seconds(60),
            .report = lines.sink(),
            .clock = clock};
  }
  // Starts a rank, which the others cannot distinguish from a process.
  std::future<Status> Start(StoreOptions options, Part part, const std::string& token = "secret") {
    auto transport = std::make_shared<CountingTransport>(token);
    if (options.rank == 0 && !keeper) keeper = transport;
    transports[options.rank] = transport;
    return std::async(std::launch::async, [=, part = std::move(part)] {
      const Result<std::unique_ptr<Store>> store = Store::Join(*transport, options);
      return store.ok() ? part(**store) : store.status();
    });
  }
  std::future<Status> Start(int rank, Part part, const std::string& token = "secret") {
    return Start(Options(rank), std::move(part), token);
  }

  std::vector<std::string> addresses;
  ReportedLines lines;
  const Clock* clock = nullptr;
  std::shared_ptr<CountingTransport> keeper;                     // rank 0's transport
  std::map<int, std::shared_ptr<CountingTransport>> transports;  // of the last start of each rank
};

inline Status Nothing(Store&) { return OkStatus(); }

}  // namespace penstock::rendezvous
