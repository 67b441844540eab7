// Jobs over real gRPC connections: servers and trainers as threads of this process, with a small block
// runner.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "executor/client/client.h"
#include "executor/pserver/loop.h"
#include "executor/rpc/grpc_client.h"
#include "executor/rpc/grpc_server.h"
#include "executor/rpc/grpc_transport.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"
#include "tests/support/free_port.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

ToyJob Job() {
  ToyJob job;
  job.servers = {StrCat("127.0.0.1:", FreePort()), StrCat("127.0.0.1:", FreePort())};
  job.params = {{.name = "big", .shape = {300, 1000}, .server = 0, .optimizer = "momentum"},
                {.name = "wide", .shape = {2, 1'500'000}, .server = 1, .optimizer = "sgd"},  // a row of 6 MB
                {.name = "b", .shape = {1}, .server = 1, .optimizer = "adam"}};
  return job;
}

// A server in a thread.
class Server {
 public:
  Server(const ToyJob& job, int index, std::string token = "secret", int mode = 0)
      : program_(job.Pserver(index)) {
    const OpEntry& serve = program_.main().ops().back();
    program_.MutableBlock(0).Replace(serve.id, Op(*serve.op).Set("distributed_mode", mode));
    job.Start(index, scope_);
    loop_ = MakeGrpcServer(SimOps(), runner_,
                           {.job = "job", .token = std::move(token), .threads = 2, .report = [](auto&) {}})
                .value();
    result_ = std::async(std::launch::async,
                         [this] { return loop_->Serve(program_, *program_.main().ops().back().op, scope_); });
  }
  ~Server() {
    loop_->Cancel();
    if (result_.valid()) result_.wait();
  }
  Status Join() { return result_.get(); }
  void Cancel() { loop_->Cancel(); }

 private:
  Program program_;
  Scope scope_;
  SimBlockRunner runner_;
  std::unique_ptr<ServerLoop> loop_;
  std::future<Status> result_;
};

struct TrainerOptions {
  int steps = 3;
  std::string token = "secret";
  bool complete = true;
  std::function<void(int)> before_step = [](int) {};
};

std::unique_ptr<RpcClient> Client(const TrainerOptions& options = {}) {
  return MakeGrpcClient({.job = "job", .token = options.token, .report = [](auto&) {}}).value();
}

Status RunSteps(const ToyJob& job, int id, RpcClient& client, const TrainerOptions& options,
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
    PENSTOCK_RETURN_IF_ERROR(client.EndStep(peers));
    PENSTOCK_RETURN_IF_ERROR(pull_all());
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto now = values[i].As<Tensor>().Span<float>();
    last[job.params[i].name].assign(now.begin(), now.end());
  }
  return options.complete ? client.Complete() : OkStatus();
}

// A trainer in a thread.
std::future<Status> Start(const ToyJob& job, int id, RpcClient& client, TrainerOptions options,
                          ToyValues& last) {
  return std::async(std::launch::async, [&job, id, &client, options = std::move(options), &last] {
    return RunSteps(job, id, client, options, last);
  });
}

TEST(GrpcJob, EndsInTheBytesOfOneThreadWhoeverStartsFirst) {
  const ToyJob job = Job();
  const ToyValues want = ToyReference(job, 3).back();
  const auto client0 = Client();
  const auto client1 = Client();
  ToyValues last0, last1;
  std::future<Status> trainer0 = Start(job, 0, *client0, {}, last0);  // it waits for servers to come up
  Server server1(job, 1);
  std::future<Status> trainer1 = Start(job, 1, *client1, {}, last1);
  Server server0(job, 0);
  EXPECT_TRUE(trainer0.get().ok());
  EXPECT_TRUE(trainer1.get().ok());
  for (const auto& [name, values] : want) {
    EXPECT_EQ(std::memcmp(last0[name].data(), values.data(), values.size() * sizeof(float)), 0) << name;
    EXPECT_EQ(std::memcmp(last1[name].data(), values.data(), values.size() * sizeof(float)), 0) << name;
  }
  EXPECT_TRUE(server0.Join().ok());
  EXPECT_TRUE(server1.Join().ok());
}

