// Clipping by the norm over all gradients: under any faults of the network between trainers and servers, and
// among servers, a job ends with the bytes of one thread that has all gradients.
#include "tests/sim/references/clip.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/sim/seeds.h"
#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

constexpr int kClipSteps = 4;

// Three servers, of which one has no clipped parameter; or a single server.
ToyJob ClipJob(std::uint64_t seed) {
  ToyJob job;
  job.trainers = 2 + static_cast<int>(seed % 5 == 4);
  job.servers = {"ps0:1", "ps1:1", "ps2:1"};
  job.lr_block = seed % 2 == 1;
  job.params = {
      {.name = "w.0", .shape = {5, 3}, .server = 0, .optimizer = "adam", .decay = true, .clipped = true},
      {.name = "w.1", .shape = {4, 3}, .server = 1, .optimizer = "adam", .clipped = true},
      {.name = "b", .shape = {1}, .server = 1, .optimizer = "sgd", .clipped = true},
      {.name = "free", .shape = {2, 17}, .server = 0, .optimizer = "momentum"},
      {.name = "other", .shape = {3, 4}, .server = 2, .optimizer = "sgd", .clipped = seed % 3 == 2}};
  if (seed % 7 == 6) {
    job.servers = {"ps0:1"};
    for (ToyParam& param : job.params) param.server = 0;
  }
  return job;
}

void ExpectSame(const ToyValues& got, const ToyValues& want, const std::string& where) {
  for (const auto& [name, values] : want) {
    const auto found = got.find(name);
    if (found == got.end()) continue;
    ASSERT_EQ(found->second.size(), values.size());
    EXPECT_EQ(std::memcmp(found->second.data(), values.data(), values.size() * sizeof(float)), 0)
        << where << " of " << name;
  }
}

void RunClipSeed(std::uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed));
  ToyJob job = ClipJob(seed);
  if (seed % 3 < 2) job.early_bytes = seed % 3 * 64;
  const Faults faults = seed % 5 == 3 ? kBreaking : Faults{.lost = 0.1, .twice = 0.1};
  Simulation sim(job, kClipSteps, seed, faults, job.trainers - 1);
  std::vector<int> ends(static_cast<std::size_t>(job.trainers), kClipSteps);
  ends.back() = seed % 4 == 0 ? 2 : kClipSteps;  // the last trainer may complete before the others
  sim.AddTrainer(job.trainers - 1, sim.job(), ends.back(), {});
  ASSERT_TRUE(sim.Run()) << "the job did not end: " << sim.Waiting();
  const std::vector<ToyValues> reference = ClipReference(sim.job(), kClipSteps, ends);
  for (int t = 0; t < job.trainers; ++t) {
    const Status& status = sim.trainer(t).session().status();
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (std::size_t v = 0; v < sim.trainer(t).seen().size(); ++v)
      ExpectSame(sim.trainer(t).seen()[v], reference[v], StrCat("trainer ", t, ", version ", v));
  }
  for (std::size_t s = 0; s < job.servers.size(); ++s) {
    Server& server = sim.server(static_cast<int>(s));
    ASSERT_TRUE(server.pserver->Ended()->ok()) << server.pserver->Ended()->ToString();
    ToyValues last;
    for (const ToyParam& param : job.params) {
      if (param.server != static_cast<int>(s)) continue;
      const auto values = server.scope.Find(param.name)->As<Tensor>().Span<float>();
      last[param.name].assign(values.begin(), values.end());
    }
    ExpectSame(last, reference.back(), StrCat("server ", s));
    // No server leaves before the others have its sums.
    EXPECT_TRUE(sim.net().RunUntil([&] { return !server.pserver->HasListeners(); }, std::chrono::seconds(6)));
  }
}

TEST(ClipByTheNormOverAll, EverySeedEqualsTheOneThreadReference) {
  if (const char* seed = std::getenv("PENSTOCK_SIM_SEED"))
    return RunClipSeed(std::strtoull(seed, nullptr, 10));
  for (std::uint64_t seed = 0; seed < SeedCount() && !HasFailure(); ++seed) RunClipSeed(seed);
}

