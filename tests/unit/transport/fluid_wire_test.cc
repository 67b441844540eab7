// Jobs on Fluid's wire: our servers and trainers as threads of this process, and calls like those of Fluid's
// trainers.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>

#include "executor/protocol/fluid_message.h"
#include "executor/pserver/service/wire.h"
#include "executor/transport/unary.h"
#include "framework/text/policies.h"
#include "tests/unit/transport/grpc_job.h"

namespace penstock::test {
namespace {

using protocol::FluidTensor;
using protocol::VariableMessage;
using namespace std::chrono_literals;

process::GrpcServerOptions FluidServer() { return {.wire = "fluid"}; }
TrainerOptions FluidTrainer(int steps) { return {.steps = steps, .wire = "fluid"}; }

class NoEvents : public pserver::EventHandler {
 public:
  void OnEvent(const std::shared_ptr<pserver::Caller>&, const protocol::Sender&, protocol::Event) override {}
  void OnUnreadable(const std::shared_ptr<pserver::Caller>&, const Status&) override {}
  void OnClosed(const std::shared_ptr<pserver::Caller>&, const Status&) override {}
  void OnNoMemory() override {}
};

TEST(FluidWire, RefusesGeoSgdServers) {
  NoEvents handler;
  pserver::FluidWire wire("job", [](const std::string&) {});
  pserver::Served served;
  served.role.address = "127.0.0.1:1";
  served.role.mode = roles::ServeMode::kGeo;
  EXPECT_EQ(wire.Listen(served, handler).status().id(), "E-server-mode");
}

TEST(FluidWire, RefusesServersWithBackupTrainers) {
  NoEvents handler;
  pserver::FluidWire wire("job", [](const std::string&) {});
  EXPECT_EQ(wire.Listen({.role = {}, .backup_trainers = 1}, handler).status().id(), "E-contract-policy");
}

TEST(FluidWire, TrainersRefuseFeaturesOfTheNativeWire) {
  const auto client = Client(FluidTrainer(1));
  ToyJob job = Job();
  for (const char* policy : {kStalenessPolicy, kBackupTrainersPolicy}) {
    Program program = job.Trainer(0);
    program.mutable_meta().policies[policy] = "1";
    EXPECT_EQ(client->Attach(program).id(), "E-contract-policy") << policy;
  }
  Program by_communicator;
  by_communicator.MutableBlock(0).Append(Op("send")
                                             .AddInput("X", {"w@GRAD"})
                                             .Set("epmap", std::vector<std::string>{"127.0.0.1:1"})
                                             .Set("send_varnames", std::vector<std::string>{"w@GRAD"})
                                             .Set("sections", std::vector<std::int64_t>{4}));
  EXPECT_EQ(client->Attach(by_communicator).id(), "E-contract-mode");
}

// A program without its facts does not declare compression when it is attached, but its `send` has a
// residual.
TEST(FluidWire, TrainersRefuseCompression) {
  const auto client = Client(FluidTrainer(1));
  const ToyJob job = Job();
  ASSERT_TRUE(client->Attach(job.Trainer(0)).ok());
  const ToyParam& param = job.params.front();
  const PushHandle push =
      client->DeclarePush({.pserver = job.servers[0], .name = job.GradName(param, 0), .shape = param.shape})
          .value();
  const Tensor gradient(DType::kFp32, param.shape), residual(DType::kFp32, param.shape);
  EXPECT_EQ(client->PushWithResidual(push, gradient, residual).id(), "E-send-compressed");
}

TEST(FluidWire, EqualsTheOneThreadReferenceInAnyStartOrder) {
  const ToyJob job = Job();
  const ToyValues want = ToyReference(job, 3).back();
  const auto client0 = Client(FluidTrainer(3));
  const auto client1 = Client(FluidTrainer(3));
  ToyValues last0, last1;
  std::future<Status> trainer0 = Start(job, 0, *client0, FluidTrainer(3), last0);
  ServerThread server1(job, 1, FluidServer());
  std::future<Status> trainer1 = Start(job, 1, *client1, FluidTrainer(3), last1);
  ServerThread server0(job, 0, FluidServer());
  for (std::future<Status>* trainer : {&trainer0, &trainer1}) {
    const Status status = trainer->get();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  for (const auto& [name, values] : want) {
    ASSERT_EQ(last0[name].size(), values.size());
    EXPECT_EQ(std::memcmp(last0[name].data(), values.data(), values.size() * sizeof(float)), 0) << name;
    EXPECT_EQ(std::memcmp(last1[name].data(), values.data(), values.size() * sizeof(float)), 0) << name;
  }
  for (ServerThread* server : {&server0, &server1}) {
    EXPECT_TRUE(server->lines().Has("no exactly-once"));
    const Status status = server->Join();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(FluidWire, ATrainerThatCompletesEarlierCountsAsZeros) {
  ToyJob job = Job();
  ServerThread server0(job, 0, FluidServer()), server1(job, 1, FluidServer());
  const auto client0 = Client(FluidTrainer(3));
  const auto client1 = Client(FluidTrainer(1));
  ToyValues last0, last1;
  std::future<Status> trainer0 = Start(job, 0, *client0, FluidTrainer(3), last0);
  std::future<Status> trainer1 = Start(job, 1, *client1, FluidTrainer(1), last1);
  EXPECT_TRUE(trainer1.get().ok());
  EXPECT_TRUE(trainer0.get().ok());
  EXPECT_TRUE(server0.Join().ok());
  EXPECT_TRUE(server1.Join().ok());
}

// --- Calls as our trainers make them.

// A server with a single trainer that records its calls.
class Recorder : public transport::UnaryHandler {
 public:
  void OnCall(const std::string& /*caller*/, const std::string& method, Payload request,
              transport::UnaryDone done) override {
    const VariableMessage message = *protocol::ReadVariableMessage(request);
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(StrCat(method, " ", message.varname, " of ", message.trainer_id));
    }
    if (message.varname == protocol::kFetchBarrier) return done(transport::UnaryReply());
    if (!StartsWith(method, "Get")) return done(transport::UnaryReply(Payload()));
    VariableMessage reply{.varname = message.out_varname};
    reply.tensor = FluidTensor::Of(Tensor(DType::kFp32, {2, 1}));
    done(transport::UnaryReply(*protocol::WriteVariableMessage(reply)));
  }
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
};

ToyJob OneParam() {
  ToyJob job;
  job.servers = {StrCat("127.0.0.1:", FreePort())};
  job.params = {{.name = "w", .shape = {2, 1}, .server = 0, .optimizer = "sgd"}};
  return job;
}

// A server to which the connection breaks a given number of times.
class Flaky : public Recorder {
 public:
  explicit Flaky(int breaks) : breaks_(breaks) {}
  void OnCall(const std::string& caller, const std::string& method, Payload request,
              transport::UnaryDone done) override {
    if (breaks_-- > 0) return done(Unavailable("E-test-broken", "the connection broke"));
    Recorder::OnCall(caller, method, std::move(request), std::move(done));
  }

 private:
  std::atomic<int> breaks_;
};

// wire.md, section 6.
TEST(FluidWire, CallsAreRetriedThreeTimesAfterBrokenConnections) {
  for (const int breaks : {3, 4}) {
    const ToyJob job = OneParam();
    Flaky flaky(breaks);
    const Result<std::unique_ptr<Listener>> server = transport::ListenUnary(
        job.servers[0], flaky, {.service = protocol::kFluidService, .methods = {"GetVariable"}});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    const auto client = Client(FluidTrainer(0));
    ToyValues last;
    const Status status = RunSteps(job, 0, *client, {.steps = 0, .wire = "fluid", .complete = false}, last);
    EXPECT_EQ(status.ok(), breaks == 3) << status.ToString();
    if (status.ok()) continue;
    EXPECT_EQ(status.id(), "E-rpc-unavailable");
    EXPECT_EQ(status.message().find("GetVariable of w: pserver 127.0.0.1"), 0u) << status.message();
  }
}

std::string GradOf(int trainer) { return OneParam().GradName(OneParam().params[0], trainer); }

// wire.md, section 5.1. Barriers do not contain the trainer.
TEST(FluidWire, TrainersCallInFluidsOrder) {
  const ToyJob job = OneParam();
  Recorder recorder;
  const Result<std::unique_ptr<Listener>> server =
      transport::ListenUnary(job.servers[0], recorder,
                             {.service = protocol::kFluidService,
                              .methods = {"SendVariable", "GetVariable", "GetVariableNoBarrier"}});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const auto client = Client(FluidTrainer(2));
  ToyValues last;
  EXPECT_TRUE(RunSteps(job, 1, *client, FluidTrainer(2), last).ok());
  std::vector<std::string> want = {"GetVariable w of 1", "GetVariable FETCH_BARRIER@RECV of 0"};
  for (int step = 0; step < 2; ++step) {
    for (const std::string& call :
         {StrCat("SendVariable ", GradOf(1), " of 1"), std::string("SendVariable BATCH_BARRIER@RECV of 0"),
          std::string("GetVariable w of 1"), std::string("GetVariable FETCH_BARRIER@RECV of 0")}) {
      want.push_back(call);
    }
  }
  want.emplace_back("SendVariable COMPLETE@RECV of 1");
  EXPECT_EQ(recorder.calls(), want);
}

// Section 5.2, with a schedule of the learning rate.
TEST(FluidWire, AsyncTrainersCallInFluidsOrder) {
  ToyJob job = OneParam();
  job.async = job.lr_block = true;
  Recorder recorder;
  const Result<std::unique_ptr<Listener>> server = transport::ListenUnary(
      job.servers[0], recorder,
      {.service = protocol::kFluidService, .methods = {"SendVariable", "GetVariable", "DistributeNotify"}});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const auto client = Client(FluidTrainer(1));
  ToyValues last;
  const Status status = RunSteps(job, 1, *client, FluidTrainer(1), last);
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::vector<std::string> calls = recorder.calls();
  ASSERT_EQ(calls.size(), 6u);
  std::sort(calls.begin() + 2, calls.begin() + 4);  // they are concurrent
  const std::vector<std::string> want = {"GetVariable w of 1",
                                         "GetVariable FETCH_BARRIER@RECV of 0",
                                         StrCat("DistributeNotify ", ToyCounter(1), " of 1"),
                                         StrCat("SendVariable ", job.GradName(job.params[0], 1), " of 1"),
                                         "GetVariable w of 1",
                                         "SendVariable COMPLETE@RECV of 1"};
  EXPECT_EQ(calls, want);
}

// A request between two steps, for saving, has no phase (section 5.6).
TEST(FluidWire, APullOutsideOfAStepNeedsNoPhase) {
  const ToyJob job = OneParam();
  Recorder recorder;
  const Result<std::unique_ptr<Listener>> server =
      transport::ListenUnary(job.servers[0], recorder,
                             {.service = protocol::kFluidService,
                              .methods = {"SendVariable", "GetVariable", "GetVariableNoBarrier"}});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const auto client = Client(FluidTrainer(0));
  ToyValues last;
  EXPECT_TRUE(RunSteps(job, 0, *client, {.steps = 0, .wire = "fluid", .complete = false}, last).ok());
  const PullHandle pull = client->DeclarePull({job.servers[0], "w", DType::kFp32, {2, 1}, 0}).value();
  Variable value;
  EXPECT_TRUE(client->Pull(pull, value).ok());
  EXPECT_TRUE(client->CompletePulls(client->DeclarePeers(job.servers, 0).value()).ok());
  EXPECT_EQ(recorder.calls().back(), "GetVariableNoBarrier w@WITHOUT_BARRIER@RECV of 0");
}

// --- Calls as Fluid's trainers make them.

class Trainer {
 public:
  Trainer(const std::string& address, int id)
      : id_(id), client_(transport::MakeUnaryClient(address, protocol::kFluidService)) {}

  using Answer = std::future<Result<transport::UnaryReply>>;
  Answer Call(const std::string& method, const VariableMessage& message) {
    auto promise = std::make_shared<std::promise<Result<transport::UnaryReply>>>();
    client_->Call(method, *protocol::WriteVariableMessage(message), 60s,
                  [promise](Result<transport::UnaryReply> reply) { promise->set_value(std::move(reply)); });
    return promise->get_future();
  }
  Answer Get(const std::string& name) {
    return Call("GetVariable", {.varname = name, .out_varname = name, .trainer_id = id_});
  }
  Answer Send(const std::string& name, const FluidTensor& value) {
    return Call("SendVariable", {.varname = name, .tensor = value, .trainer_id = id_});
  }
  Answer BatchBarrier() { return Call("SendVariable", {.varname = protocol::kBatchBarrier}); }
  Answer FetchBarrier() { return Call("GetVariable", {.varname = protocol::kFetchBarrier}); }
  Answer Complete() { return Call("SendVariable", {.varname = protocol::kFluidComplete, .trainer_id = id_}); }
  int id() const { return id_; }

 private:
  const int id_;
  const std::unique_ptr<transport::UnaryClient> client_;
};

bool IsReady(const Trainer::Answer& answer) { return answer.wait_for(0s) == std::future_status::ready; }

FluidTensor Floats(const std::vector<float>& values) {
  Tensor tensor(DType::kFp32, {static_cast<Dim>(values.size()), 1});
  std::copy(values.begin(), values.end(), tensor.Span<float>().begin());
  return FluidTensor::Of(tensor);
}

VariableMessage MessageOf(Trainer::Answer answer) {
  const Result<transport::UnaryReply> reply = answer.get();
  EXPECT_TRUE(reply.ok()) << reply.status().ToString();
  if (!reply.ok() || !reply->has_value()) return {};
  const Result<VariableMessage> message = protocol::ReadVariableMessage(**reply);
  EXPECT_TRUE(message.ok()) << message.status().ToString();
  return *message;
}

// wire.md, section 5.1, with two trainers.
TEST(FluidWire, PhasesDelayCallsAsInFluid) {
  const ToyJob job = OneParam();
  ServerThread server(job, 0, FluidServer());
  Trainer t0(job.servers[0], 0), t1(job.servers[0], 1);
  const VariableMessage start = MessageOf(t0.Get("w"));
  EXPECT_EQ(start.varname, "w");
  EXPECT_EQ(start.tensor->shape, (Shape{2, 1}));

  const Result<transport::UnaryReply> fetched = t0.FetchBarrier().get();
  EXPECT_TRUE(fetched.ok() && !fetched->has_value()) << "a fetch barrier is answered without a message";
  // Trainer 0 is ahead: its gradient is stored, its call waits for phase SEND.
  Trainer::Answer early = t0.Send(GradOf(0), Floats({1, 2}));
  (void)MessageOf(t1.Get("w"));
  EXPECT_FALSE(IsReady(early));
  EXPECT_TRUE(t1.FetchBarrier().get().ok());
  const Result<transport::UnaryReply> stored = early.get();
  ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  EXPECT_TRUE(stored->has_value() && (*stored)->size() == 0) << "an empty message";

  EXPECT_TRUE(t0.BatchBarrier().get().ok());
  Trainer::Answer next = t0.Get("w");  // waits for trainer 1
  EXPECT_TRUE(t1.Send(GradOf(1), Floats({3, 4})).get().ok());
  EXPECT_FALSE(IsReady(next));
  EXPECT_TRUE(t1.BatchBarrier().get().ok());
  const VariableMessage after = MessageOf(std::move(next));
  EXPECT_NE(after.tensor->values.ToText(), start.tensor->values.ToText());
  EXPECT_EQ(MessageOf(t1.Get("w")).tensor->values.ToText(), after.tensor->values.ToText());

  EXPECT_TRUE(t0.FetchBarrier().get().ok());
  EXPECT_TRUE(t1.FetchBarrier().get().ok());
  // Requests for saving come in phase SEND.
  const VariableMessage saved = MessageOf(t0.Call(
      "GetVariableNoBarrier", {.varname = StrCat("w", protocol::kWithoutBarrier), .out_varname = "saved"}));
  EXPECT_EQ(saved.varname, "saved");
  EXPECT_EQ(saved.tensor->values.ToText(), after.tensor->values.ToText());
  EXPECT_TRUE(t0.Complete().get().ok());
  EXPECT_TRUE(t1.Complete().get().ok());
  EXPECT_TRUE(server.Join().ok());
}

// Requests that crash Fluid's server get an error here, and the job continues.
TEST(FluidWire, InvalidCallsAreRefusedWithoutEffectOnTheJob) {
  const ToyJob job = OneParam();
  ServerThread server(job, 0, FluidServer());
  Trainer t0(job.servers[0], 0), t1(job.servers[0], 1), stranger(job.servers[0], 7);
  const auto error = [](Trainer::Answer answer) { return answer.get().status().message(); };
  (void)MessageOf(t0.Get("w"));
  EXPECT_NE(error(t0.Get("v")).find("holds no variable \"v\"   [E-wire-variable]"), std::string::npos);
  EXPECT_NE(error(stranger.Get("w")).find("trainer_id 7 is out of range"), std::string::npos);
  EXPECT_NE(error(t0.Send(GradOf(0), Floats({1, 2, 3}))).find("[E-wire-variable]"), std::string::npos);
  EXPECT_NE(error(t0.Send("nothing", Floats({1}))).find("takes no variable"), std::string::npos);
  EXPECT_NE(error(t0.Call("PrefetchVariable", {.varname = "ids", .tensor = Floats({1}), .table_name = "t"}))
                .find("holds no table"),
            std::string::npos);
  EXPECT_NE(error(t0.Call("DistributeNotify", {.varname = "counter"})).find("code 13"), std::string::npos);
  EXPECT_NE(error(t0.Call("CheckpointNotify", {.varname = protocol::kSaveNotify})).find("E-wire-save"),
            std::string::npos);

  const VariableMessage start = MessageOf(t1.Get("w"));
  for (Trainer* trainer : {&t0, &t1}) EXPECT_TRUE(trainer->FetchBarrier().get().ok());
  EXPECT_TRUE(t0.Send(GradOf(0), Floats({1, 2})).get().ok());
  EXPECT_TRUE(t1.Send(GradOf(1), Floats({3, 4})).get().ok());
  for (Trainer* trainer : {&t0, &t1}) EXPECT_TRUE(trainer->BatchBarrier().get().ok());
  EXPECT_NE(MessageOf(t0.Get("w")).tensor->values.ToText(), start.tensor->values.ToText());
  for (Trainer* trainer : {&t0, &t1}) EXPECT_TRUE(trainer->Complete().get().ok());
  EXPECT_TRUE(server.Join().ok());
}

// --- Asynchronous jobs.

constexpr int kAsyncMode = 2;

std::vector<float> FloatsOf(const VariableMessage& message) {
  const std::string bytes = message.tensor->values.ToText();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(FluidWire, ALoneAsyncTrainerEqualsTheOneThreadReference) {
  ToyJob job = Job();
  job.trainers = 1;
  const ToyValues want = ToyReference(job, 3).back();
  job.async = true;
  ServerThread server0(job, 0, FluidServer(), kAsyncMode), server1(job, 1, FluidServer(), kAsyncMode);
  const auto client = Client(FluidTrainer(3));
  ToyValues last;
  const Status status = RunSteps(job, 0, *client, FluidTrainer(3), last);
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (const auto& [name, values] : want)
    EXPECT_EQ(std::memcmp(last[name].data(), values.data(), values.size() * sizeof(float)), 0) << name;
  for (ServerThread* server : {&server0, &server1}) {
    const Status ended = server->Join();
    EXPECT_TRUE(ended.ok()) << ended.ToString();
  }
}

// wire.md, section 5.2: gradients have one name, barriers mean nothing, a notification moves the schedule on.
TEST(FluidWire, AnAsyncStepSendsGradientNotificationAndGet) {
  ToyJob job = OneParam();
  job.async = job.lr_block = true;
  ServerThread server(job, 0, FluidServer(), kAsyncMode);
  Trainer t0(job.servers[0], 0), t1(job.servers[0], 1);
  const std::string gradient = job.GradName(job.params[0], 0);
  const auto notify = [](Trainer& trainer, const std::string& counter, std::int64_t steps) {
    Tensor value(DType::kInt64, {1});
    value.Data<std::int64_t>()[0] = steps;
    return trainer
        .Call("DistributeNotify",
              {.varname = counter, .tensor = FluidTensor::Of(value), .trainer_id = trainer.id()})
        .get();
  };
  const std::vector<float> start = FloatsOf(MessageOf(t0.Get("w")));
  EXPECT_TRUE(t0.FetchBarrier().get().ok());
  EXPECT_TRUE(t0.Send(gradient, Floats({1, 2})).get().ok());
  EXPECT_TRUE(notify(t0, ToyCounter(0), 1).ok());
  const std::vector<float> first = FloatsOf(MessageOf(t0.Get("w")));
  EXPECT_FLOAT_EQ(first[1], start[1] - 0.05f * 2) << "the schedule halves the rate before the first update";
  EXPECT_TRUE(t0.BatchBarrier().get().ok());
  EXPECT_TRUE(t1.Send(gradient, Floats({1, 2})).get().ok()) << "nobody waits for trainer 0";
  const std::vector<float> second = FloatsOf(MessageOf(t1.Get("w")));
  EXPECT_FLOAT_EQ(second[1], first[1] - 0.025f * 2);
  EXPECT_TRUE(notify(t1, ToyCounter(1), 3).ok()) << "what a communicator adds up";
  EXPECT_TRUE(t1.Send(gradient, Floats({1, 2})).get().ok());
  const std::vector<float> third = FloatsOf(MessageOf(t1.Get("w")));
  EXPECT_FLOAT_EQ(third[1], second[1] - 0.025f / 4 * 2)
      << "the third step is open, and counts when it is over";

  EXPECT_NE(notify(t0, ToyCounter(1), 1).status().message().find("E-wire-variable"), std::string::npos);
  EXPECT_NE(notify(t0, ToyCounter(0), 0).status().message().find("from 1 to 1024 steps"), std::string::npos);
  for (Trainer* trainer : {&t0, &t1}) EXPECT_TRUE(trainer->Complete().get().ok());
  EXPECT_TRUE(server.Join().ok());
}

// A trainer's communicator sends rounds and requests parameters from time to time: its calls wait for their
// phase.
TEST(FluidWire, PushOnlyAsyncTrainersHaveAllGradientsApplied) {
  ToyJob job = OneParam();
  job.async = true;
  job.trainers = 1;
  ServerThread server(job, 0, FluidServer(), kAsyncMode);
  Trainer trainer(job.servers[0], 0);
  const std::string gradient = job.GradName(job.params[0], 0);
  const std::vector<float> start = FloatsOf(MessageOf(trainer.Get("w")));
  std::vector<Trainer::Answer> answers;
  for (int i = 0; i < 40; ++i) answers.push_back(trainer.Send(gradient, Floats({1, 2})));
  for (Trainer::Answer& answer : answers) {
    const Result<transport::UnaryReply> reply = answer.get();
    ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  }
  EXPECT_NEAR(FloatsOf(MessageOf(trainer.Get("w")))[0], start[0] - 40 * 0.1f, 1e-4);
  EXPECT_TRUE(trainer.Complete().get().ok());
  EXPECT_TRUE(server.Join().ok());
}

TEST(FluidWire, AMissingGradientIsAnErrorThatNamesIt) {
  const ToyJob job = OneParam();
  ServerThread server(job, 0, FluidServer());
  Trainer t0(job.servers[0], 0), t1(job.servers[0], 1);
  for (Trainer* trainer : {&t0, &t1}) {
    (void)MessageOf(trainer->Get("w"));
    EXPECT_TRUE(trainer->FetchBarrier().get().ok());
  }
  EXPECT_TRUE(t0.Send(GradOf(0), Floats({1, 2})).get().ok());
  EXPECT_TRUE(t0.BatchBarrier().get().ok());
  (void)t1.BatchBarrier().get();
  const Result<transport::UnaryReply> after = t0.Get("w").get();
  ASSERT_FALSE(after.ok());
  EXPECT_NE(after.status().message().find("trainer 1"), std::string::npos) << after.status().ToString();
  EXPECT_FALSE(t1.Get("w").get().ok());  // it gets the error too
  EXPECT_FALSE(server.Join().ok());
}

TEST(FluidWire, ServerStartErrorsAreReported) {
  const ToyJob job = OneParam();
  ServerThread server(job, 0, FluidServer(), /*mode=*/77);
  Trainer t0(job.servers[0], 0), t1(job.servers[0], 1);
  const Status why = t0.Get("w").get().status();
  EXPECT_NE(why.message().find("distributed_mode"), std::string::npos) << why.ToString();
  (void)t1.Get("w").get();
  EXPECT_FALSE(server.Join().ok());
}

TEST(FluidWire, AnUnknownWireIsAnError) {
  EXPECT_EQ(process::MakeGrpcClient({.wire = "brpc"}).status().id(), "E-wire-name");
  SimBlockRunner runner;
  EXPECT_EQ(process::MakeGrpcServer(SimOps(), runner, {.wire = "brpc"}).status().id(), "E-wire-name");
}

}  // namespace
}  // namespace penstock::test