TEST(GrpcJob, ATrainerThatGoesWithoutCompletingIsNamedToTheOther) {
  const ToyJob job = Job();
  Server server0(job, 0), server1(job, 1);
  const auto client0 = Client();
  auto client1 = Client();
  ToyValues last0, last1;
  std::future<Status> trainer0 = Start(job, 0, *client0, {.steps = 100}, last0);
  EXPECT_TRUE(Start(job, 1, *client1, {.steps = 1, .complete = false}, last1).get().ok());
  client1.reset();
  const Status status = trainer0.get();
  EXPECT_EQ(status.id(), "E-peer-lost") << status.ToString();
  EXPECT_NE(status.message().find("trainer 1 is gone"), std::string::npos) << status.ToString();
  EXPECT_FALSE(server0.Join().ok());
  EXPECT_FALSE(server1.Join().ok());
}

TEST(GrpcJob, AServerThatGoesIsNamed) {
  const ToyJob job = Job();
  Server server0(job, 0);
  auto server1 = std::make_unique<Server>(job, 1);
  const auto client0 = Client();
  const auto client1 = Client();
  ToyValues last0, last1;
  const auto stop = [&](int step) {
    if (step == 1) server1.reset();
  };
  std::future<Status> trainer0 = Start(job, 0, *client0, {.steps = 100, .before_step = stop}, last0);
  std::future<Status> trainer1 = Start(job, 1, *client1, {.steps = 100}, last1);
  for (std::future<Status>* trainer : {&trainer0, &trainer1}) {
    const Status status = trainer->get();
    EXPECT_NE(status.ToString().find(job.servers[1]), std::string::npos) << status.ToString();
  }
  EXPECT_FALSE(server0.Join().ok());
}

TEST(GrpcJob, AWrongTokenIsRefusedAndDisturbsNobody) {
  const ToyJob job = Job();
  Server server0(job, 0), server1(job, 1);
  const auto client0 = Client();
  const auto client1 = Client();
  const auto stranger = Client({.token = "guess"});
  ToyValues last0, last1, none;
  const Status refused = Start(job, 0, *stranger, {.token = "guess"}, none).get();
  EXPECT_EQ(refused.id(), "E-rpc-token") << refused.ToString();
  std::future<Status> trainer0 = Start(job, 0, *client0, {}, last0);
  std::future<Status> trainer1 = Start(job, 1, *client1, {}, last1);
  EXPECT_TRUE(trainer0.get().ok());
  EXPECT_TRUE(trainer1.get().ok());
  EXPECT_TRUE(server0.Join().ok());
}

TEST(GrpcJob, AServerThatCannotServeTellsItsTrainersWhy) {
  const ToyJob job = Job();
  Server server0(job, 0, "secret", 1), server1(job, 1);
  const auto client0 = Client();
  const auto client1 = Client();
  ToyValues last0, last1;
  std::future<Status> trainer0 = Start(job, 0, *client0, {}, last0);
  std::future<Status> trainer1 = Start(job, 1, *client1, {}, last1);
  EXPECT_EQ(trainer0.get().id(), "E-server-mode");
  EXPECT_EQ(trainer1.get().id(), "E-server-mode");
  EXPECT_EQ(server0.Join().id(), "E-server-mode");
  server1.Cancel();
}

TEST(GrpcJob, AnAddressInUseIsAnError) {
  class Nobody : public ConnectionHandler {
    void OnMessage(const std::shared_ptr<Connection>&, Message) override {}
    void OnClosed(const std::shared_ptr<Connection>&, const Status&) override {}
  } nobody;
  const ToyJob job = Job();
  const auto transport = MakeGrpcTransport();
  const auto listener = transport->Listen(job.servers[0], nobody);
  ASSERT_TRUE(listener.ok());
  Server server(job, 0);
  const Status status = server.Join();
  EXPECT_EQ(status.id(), "E-rpc-bind");
  EXPECT_NE(status.message().find(job.servers[0]), std::string::npos);
}

