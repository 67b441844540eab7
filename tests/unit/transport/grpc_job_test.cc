// Jobs over real gRPC connections: servers and trainers as threads of this process, with a simple block
// runner.
#include "tests/unit/transport/grpc_job.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <thread>

#include "executor/transport/grpc_transport.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

TEST(GrpcJob, EqualsTheOneThreadReferenceInAnyStartOrder) {
  const ToyJob job = Job();
  const ToyValues want = ToyReference(job, 3).back();
  const auto client0 = Client();
  const auto client1 = Client();
  ToyValues last0, last1;
  std::future<Status> trainer0 = Start(job, 0, *client0, {}, last0);  // it waits for servers to come up
  ServerThread server1(job, 1);
  std::future<Status> trainer1 = Start(job, 1, *client1, {}, last1);
  ServerThread server0(job, 0);
  EXPECT_TRUE(trainer0.get().ok());
  EXPECT_TRUE(trainer1.get().ok());
  for (const auto& [name, values] : want) {
    EXPECT_EQ(std::memcmp(last0[name].data(), values.data(), values.size() * sizeof(float)), 0) << name;
    EXPECT_EQ(std::memcmp(last1[name].data(), values.data(), values.size() * sizeof(float)), 0) << name;
  }
  EXPECT_TRUE(server0.Join().ok());
  EXPECT_TRUE(server1.Join().ok());
}

TEST(GrpcJob, ALostTrainerIsReportedToTheOther) {
  const ToyJob job = Job();
  ServerThread server0(job, 0), server1(job, 1);
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

TEST(GrpcJob, ALostServerIsReported) {
  const ToyJob job = Job();
  ServerThread server0(job, 0);
  auto server1 = std::make_unique<ServerThread>(job, 1);
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

TEST(GrpcJob, AWrongTokenIsRefusedWithoutEffectOnTheJob) {
  const ToyJob job = Job();
  ServerThread server0(job, 0), server1(job, 1);
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

TEST(GrpcJob, ServerStartErrorsReachTrainers) {
  const ToyJob job = Job();
  ServerThread server0(job, 0, {.token = "secret"}, 4), server1(job, 1);
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
  const auto transport = transport::MakeGrpcTransport({.token = "secret"});
  const auto listener = transport->Listen(job.servers[0], nobody);
  ASSERT_TRUE(listener.ok());
  ServerThread server(job, 0);
  const Status status = server.Join();
  EXPECT_EQ(status.id(), "E-rpc-bind");
  EXPECT_NE(status.message().find(job.servers[0]), std::string::npos);
}

TEST(GrpcJob, AnUnbindableAddressHasItsOwnError) {
  ToyJob job = Job();
  job.servers = {"nowhere.invalid:6174", "192.0.2.1:6174"};
  ServerThread nameless(job, 0), elsewhere(job, 1);
  const Status unknown = nameless.Join();
  EXPECT_EQ(unknown.id(), "E-rpc-resolve");
  EXPECT_EQ(unknown.message().rfind("host name \"nowhere.invalid\" is not known: ", 0), 0u)
      << unknown.ToString();
  EXPECT_EQ(elsewhere.Join().ToString(),
            "cannot listen on 192.0.2.1:6174: the address is not this machine's   [E-rpc-bind]");
}

TEST(GrpcJob, AnUnresolvableHostIsReportedAndRetried) {
  ToyJob job = Job();
  job.servers[1] = "nowhere.invalid:6174";
  std::promise<std::string> said;
  const auto report = [&](const std::string& line) {
    said.set_value(line);
  };  // only once: a second call throws
  const auto client = process::MakeGrpcClient({.job = "job", .token = "secret", .report = report}).value();
  ToyValues none;
  std::future<Status> trainer = Start(job, 0, *client, {}, none);
  std::future<std::string> line = said.get_future();
  ASSERT_EQ(line.wait_for(seconds(9)), std::future_status::ready);  // earlier than the first report of a wait
  EXPECT_EQ(line.get().rfind("pserver nowhere.invalid:6174: host name \"nowhere.invalid\" is not known: ", 0),
            0u);
  client->Cancel();
  EXPECT_EQ(trainer.get().code(), StatusCode::kCancelled);
}

TEST(GrpcJob, ATrainersErrorReachesTheOthers) {
  const ToyJob job = Job();
  ServerThread server0(job, 0), server1(job, 1);
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

TEST(GrpcJob, AnInterruptedServerIsAPeerErrorForOthers) {
  const ToyJob job = Job();
  ServerThread server0(job, 0), server1(job, 1);
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
  const auto client = Client();  // no server is ever started
  ToyValues none;
  std::future<Status> trainer = Start(job, 0, *client, {}, none);
  EXPECT_EQ(trainer.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  client->Cancel();
  ASSERT_EQ(trainer.wait_for(seconds(1)), std::future_status::ready);
  EXPECT_EQ(trainer.get().code(), StatusCode::kCancelled);
}

TEST(GrpcJob, ServeReturnsWhenCancelled) {
  const ToyJob job = Job();
  ServerThread server(job, 0);
  server.Cancel();
  EXPECT_EQ(server.Join().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace penstock::test
