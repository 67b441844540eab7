// Trainers and parameter servers on a seeded network: the objects that the processes run, without threads or
// sockets.
//
// One seed again:  simulation_test --gtest_filter='*Seed*' with PENSTOCK_SIM_SEED=17
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "executor/client/session.h"
#include "executor/pserver/pserver.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"

namespace penstock::test {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);

struct Server {
  Program program;
  Scope scope;
  std::unique_ptr<Pserver> pserver;
  std::unique_ptr<Listener> listener;
};

// A trainer as a script: pull version 0, then push, end the step, pull, `steps` times; then complete.
class Trainer {
 public:
  Trainer(const ToyJob& job, int id, int steps, Network& net, SessionOptions options)
      : job_(job), id_(id), steps_(steps), net_(net), session_(net.transport(), std::move(options)) {}

  Status Start() {
    const Program startup = job_.TrainerStartup(id_);
    PENSTOCK_RETURN_IF_ERROR(session_.Attach(startup));
    PENSTOCK_RETURN_IF_ERROR(Declare());
    if (silent_) return OkStatus();
    if (id_ == 0) PENSTOCK_RETURN_IF_ERROR(PushStartValues());
    PENSTOCK_RETURN_IF_ERROR(PullAll());
    started_ = true;
    return OkStatus();
  }

  // Moves on if what it waits for is there.
  Status Step() {
    if (!started_ || completing_ || !session_.status().ok()) return session_.status();
    if (!session_.PullsDone()) return OkStatus();
    ToyValues& seen = seen_.emplace_back();
    for (std::size_t i = 0; i < job_.params.size(); ++i) {
      const auto values = pulled_[i].Span<float>();
      seen[job_.params[i].name].assign(values.begin(), values.end());
    }
    const std::uint64_t step = session_.step();
    if (step == static_cast<std::uint64_t>(steps_)) {
      completing_ = true;
      return session_.Complete();
    }
    if (step == 0) {
      PENSTOCK_RETURN_IF_ERROR(session_.Attach(job_.Trainer(id_)));
      PENSTOCK_RETURN_IF_ERROR(DeclarePushes());
    }
    std::vector<std::size_t> order(job_.params.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), net_.random());
    for (const std::size_t i : order) {
      Tensor gradient(DType::kFp32, job_.params[i].shape);
      const std::vector<float> values =
          ToyGradient(seen[job_.params[i].name], job_.params[i].name, id_, step);
      std::copy(values.begin(), values.end(), gradient.Span<float>().begin());
      if (i != skip_at_step_[step] && !job_.params[i].start)
        PENSTOCK_RETURN_IF_ERROR(session_.Push(pushes_[i], gradient));
    }
    PENSTOCK_RETURN_IF_ERROR(session_.EndStep(peers_));
    return PullAll();
  }

  void BeSilent() { silent_ = true; }  // attaches its program and does nothing more
  void SkipGradient(std::uint64_t step, std::size_t param) { skip_at_step_[step] = param; }
  Session& session() { return session_; }
  const std::vector<ToyValues>& seen() const { return seen_; }

 private:
  struct Skips {  // nothing is skipped unless it is said
    std::map<std::uint64_t, std::size_t> at;
    std::size_t& operator[](std::uint64_t step) { return at.emplace(step, std::size_t(-1)).first->second; }
  };

  RemotePiece Remote(const ToyParam& param, const std::string& name) const {
    return {.pserver = job_.servers[static_cast<std::size_t>(param.server)],
            .name = name,
            .dtype = DType::kFp32,
            .shape = param.shape,
            .trainer_id = id_};
  }
  Status Declare() {
    for (const ToyParam& param : job_.params) {
      PENSTOCK_ASSIGN_OR_RETURN(const PullHandle handle, session_.DeclarePull(Remote(param, param.name)));
      pulls_.push_back(handle);
    }
    pulled_.resize(pulls_.size());
    PENSTOCK_ASSIGN_OR_RETURN(peers_, session_.DeclarePeers(job_.servers));
    return OkStatus();
  }
  // The tensors go away before the server has them.
  Status PushStartValues() {
    for (const ToyParam& param : job_.params) {
      if (!param.start) continue;
      PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle, session_.DeclarePush(Remote(param, param.name)));
      Tensor value(DType::kFp32, param.shape);
      const std::vector<float> values = ToyStart(param);
      std::copy(values.begin(), values.end(), value.Span<float>().begin());
      PENSTOCK_RETURN_IF_ERROR(session_.Push(handle, value));
      std::fill(value.Span<float>().begin(), value.Span<float>().end(), -1.0f);
    }
    return OkStatus();
  }
  Status DeclarePushes() {
    for (const ToyParam& param : job_.params) {
      if (param.start) {
        pushes_.emplace_back();
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle,
                                session_.DeclarePush(Remote(param, job_.GradName(param, id_))));
      pushes_.push_back(handle);
    }
    return OkStatus();
  }
  Status PullAll() {
    for (std::size_t i = 0; i < pulls_.size(); ++i)
      PENSTOCK_RETURN_IF_ERROR(session_.Pull(pulls_[i], pulled_[i]));
    return OkStatus();
  }

  const ToyJob& job_;
  const int id_;
  const int steps_;
  Network& net_;
  Session session_;
  std::vector<PushHandle> pushes_;
  std::vector<PullHandle> pulls_;
  std::vector<Tensor> pulled_;
  PeersHandle peers_;
  std::vector<ToyValues> seen_;
  Skips skip_at_step_;
  bool silent_ = false;
  bool started_ = false;
  bool completing_ = false;
};