TEST(GrpcJob, AnAddressThatCannotBeListenedOnIsToldApart) {
  for (const auto& [address, why] : {std::pair("nowhere.invalid:6174", "its host name does not resolve"),
                                     std::pair("192.0.2.1:6174", "the address is not this machine's"),
                                     std::pair("999.0.0.1:6174", "its host name does not resolve")}) {
    ToyJob job = Job();
    job.servers[0] = address;
    Server server(job, 0);
    const Status status = server.Join();
    EXPECT_EQ(status.id(), "E-rpc-bind");
    EXPECT_NE(status.message().find(StrCat("cannot listen on ", address, ": ", why)), std::string::npos)
        << status.ToString();
  }
}

TEST(GrpcJob, AHostThatDoesNotResolveIsSaidAtOnceAndWaitedFor) {
  ToyJob job = Job();
  job.servers[1] = "nowhere.invalid:6174";
  std::promise<std::string> said;
  const auto client = MakeGrpcClient({.job = "job",
                                      .token = "secret",
                                      .report =
                                          [&](const std::string& line) {
                                            said.set_value(line);  // once: it would throw the second time
                                          }})
                          .value();
  ToyValues none;
  std::future<Status> trainer = Start(job, 0, *client, {}, none);
  std::future<std::string> line = said.get_future();
  ASSERT_EQ(line.wait_for(seconds(9)), std::future_status::ready);  // earlier than the first report of a wait
  EXPECT_EQ(line.get(),
            "cannot reach pserver nowhere.invalid:6174, and goes on trying: its host name does not resolve");
  client->Cancel();
  EXPECT_EQ(trainer.get().code(), StatusCode::kCancelled);
}

TEST(GrpcJob, WhatEndsATrainerIsToldToTheOthersInItsWords) {
  const ToyJob job = Job();
  Server server0(job, 0), server1(job, 1);
  const auto client0 = Client();
  const auto client1 = Client();
  ToyValues last0, last1;
  std::future<Status> trainer0 = Start(job, 0, *client0, {.steps = 100}, last0);
  EXPECT_TRUE(Start(job, 1, *client1, {.steps = 1, .complete = false}, last1).get().ok());
  Status why = FailedPrecondition("E-trainer-raised", "ValueError: the data ran out");
  client1->Abandon(why.With("train.py:17 in main: feed = next(batches)"));
  for (const Status& status : {trainer0.get(), server0.Join(), server1.Join()}) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_EQ(status.ToString(),
              "trainer 1 failed: ValueError: the data ran out   [E-peer-failed]\n"
              "  train.py:17 in main: feed = next(batches)");
  }
}

TEST(GrpcJob, AServerThatIsInterruptedIsAPeersErrorToTheOthers) {
  const ToyJob job = Job();
  Server server0(job, 0), server1(job, 1);
  const auto client0 = Client();
  const auto client1 = Client();
  ToyValues last0, last1;
  const auto interrupt = [&](int step) {
    if (step == 1) server1.Cancel();
  };
  std::future<Status> trainer0 = Start(job, 0, *client0, {.steps = 100, .before_step = interrupt}, last0);
  std::future<Status> trainer1 = Start(job, 1, *client1, {.steps = 100}, last1);
  for (const Status& status : {trainer0.get(), trainer1.get(), server0.Join()}) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
    EXPECT_EQ(status.message(), StrCat("pserver ", job.servers[1], " was interrupted"));
  }
  EXPECT_EQ(server1.Join().code(), StatusCode::kCancelled);
}

TEST(GrpcJob, WaitingCallsReturnWhenCancelled) {
  const ToyJob job = Job();
  const auto client = Client();  // no server will ever come
  ToyValues none;
  std::future<Status> trainer = Start(job, 0, *client, {}, none);
  EXPECT_EQ(trainer.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  client->Cancel();
  ASSERT_EQ(trainer.wait_for(seconds(1)), std::future_status::ready);
  EXPECT_EQ(trainer.get().code(), StatusCode::kCancelled);
}

TEST(GrpcJob, ServeReturnsWhenCancelled) {
  const ToyJob job = Job();
  Server server(job, 0);
  server.Cancel();
  EXPECT_EQ(server.Join().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace penstock::test
