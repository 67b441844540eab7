// A job of a key-value store on the simulated network: servers of keys, and workers whose scripts run on
// threads of their own, one at a time.
//
//   KeySimulation sim(2, 1, seed, FaultsOf(seed));
//   sim.Add(0, [](KeyClient& keys) -> Status { ... });
//   ASSERT_TRUE(sim.Run()) << sim.Waiting();
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/client/key_client.h"
#include "executor/pserver/pserver.h"
#include "executor/pserver/service/native_service.h"
#include "operators/all_ops.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_client.h"
#include "tests/sim/sim_ops.h"

namespace penstock::test {

using client::KeyClient;
using client::KeyType;

inline constexpr auto kTickEvery = std::chrono::milliseconds(10);

struct KeyServerProcess {
  std::unique_ptr<pserver::Pserver> pserver;
  std::unique_ptr<pserver::NativeService> service;
  std::unique_ptr<Listener> listener;
};

// A worker's script, which runs on a thread of its own while the simulation waits.
class KeyWorker {
 public:
  using Script = std::function<Status(KeyClient&)>;
  KeyWorker(Network& net, client::SessionOptions options, client::KeyClientOptions keys, Script script)
      : client_(net.transport(), std::move(options), turn_),
        keys_(
            client_.session(), [this](const auto& answer) { return WaitFor(answer); }, std::move(keys)),
        thread_([this, script = std::move(script)] {
          turn_.Take();
          result_ = keys_.Attach();
          if (result_.ok()) result_ = script(keys_);
          if (result_.ok()) result_ = keys_.Complete();
          ended_ = true;
          turn_.Return();
        }) {}
  ~KeyWorker() { thread_.join(); }

  bool MayGoOn() const { return !ended_ && client_.MayGoOn(); }
  void GoOn() { turn_.Give(); }
  void Tick() { client_.session().Tick(); }
  // The process ends; its script gets an error.
  void Die() {
    died_ = true;
    client_.session().Abort();
  }
  bool ended() const { return ended_; }
  bool died() const { return died_; }
  const Status& result() const { return result_; }
  const SimClient& client() const { return client_; }
  client::Session& session() { return client_.session(); }

 private:
  Status WaitFor(const std::function<bool()>& answer) {
    const Status status = client_.Wait([&] { return died_ || answer(); });
    return died_ ? Cancelled("E-test", "it died") : status;
  }

  Turn turn_;
  SimClient client_;
  KeyClient keys_;
  bool ended_ = false, died_ = false;
  Status result_;
  std::thread thread_;
};

class KeySimulation {
 public:
  // `change`: of the options of each server.
  using Change = std::function<void(pserver::PserverOptions&)>;
  KeySimulation(int workers, int servers, std::uint64_t seed, Faults faults,
                pserver::TrainerLoss loss = pserver::TrainerLoss::kAbort, const Change& change = {},
                BlockRunner* runner = nullptr)
      : workers_(workers), net_(seed, faults) {
    for (int s = 0; s < servers; ++s) addresses_.push_back(AddressOf(s));
    for (int s = 0; s < servers; ++s) {
      KeyServerProcess& server = servers_.emplace_back();
      pserver::PserverOptions options;
      options.job = "sim";
      options.part_bytes = 20;
      options.inline_bytes = net_.Uniform() < 0.5 ? 0 : 1000;
      options.run = [this](std::function<void()> work) { net_.After(net_.Delay(), std::move(work)); };
      options.report = [](const std::string&) {};
      options.clock = &net_.clock();
      options.reconnect_deadline = net_.reconnect_deadline();
      options.trainer_loss = loss;
      options.table_shards.exactly = 3;
      if (change) change(options);
      auto made =
          pserver::Pserver::MakeForKeys({.address = AddressOf(s), .workers = workers, .ops = &AllOps()},
                                        runner == nullptr ? runner_ : *runner, options);
      EXPECT_TRUE(made.ok()) << made.status().ToString();
      server.pserver = std::move(made).value();
      server.service = std::make_unique<pserver::NativeService>(*server.pserver);
      net_.After(net_.Delay() * 10, [this, s] {
        KeyServerProcess& each = servers_[static_cast<std::size_t>(s)];
        each.listener = std::move(net_.transport().Listen(each.pserver->address(), *each.service)).value();
        TickServer(s);
      });
    }
  }

  static std::string AddressOf(int server) { return StrCat("server", server, ":1"); }

  KeyWorker& Add(int rank, KeyWorker::Script script, std::uint64_t incarnation = 1, std::int64_t bound = 12,
                 bool sync = true) {
    client::SessionOptions options = SimClient::OptionsOf(net_);
    options.incarnation = incarnation;
    options.push_window = net_.Uniform() < 0.5 ? 30 : std::size_t{1} << 20;
    KeyWorker& worker = *processes_.emplace_back(std::make_unique<KeyWorker>(
        net_, std::move(options),
        client::KeyClientOptions{
            .servers = addresses_, .rank = rank, .workers = workers_, .sync = sync, .bound = bound},
        std::move(script)));
    TickWorker(worker);
    return worker;
  }

  // Runs until all workers and servers have ended.
  bool Run() {
    const auto is_over = [&] {
      return killed_ || (std::ranges::all_of(processes_, [](const auto& each) { return each->ended(); }) &&
                         std::ranges::all_of(
                             servers_, [](const auto& each) { return each.pserver->Ended().has_value(); }));
    };
    const auto may_go_on = [&] {
      return std::ranges::any_of(processes_, [](const auto& each) { return each->MayGoOn(); });
    };
    while (!is_over()) {
      std::vector<KeyWorker*> ready;
      for (const auto& each : processes_) {
        if (each->MayGoOn()) ready.push_back(each.get());
      }
      std::ranges::shuffle(ready, net_.random());
      for (KeyWorker* each : ready) each->GoOn();
      if (!ready.empty()) continue;
      if (!net_.RunUntil([&] { return may_go_on() || is_over(); }, std::chrono::minutes(10))) return false;
    }
    return true;
  }
  // All processes are killed at this time, if they have not ended.
  void RunUntilKilled(Nanoseconds at) {
    net_.After(at, [this] { killed_ = true; });
    Run();
    for (const auto& each : processes_) {
      if (!each->ended()) each->Die();
    }
    for (const auto& each : processes_) {
      while (!each->ended()) each->GoOn();
    }
  }
  std::string Waiting() {
    std::string text;
    for (const auto& each : processes_)
      text += StrCat("\n  ", each->session().WaitingFor(), " ", each->result());
    return text;
  }
  Network& net() { return net_; }
  KeyServerProcess& server(int s) { return servers_[static_cast<std::size_t>(s)]; }

 private:
  void TickServer(int s) {
    server(s).pserver->Tick();
    net_.After(kTickEvery, [this, s] { TickServer(s); });
  }
  void TickWorker(KeyWorker& worker) {
    if (worker.died() || worker.ended()) return;
    worker.Tick();
    net_.After(kTickEvery, [this, &worker] { TickWorker(worker); });
  }

  const int workers_;
  Network net_;
  SimBlockRunner runner_;
  std::vector<std::string> addresses_;
  std::deque<KeyServerProcess> servers_;
  std::vector<std::unique_ptr<KeyWorker>> processes_;
  bool killed_ = false;
};

inline Tensor Filled(const Shape& shape, float value) {
  Tensor tensor(DType::kFp32, shape);
  std::ranges::fill(tensor.Span<float>(), value);
  return tensor;
}

}  // namespace penstock::test