class Simulation {
 public:
  Simulation(ToyJob job, int steps, std::uint64_t seed, Faults faults)
      : Simulation(job, steps, seed, faults, job.trainers) {}
  // Of the job's trainers only the first `present` ever start.
  Simulation(ToyJob job, int steps, std::uint64_t seed, Faults faults, int present)
      : job_(std::move(job)), net_(seed, faults) {
    for (std::size_t s = 0; s < job_.servers.size(); ++s) AddServer(static_cast<int>(s));
    for (int t = 0; t < present; ++t) AddTrainer(t, job_, steps, {});
  }

  void AddServer(int index) {
    servers_.push_back(std::make_unique<Server>());
    Server& server = *servers_.back();
    server.program = job_.Pserver(index);
    job_.Start(index, server.scope);
    PserverOptions options;
    options.job = "sim";
    options.chunk_bytes = 32;
    options.part_bytes = 20;
    options.inline_bytes = net_.Uniform() < 0.5 ? 0 : 1000;
    options.run = [this](std::function<void()> work) { net_.After(net_.Delay(), std::move(work)); };
    options.report = [](const std::string&) {};
    options.clock = &net_.clock();
    auto made = Pserver::Make(server.program, *server.program.main().ops().back().op, server.scope, SimOps(),
                              runner_, options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    server.pserver = std::move(made).value();
    net_.After(net_.Delay() * 10, [this, &server] {
      server.listener =
          std::move(net_.transport().Listen(server.pserver->address(), *server.pserver)).value();
    });
  }

  Trainer& AddTrainer(int id, const ToyJob& job, int steps, SessionOptions options) {
    if (options.job.empty()) options.job = "sim";
    options.resend_after = std::chrono::milliseconds(100);
    options.clock = &net_.clock();
    trainers_.push_back(std::make_unique<Trainer>(job, id, steps, net_, options));
    Trainer& trainer = *trainers_.back();
    net_.After(net_.Delay() * 10, [this, &trainer] {
      const Status status = trainer.Start();
      ASSERT_TRUE(status.ok()) << status.ToString();
      Tick(trainer);
    });
    return trainer;
  }

  // Until everybody is done or somebody has failed and everybody knows.
  bool Run() {
    return net_.RunUntil(
        [&] {
          const bool servers = std::all_of(servers_.begin(), servers_.end(), [](const auto& s) {
            return s->pserver == nullptr || s->pserver->Ended().has_value();
          });
          const bool trainers = std::all_of(trainers_.begin(), trainers_.end(), [](const auto& t) {
            return t->session().CompleteDone() || !t->session().status().ok();
          });
          return servers && trainers;
        },
        std::chrono::minutes(10));
  }

  Network& net() { return net_; }
  Server& server(int i) { return *servers_[static_cast<std::size_t>(i)]; }
  Trainer& trainer(int i) { return *trainers_[static_cast<std::size_t>(i)]; }
  const ToyJob& job() const { return job_; }

 private:
  void Tick(Trainer& trainer) {
    (void)trainer.Step();  // an error is in the session's status
    trainer.session().Tick();
    net_.After(kTick / 10, [this, &trainer] { Tick(trainer); });
  }

  const ToyJob job_;
  SimBlockRunner runner_;
  Network net_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
};

ToyJob Job(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1"};
  job.lr_block = seed % 2 == 1;
  job.params = {{.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
                {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .decay = true},
                {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"},
                {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
                {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
  return job;
}

void ExpectSameBytes(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << what;
}

void RunSeed(std::uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  constexpr int kSteps = 4;
  Simulation sim(Job(seed), kSteps, seed, {.lost = 0.1, .twice = 0.1});
  ASSERT_TRUE(sim.Run()) << "the job did not end";
  const std::vector<ToyValues> reference = ToyReference(sim.job(), kSteps);
  for (int t = 0; t < sim.job().trainers; ++t) {
    ASSERT_TRUE(sim.trainer(t).session().status().ok()) << sim.trainer(t).session().status().ToString();
    ASSERT_EQ(sim.trainer(t).seen().size(), reference.size());
    for (std::size_t v = 0; v < reference.size(); ++v) {
      for (const auto& [name, values] : reference[v]) {
        ExpectSameBytes(sim.trainer(t).seen()[v].at(name), values,
                        StrCat("trainer ", t, ", version ", v, " of ", name));
      }
    }
  }
  for (int s = 0; s < 2; ++s) {
    ASSERT_TRUE(sim.server(s).pserver->Ended()->ok()) << sim.server(s).pserver->Ended()->ToString();
    for (const ToyParam& param : sim.job().params) {
      if (param.server != s) continue;
      const auto values = sim.server(s).scope.Find(param.name)->As<Tensor>().Span<float>();
      ExpectSameBytes({values.begin(), values.end()}, reference.back().at(param.name),
                      StrCat("server ", s, ", ", param.name));
    }
  }
}

TEST(Simulation, EverySeedEndsInTheBytesOfOneThread) {
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED")) return RunSeed(std::strtoull(seed, nullptr, 10));
  for (std::uint64_t seed = 0; seed < 1000 && !HasFailure(); ++seed) RunSeed(seed);
}

TEST(Simulation, AMissingGradientIsAnErrorThatNamesIt) {
  Simulation sim(Job(0), 3, 1, {});
  sim.trainer(1).SkipGradient(1, 3);
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(1).session().status().id(), "E-step-incomplete");
  EXPECT_EQ(sim.trainer(1).session().status().message(),
            "trainer 1 ended step 1 without sending the gradient of wide");
  EXPECT_FALSE(sim.trainer(0).session().status().ok());
}

TEST(Simulation, AStartValueThatTrainer0NeverSendsIsAnErrorAndNoHang) {
  ToyJob job = Job(0);
  Simulation sim(job, 0, 1, {});
  sim.trainer(0).BeSilent();
  sim.net().After(std::chrono::seconds(2), [&] { (void)sim.trainer(0).session().Complete(); });
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(1).session().status().id(), "E-start-missing");
  EXPECT_EQ(
      sim.trainer(1).session().status().message().rfind("trainer 0 completed without sending the start value "
                                                        "of frozen, which trainer ",
                                                        0),
      0u)
      << sim.trainer(1).session().status().ToString();
}

TEST(Simulation, AnErrorOfAServersBlockReachesTheTrainersWithTheUsersLine) {
  ToyJob job = Job(0);
  job.params[1].optimizer = "broken";
  Simulation sim(job, 3, 1, {});
  ASSERT_TRUE(sim.Run());
  for (int t = 0; t < 2; ++t) {
    const std::string text = sim.trainer(t).session().status().ToString();
    EXPECT_NE(text.find("broken cannot be computed"), std::string::npos) << text;
    EXPECT_NE(text.find("written at train.py:7 in main"), std::string::npos) << text;
    EXPECT_NE(text.find("in the update of w.1 for step 0 on pserver ps1:1"), std::string::npos) << text;
  }
}

TEST(Simulation, ADeadTrainerIsNamedToTheOthers) {
  Simulation sim(Job(0), 1000, 1, {});
  sim.net().After(std::chrono::seconds(2), [&] { sim.trainer(0).session().Abort(); });
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(1).session().status().id(), "E-peer-lost");
  EXPECT_EQ(sim.trainer(1).session().status().message().rfind("trainer 0 is gone", 0), 0u)
      << sim.trainer(1).session().status().ToString();
  for (int s = 0; s < 2; ++s) EXPECT_FALSE(sim.server(s).pserver->Ended()->ok());
}

TEST(Simulation, ATrainerThatComesSoonAfterTheFailureIsToldWhy) {
  Simulation sim(Job(0), 1000, 1, {}, 1);
  sim.net().After(std::chrono::seconds(2), [&] { sim.trainer(0).session().Abort(); });
  const auto ended = [&] { return sim.server(0).pserver->Ended() && sim.server(1).pserver->Ended(); };
  ASSERT_TRUE(sim.net().RunUntil(ended, std::chrono::minutes(1)));
  EXPECT_TRUE(sim.server(0).pserver->HasListeners());  // so the process stays
  const Session& late = sim.AddTrainer(1, sim.job(), 3, {.incarnation = 1}).session();
  ASSERT_TRUE(sim.net().RunUntil([&] { return !late.status().ok(); }, std::chrono::seconds(5)));
  EXPECT_EQ(late.status().message().rfind("trainer 0 is gone", 0), 0u) << late.status().ToString();
}

TEST(Simulation, AServerThatFailedIsGoneWithinTenSecondsWhoeverHasNotCome) {
  Simulation sim(Job(0), 1000, 1, {}, 1);
  sim.AddTrainer(1, sim.job(), 3, {.job = "another", .incarnation = 1});  // is refused, and is nobody of ours
  sim.net().After(std::chrono::seconds(2), [&] { sim.trainer(0).session().Abort(); });
  Pserver& server = *sim.server(0).pserver;
  ASSERT_TRUE(sim.net().RunUntil([&] { return server.Ended().has_value(); }, std::chrono::minutes(1)));
  EXPECT_EQ(sim.trainer(1).session().status().id(), "E-rpc-job");
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(5));
  EXPECT_TRUE(server.HasListeners());
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(5));
  EXPECT_FALSE(server.HasListeners());
}

TEST(Simulation, AServerThatNeverAnswersFailsTheJobAtTheDeadline) {
  ToyJob elsewhere = Job(0);
  elsewhere.servers[1] = "nowhere:1";
  Simulation sim(Job(0), 3, 1, {}, 0);
  SessionOptions options{.incarnation = 1, .connect_deadline = std::chrono::seconds(20)};
  const Session& waiting = sim.AddTrainer(0, elsewhere, 3, options).session();
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(19));
  EXPECT_TRUE(waiting.status().ok()) << waiting.status().ToString();
  EXPECT_EQ(waiting.WaitingFor(), "pserver nowhere:1 to start (nothing answers there yet)");
  ASSERT_TRUE(sim.net().RunUntil([&] { return !waiting.status().ok(); }, std::chrono::seconds(5)));
  EXPECT_EQ(waiting.status().id(), "E-peer-connect");
  EXPECT_EQ(waiting.status().message(), "pserver nowhere:1 has not answered for 20 s");
}