TEST(ClipByTheNormOverAll, ADeadServerEndsTheJobAndIsNamed) {
  Simulation sim(ClipJob(0), 1000, 1, {});
  const auto begun = [&] { return sim.trainer(0).session().step() > 3; };
  ASSERT_TRUE(sim.net().RunUntil(begun, std::chrono::minutes(1)));
  sim.Kill(1);
  ASSERT_TRUE(sim.Run());
  const Status why = *sim.server(0).pserver->Ended();
  EXPECT_EQ(why.id(), "E-peer-lost");
  EXPECT_EQ(why.message().rfind("pserver ps1:1 is gone: its connection broke (step ", 0), 0u)
      << why.ToString();
  EXPECT_EQ(sim.server(0).reactions.size(), 1u);
  EXPECT_EQ(sim.trainer(0).session().status().id(), "E-peer-lost");
}

TEST(ClipByTheNormOverAll, AServersErrorReachesTheOthers) {
  ToyJob job = ClipJob(0);
  job.params[1].optimizer = "broken";
  Simulation sim(job, 3, 1, {});
  ASSERT_TRUE(sim.Run());
  EXPECT_NE(sim.server(0).pserver->Ended()->ToString().find("broken cannot be computed"), std::string::npos);
  EXPECT_FALSE(sim.server(0).reactions.empty());
}

TEST(ClipByTheNormOverAll, AServerOfAnotherPlanIsRefusedAndEndsTheJob) {
  ToyJob job = ClipJob(0);
  Simulation sim(job, 3, 1, {}, 0);
  sim.net().RunUntil([] { return false; }, std::chrono::seconds(1));
  roles::ServedExchange other = {.servers = {"ps0:1", "ps1:1"}, .self = 1, .values = {}};
  pserver::NativeDialer dialer(sim.net().transport());
  class Nobody : public pserver::ReplyHandler {
   public:
    void OnReply(const std::shared_ptr<pserver::Callee>&, protocol::Reply reply) override {
      if (const auto* failure = std::get_if<protocol::Failure>(&reply)) why = failure->why;
    }
    void OnUnreadableReply(const std::shared_ptr<pserver::Callee>&, const Status&) override {}
    void OnCalleeClosed(const std::shared_ptr<pserver::Callee>&, const Status&) override {}
    Status why;
  } nobody;
  pserver::OtherServers stranger(other, "sim", "", {.clock = &sim.net().clock()});
  stranger.Dial(dialer, nobody);
  ASSERT_TRUE(sim.net().RunUntil([&] { return !nobody.why.ok(); }, std::chrono::minutes(1)));
  EXPECT_EQ(nobody.why.id(), "E-plan-mismatch");
  EXPECT_NE(nobody.why.ToString().find("sum w.0@SQUARES : f32[1] of server 0   |   (nothing)"),
            std::string::npos)
      << nobody.why.ToString();
  EXPECT_EQ(sim.server(0).pserver->Ended()->id(), "E-plan-mismatch");
}

TEST(ClipByTheNormOverAll, AReportNamesTheServerThatIsMissing) {
  ToyJob job = ClipJob(0);
  Simulation sim(job, 1000, 1, {});
  const auto begun = [&] { return sim.trainer(0).session().step() > 3; };
  ASSERT_TRUE(sim.net().RunUntil(begun, std::chrono::minutes(1)));
  sim.server(1).stopped = true;
  const auto told = [&] {
    return sim.trainer(0).session().WaitingFor().find("which waits for pserver ps1:1 (last heard ") !=
           std::string::npos;
  };
  for (int second = 0; second < 60 && !told(); ++second) {
    sim.trainer(0).session().Ask();
    sim.net().RunUntil(told, std::chrono::seconds(1));
  }
  EXPECT_TRUE(told()) << sim.trainer(0).session().WaitingFor();
}

TEST(ClipByTheNormOverAll, IsRefusedWithBackupTrainers) {
  ToyJob job = ClipJob(0);
  job.trainers = 3;
  job.backup_trainers = 1;
  SimBlockRunner runner;
  Scope scope;
  job.Start(0, scope);
  const Program program = job.Pserver(0);
  const auto made =
      pserver::Pserver::Make(program, *program.main().ops().back().op, scope, SimOps(), runner, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().id(), "E-contract-policy");
  EXPECT_EQ(
      made.status().message(),
      "backup_trainers does not run where pservers clip by a norm over all gradients; transpile without "
      "it, or with clip=local");
}

}  // namespace
}  // namespace penstock::test
