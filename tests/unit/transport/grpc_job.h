// Runs a job over real gRPC connections: servers and trainers are threads of this process, with a simple
// block runner.
//
//   Server server0(job, 0), server1(job, 1);
//   const auto client = Client();
//   std::future<Status> trainer = Start(job, 0, *client, {}, last);
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/process/grpc_client.h"
#include "executor/process/grpc_server.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"
#include "tests/support/free_port.h"

namespace penstock::test {

inline ToyJob Job() {
  ToyJob job;
  job.servers = {StrCat("127.0.0.1:", FreePort()), StrCat("127.0.0.1:", FreePort())};
  job.params = {{.name = "big", .shape = {300, 1000}, .server = 0, .optimizer = "momentum"},
                {.name = "wide", .shape = {2, 1'500'000}, .server = 1, .optimizer = "sgd"},  // a row of 6 MB
                {.name = "b", .shape = {1}, .server = 1, .optimizer = "adam"}};
  return job;
}

// How long a lost peer is waited for. All peers are threads of this process, which lives as long as the test.
inline constexpr Nanoseconds kReconnectDeadline = std::chrono::milliseconds(500);

// The transport of this test run, from PENSTOCK_TRANSPORT.
inline std::string CarrierUnderTest() {
  const char* carrier = std::getenv("PENSTOCK_TRANSPORT");
  return carrier == nullptr ? "" : carrier;
}

// Reported lines. Thread-safe.
class Lines {
 public:
  std::function<void(const std::string&)> sink() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      text_ += line + "\n";
      changed_.notify_all();
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  std::size_t count() const {
    const std::string now = text();
    return static_cast<std::size_t>(std::count(now.begin(), now.end(), '\n'));
  }
  // Waits for a line that contains `part`; false if none comes within 30 s.
  bool Has(const std::string& part) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return text_.find(part) != std::string::npos; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string text_;
};

// A server on a thread.
class ServerThread {
 public:
  ServerThread(const ToyJob& job, int index, process::GrpcServerOptions options = {.token = "secret"},
               int mode = 0)
      : program_(job.Pserver(index)) {
    const OpEntry& serve = program_.main().ops().back();
    program_.MutableBlock(0).Replace(serve.id, Op(*serve.op).Set("distributed_mode", mode));
    job.Start(index, scope_);
    options.job = "job";
    options.threads = 2;
    options.reconnect_deadline = kReconnectDeadline;
    options.report = lines_.sink();
    if (options.carrier.empty()) options.carrier = CarrierUnderTest();
    loop_ = process::MakeGrpcServer(SimOps(), runner_, std::move(options)).value();
    result_ = std::async(std::launch::async,
                         [this] { return loop_->Serve(program_, *program_.main().ops().back().op, scope_); });
  }
  ~ServerThread() {
    loop_->Cancel();
    if (result_.valid()) result_.wait();
  }
  Status Join() { return result_.get(); }
  void Cancel() { loop_->Cancel(); }
  // The lines that it has reported.
  const Lines& lines() const { return lines_; }

 private:
  Lines lines_;
  Program program_;
  Scope scope_;
  SimBlockRunner runner_;
  std::unique_ptr<ServerLoop> loop_;
  std::future<Status> result_;
};

struct TrainerOptions {
  int steps = 3;
  std::string token = "secret";
  transport::TlsFiles tls = {};
  std::string wire = {};
  bool complete = true;
  std::function<void(int)> before_step = [](int) {};
};

inline std::unique_ptr<RpcClient> Client(const TrainerOptions& options = {}) {
  return process::MakeGrpcClient({.job = "job",
                                  .token = options.token,
                                  .reconnect_deadline = kReconnectDeadline,
                                  .tls = options.tls,
                                  .carrier = CarrierUnderTest(),
                                  .wire = options.wire,
                                  .report = [](auto&) {}})
      .value();
}

inline Status RunSteps(const ToyJob& job, int id, RpcClient& client, const TrainerOptions& options,
                       ToyValues& last) {
  const auto remote = [&](const ToyParam& param, const std::string& name) {
    return RemotePiece{job.servers[static_cast<std::size_t>(param.server)], name, DType::kFp32, param.shape,
                       id};
  };
  PENSTOCK_RETURN_IF_ERROR(client.Attach(job.TrainerStartup(id)));
  PENSTOCK_ASSIGN_OR_RETURN(const PeersHandle peers, client.DeclarePeers(job.servers, id));
  std::vector<Variable> values(job.params.size());
  std::vector<PullHandle> pulls;
  for (const ToyParam& param : job.params) {
    PENSTOCK_ASSIGN_OR_RETURN(const PullHandle pull, client.DeclarePull(remote(param, param.name)));
    pulls.push_back(pull);
  }
  const auto pull_all = [&]() -> Status {
    for (std::size_t i = 0; i < pulls.size(); ++i) PENSTOCK_RETURN_IF_ERROR(client.Pull(pulls[i], values[i]));
    return client.CompletePulls(peers);
  };
  PENSTOCK_RETURN_IF_ERROR(pull_all());
  PENSTOCK_RETURN_IF_ERROR(client.Attach(job.Trainer(id)));
  std::vector<PushHandle> pushes;
  for (const ToyParam& param : job.params) {
    PENSTOCK_ASSIGN_OR_RETURN(const PushHandle push,
                              client.DeclarePush(remote(param, job.GradName(param, id))));
    pushes.push_back(push);
  }
  for (int step = 0; step < options.steps; ++step) {
    options.before_step(step);
    for (std::size_t i = 0; i < pushes.size(); ++i) {
      const auto now = values[i].As<Tensor>().Span<float>();
      const auto gradient =
          ToyGradient({now.begin(), now.end()}, job.params[i].name, id, static_cast<std::uint64_t>(step));
      Variable value;
      value.As<Tensor>() = Tensor(DType::kFp32, job.params[i].shape);
      std::copy(gradient.begin(), gradient.end(), value.As<Tensor>().Span<float>().begin());
      PENSTOCK_RETURN_IF_ERROR(client.Push(pushes[i], value));
    }
    if (job.async && job.lr_block) PENSTOCK_RETURN_IF_ERROR(client.CountStep(peers));
    if (!job.async) PENSTOCK_RETURN_IF_ERROR(client.EndStep(peers));
    PENSTOCK_RETURN_IF_ERROR(pull_all());
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto now = values[i].As<Tensor>().Span<float>();
    last[job.params[i].name].assign(now.begin(), now.end());
  }
  return options.complete ? client.Complete() : OkStatus();
}

// Starts a trainer on a thread.
inline std::future<Status> Start(const ToyJob& job, int id, RpcClient& client, TrainerOptions options,
                                 ToyValues& last) {
  return std::async(std::launch::async, [&job, id, &client, options = std::move(options), &last] {
    return RunSteps(job, id, client, options, last);
  });
}

}  // namespace penstock::test