TEST(Simulation, ATrainerOfAnotherPlanIsTurnedAway) {
  ToyJob other = Job(0);
  other.params[0].shape = {6, 3};
  ToyJob job = Job(0);
  Simulation sim(job, 3, 1, {});
  sim.trainer(1).session().Abort();
  Trainer& wrong = sim.AddTrainer(1, other, 3, {.incarnation = 1});
  sim.net().RunUntil([&] { return !wrong.session().status().ok(); }, std::chrono::minutes(1));
  EXPECT_EQ(wrong.session().status().id(), "E-plan-mismatch");
  const std::string text = wrong.session().status().ToString();
  EXPECT_NE(text.find("param w.0 : f32[5, 3]   |   param w.0 : f32[6, 3]"), std::string::npos) << text;
}

TEST(Simulation, AWrongTokenTellsNothingAndTheJobGoesOn) {
  Simulation sim(Job(0), 3, 1, {});
  Trainer& stranger =
      sim.AddTrainer(1, sim.job(), 3, {.token = MakeToken("guess").value(), .incarnation = 9});
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(stranger.session().status().id(), "E-rpc-token");
  EXPECT_TRUE(sim.trainer(0).session().status().ok());
  EXPECT_TRUE(sim.trainer(1).session().status().ok());
}

TEST(Simulation, ATrainerIdOutOfRangeIsAnError) {
  ToyJob job = Job(0);
  Simulation sim(job, 3, 1, {});
  Trainer& extra = sim.AddTrainer(7, sim.job(), 3, {});
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(extra.session().status().id(), "E-plan-trainer-id");
  EXPECT_NE(extra.session().status().message().find("trainer_id 7 is out of range"), std::string::npos);
}

TEST(Simulation, WhoeverWaitsIsToldForWhomItsPserverWaits) {
  ToyJob job = Job(0);
  job.trainers = 3;
  Simulation sim(job, 3, 1, {}, 2);
  Session& waiting = sim.trainer(0).session();
  const auto told = [&] { return waiting.WaitingFor().find("which waits for") != std::string::npos; };
  sim.net().RunUntil([&] { return waiting.step() == 1 && sim.trainer(1).session().step() == 1; },
                     std::chrono::minutes(1));
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(1));  // what was sent arrives
  EXPECT_FALSE(told());
  waiting.Ask();
  ASSERT_TRUE(sim.net().RunUntil(told, std::chrono::minutes(1))) << waiting.WaitingFor();
  EXPECT_NE(waiting.WaitingFor().find("which waits for trainer 2 (not started yet)"), std::string::npos)
      << waiting.WaitingFor();
}

TEST(Simulation, OneTrainerMayStopEarlier) {
  Simulation sim(Job(0), 0, 1, {});  // two trainers that take no step
  ASSERT_TRUE(sim.Run());
  for (int s = 0; s < 2; ++s) EXPECT_TRUE(sim.server(s).pserver->Ended()->ok());
}

}  // namespace
}  // namespace penstock::test
