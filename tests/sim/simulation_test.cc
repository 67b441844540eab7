// Under any network faults, a job ends with the bytes of one thread, or all processes learn the reason why
// not.
//
// To run one seed:  simulation_test --gtest_filter='*Seed*' with PENSTOCK_SIM_SEED=17
#include "tests/sim/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "executor/protocol/bodies.h"
#include "executor/protocol/envelope.h"
#include "executor/pserver/refusal.h"
#include "tests/sim/seeds.h"

namespace penstock::test {
namespace {

ToyJob Job(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1"};
  job.lr_block = seed % 2 == 1;
  job.params = {
      {.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true},
      {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .decay = true},
      {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd"},
      {.name = "wide", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
      {.name = "table.0", .shape = {40, 3}, .server = 0, .optimizer = "adam", .table = true, .salt = seed},
      {.name = "table.1", .shape = {9, 2}, .server = 1, .optimizer = "sgd", .table = true, .salt = seed},
      {.name = "frozen", .shape = {7, 3}, .server = static_cast<int>(seed % 2), .start = true}};
  if (seed % 4 == 3) {
    job.params[1].compression = {.kind = Compression::Kind::kTwoBit, .threshold = 0.25f};
    job.params[3].compression = {.kind = Compression::Kind::kFp16};
  }
  return job;
}

void ExpectSameBytes(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  if (got.empty()) return;  // a table that no step looked up
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << what;
}

// Adds the connections that have broken to `breaks`.
void RunSeed(std::uint64_t seed, std::uint64_t& breaks) {
  SCOPED_TRACE(StrCat("seed ", seed, ": run it alone with PENSTOCK_SIM_SEED=", seed));
  constexpr int kSteps = 4;
  ToyJob job = Job(seed);
  if (seed % 3 < 2) job.early_bytes = seed % 3 * 64;  // one chunk or a few; otherwise more than all chunks
  Faults faults = FaultsOf(seed);
  if (seed % 4 == 1) {  // few messages are lost; some are far behind the others
    faults.lost = 0.03;
    job.resend_after = std::chrono::milliseconds(500);
  }
  Simulation sim(job, kSteps, seed, faults);
  ASSERT_TRUE(sim.Run()) << "the job did not end: " << sim.Waiting();
  breaks += sim.net().breaks();
  const std::vector<ToyValues> reference = ToyReference(sim.job(), kSteps);
  for (int t = 0; t < sim.job().trainers; ++t) {
    ASSERT_TRUE(sim.trainer(t).session().status().ok()) << sim.trainer(t).session().status().ToString();
    ASSERT_EQ(sim.trainer(t).seen().size(), reference.size());
    for (std::size_t v = 0; v < reference.size(); ++v) {
      for (const ToyParam& param : sim.job().params) {
        const std::vector<float>& values = reference[v].at(param.name);
        if (param.table && v < kSteps) {
          ExpectSameBytes(sim.trainer(t).seen()[v].at(StrCat("rows of ", param.name)),
                          ToyRows(param, values, ToyIds(param, t, v)),
                          StrCat("trainer ", t, ", rows of version ", v, " of ", param.name));
        }
        if (param.table) continue;
        const std::string& name = param.name;
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

TEST(Simulation, EverySeedEqualsTheOneThreadReference) {
  std::uint64_t breaks = 0;
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED"))
    return RunSeed(std::strtoull(seed, nullptr, 10), breaks);
  for (std::uint64_t seed = 0; seed < SeedCount() && !HasFailure(); ++seed) RunSeed(seed, breaks);
  EXPECT_GT(breaks, SeedCount() / 3) << "every third seed has connections that break";
}

// All parameters are pushed by turn, and early gradients could exceed the server's limit.
TEST(Simulation, EarlyGradientsAreBounded) {
  constexpr std::size_t kEarlyBytes = 100;
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < SeedCount() / 5 && !HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    ToyJob job{.trainers = 4, .servers = {"ps0:1"}, .early_bytes = kEarlyBytes, .all_by_turn = true};
    for (const char* name : {"a", "b", "c", "d"})
      job.params.push_back({.name = name, .shape = {4, 3}, .optimizer = "momentum"});
    Simulation sim(job, 4, seed, FaultsOf(seed));
    std::size_t most_of_seed = 0;
    ASSERT_TRUE(sim.Run([&] { most_of_seed = std::max(most_of_seed, sim.server(0).held->now()); }))
        << sim.Waiting();
    EXPECT_LE(most_of_seed, kEarlyBytes);
    most = std::max(most, most_of_seed);
    const std::vector<ToyValues> reference = ToyReference(sim.job(), 4);
    for (const ToyParam& param : sim.job().params)
      ExpectSameBytes(sim.trainer(3).seen().back().at(param.name), reference.back().at(param.name),
                      param.name);
  }
  EXPECT_GT(most, kEarlyBytes / 2) << "early gradients are what this is about";
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

TEST(Simulation, EmptyTableGradientsAreSent) {
  Simulation sim(Job(0), 3, 1, {});
  sim.trainer(1).SkipGradient(1, 4);
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(1).session().status().message(),
            "trainer 1 ended step 1 without sending the gradient of table.0");
}

TEST(Simulation, ARowOutOfRangeIsAnErrorWithItsId) {
  for (const std::int64_t id : {std::int64_t{40}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    Simulation sim(Job(0), 3, 1, {});
    sim.trainer(1).LookUpInstead(1, id);
    ASSERT_TRUE(sim.Run());
    const Status why = sim.trainer(1).session().status();
    EXPECT_EQ(why.id(), "E-rpc-row");
    const bool named = why.message() == StrCat("trainer 1 asked for row ", id, " of table.1, which has 9") ||
                       why.message() == StrCat("trainer 1 asked for row ", id, " of table.0, which has 40");
    EXPECT_TRUE(named) << why.ToString();
    EXPECT_FALSE(sim.trainer(0).session().status().ok());
  }
}

TEST(Simulation, AMissingStartValueIsAnErrorNotAHang) {
  ToyJob job = Job(0);
  Simulation sim(job, 0, 1, {});
  sim.trainer(0).BeSilent();
  sim.net().After(std::chrono::seconds(2), [&] { (void)sim.trainer(0).session().Complete(); });
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(1).session().status().id(), "E-start-missing");
  EXPECT_EQ(sim.trainer(1).session().status().message().rfind(
                "trainer 0 completed without sending the initial value "
                "of frozen, which trainer ",
                0),
            0u)
      << sim.trainer(1).session().status().ToString();
}

TEST(Simulation, ServerBlockErrorsReachTrainersWithTheUsersLine) {
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

TEST(Simulation, ADeadTrainerIsReportedToTheOthers) {
  Simulation sim(Job(0), 1000, 1, {});
  sim.net().After(std::chrono::seconds(2), [&] { sim.trainer(0).session().Abort(); });
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(sim.trainer(1).session().status().id(), "E-peer-lost");
  EXPECT_EQ(sim.trainer(1).session().status().message().rfind("trainer 0 is gone", 0), 0u)
      << sim.trainer(1).session().status().ToString();
  for (int s = 0; s < 2; ++s) EXPECT_FALSE(sim.server(s).pserver->Ended()->ok());
}

TEST(Simulation, ALateTrainerReceivesTheCauseOfTheFailure) {
  Simulation sim(Job(0), 1000, 1, {}, 1);
  sim.net().After(std::chrono::seconds(2), [&] { sim.trainer(0).session().Abort(); });
  const auto ended = [&] { return sim.server(0).pserver->Ended() && sim.server(1).pserver->Ended(); };
  ASSERT_TRUE(sim.net().RunUntil(ended, std::chrono::minutes(1)));
  EXPECT_TRUE(sim.server(0).pserver->HasListeners());  // so the process stays
  const client::Session& late = sim.AddTrainer(1, sim.job(), 3, {.incarnation = 1}).session();
  ASSERT_TRUE(sim.net().RunUntil([&] { return !late.status().ok(); }, std::chrono::seconds(5)));
  EXPECT_EQ(late.status().message().rfind("trainer 0 is gone", 0), 0u) << late.status().ToString();
}

TEST(Simulation, AFailedServerExitsWithinTenSeconds) {
  Simulation sim(Job(0), 1000, 1, {}, 1);
  sim.AddTrainer(1, sim.job(), 3, {.job = "another", .incarnation = 1});  // rejected: of another job
  sim.net().After(std::chrono::seconds(2), [&] { sim.trainer(0).session().Abort(); });
  pserver::Pserver& server = *sim.server(0).pserver;
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
  client::SessionOptions options{.incarnation = 1, .connect_deadline = std::chrono::seconds(20)};
  const client::Session& waiting = sim.AddTrainer(0, elsewhere, 3, options).session();
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(19));
  EXPECT_TRUE(waiting.status().ok()) << waiting.status().ToString();
  EXPECT_EQ(waiting.WaitingFor(), "pserver nowhere:1 to start (nothing answers there yet)");
  ASSERT_TRUE(sim.net().RunUntil([&] { return !waiting.status().ok(); }, std::chrono::seconds(5)));
  EXPECT_EQ(waiting.status().id(), "E-peer-connect");
  EXPECT_EQ(waiting.status().message(), "pserver nowhere:1 has not answered for 20 s");
}

TEST(Simulation, ATrainerOfAnotherPlanIsRefused) {
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

// Accepts every connection and never answers.
class Silent : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message message) override {
    const Result<protocol::Envelope> envelope = protocol::Open(message);
    ASSERT_TRUE(envelope.ok()) << envelope.status().ToString();
    if (envelope->kind == protocol::MessageKind::kError) told_ = protocol::ReadStatus(message.body.ToText());
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override {}
  const Status& told() const { return told_; }

 private:
  Status told_;
};

TEST(Simulation, PendingServersReceiveTheReasonOfADeparture) {
  Simulation sim(Job(0), 3, 1, {}, 0);
  ToyJob job = Job(0);
  job.servers = {"refuses:1", "silent:1"};
  pserver::Refusal refusal(Unimplemented("E-server-mode", "no"), 2, "sim", sim.net().clock());
  pserver::NativeService service(refusal);
  Silent silent;
  const auto first = sim.net().transport().Listen(job.servers[0], service);
  const auto second = sim.net().transport().Listen(job.servers[1], silent);
  const client::Session& session = sim.AddTrainer(0, job, 3, {.incarnation = 1}).session();
  ASSERT_TRUE(sim.net().RunUntil([&] { return !silent.told().ok(); }, std::chrono::minutes(1)));
  EXPECT_EQ(session.status().id(), "E-server-mode");
  EXPECT_EQ(silent.told().id(), "E-server-mode");
}

// Without a token, any process could have sent those hellos.
TEST(Simulation, AMismatchedHelloEndsNoJobWithoutToken) {
  Simulation sim(Job(0), 40, 1, {}, Job(0).trainers, false);
  ToyJob other = Job(0);
  other.params[0].shape = {6, 3};
  const auto begun = [&] {
    return sim.trainer(0).session().step() > 0 && sim.trainer(1).session().step() > 0;
  };
  ASSERT_TRUE(sim.net().RunUntil(begun, std::chrono::minutes(1)));
  Trainer& wrong_id = sim.AddTrainer(7, sim.job(), 3, {});
  Trainer& wrong_plan = sim.AddTrainer(1, other, 3, {.incarnation = 1});
  Trainer& wrong_job = sim.AddTrainer(0, sim.job(), 3, {.job = "other"});
  Trainer& again = sim.AddTrainer(1, sim.job(), 3, {.incarnation = 9});
  ASSERT_TRUE(sim.Run()) << sim.Waiting();
  EXPECT_EQ(wrong_id.session().status().id(), "E-plan-trainer-id");
  EXPECT_FALSE(wrong_plan.session().status().ok());  // one server has the right plan, but another index
  EXPECT_EQ(wrong_job.session().status().id(), "E-rpc-job");
  EXPECT_EQ(again.session().status().id(), "E-rpc-restart");
  EXPECT_TRUE(sim.trainer(0).session().status().ok()) << sim.trainer(0).session().status().ToString();
  EXPECT_TRUE(sim.trainer(1).session().status().ok()) << sim.trainer(1).session().status().ToString();
}

TEST(Simulation, ADuplicateConnectionIsRefusedAndTheJobContinues) {
  Simulation sim(Job(0), 40, 1, {});
  ASSERT_TRUE(
      sim.net().RunUntil([&] { return sim.trainer(1).session().step() > 0; }, std::chrono::minutes(1)));
  Trainer& second = sim.AddTrainer(1, sim.job(), 3, {});
  ASSERT_TRUE(sim.Run()) << sim.Waiting();
  EXPECT_EQ(second.session().status().id(), "E-rpc-second");
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

TEST(Simulation, WaitingTrainersLearnWhomThePserverAwaits) {
  ToyJob job = Job(0);
  job.trainers = 3;
  Simulation sim(job, 3, 1, {}, 2);
  client::Session& waiting = sim.trainer(0).session();
  const auto told = [&] { return waiting.WaitingFor().find("which waits for") != std::string::npos; };
  sim.net().RunUntil([&] { return waiting.step() == 1 && sim.trainer(1).session().step() == 1; },
                     std::chrono::minutes(1));
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(1));  // lets sent messages arrive
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
