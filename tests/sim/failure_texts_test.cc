// The messages of servers and trainers about each other while they wait, and when one is lost.
#include <gtest/gtest.h>

#include "tests/sim/simulation.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

ToyJob TwoServers() {
  ToyJob job;
  job.servers = {"ps0:1", "ps1:1"};
  job.params = {{.name = "w", .shape = {5, 3}, .server = 0}, {.name = "b", .shape = {1}, .server = 1}};
  return job;
}

// A job whose trainers wait for a second server that never starts.
class HalfAJob {
 public:
  HalfAJob() : elsewhere_(TwoServers()), sim_(TwoServers(), 3, 1, {}, 0) {
    elsewhere_.servers[1] = "nowhere:1";
    for (int t = 0; t < 2; ++t) sim_.AddTrainer(t, elsewhere_, 3, {.incarnation = 1});
  }
  // The server loop reports every second, and clients nine seconds after they started to wait.
  void Pass(int span_s) {
    for (int i = 0; i < span_s; ++i) {
      sim_.net().RunUntil([] { return false; }, seconds(1));
      if (++passed_s_ == 9) {
        for (int t = 0; t < 2; ++t) sim_.trainer(t).session().Ask();
      }
      sim_.server(0).pserver->Tick();
    }
  }
  Simulation& sim() { return sim_; }

 private:
  ToyJob elsewhere_;
  Simulation sim_;
  int passed_s_ = 0;
};

TEST(FailureTexts, APserverReportsWaitsAfterTenSeconds) {
  HalfAJob job;
  const std::vector<std::string>& reports = job.sim().server(0).reports;
  job.Pass(9);
  EXPECT_EQ(reports.size(), 0u);
  job.Pass(3);
  ASSERT_EQ(reports.size(), 1u);  // and not again before another ten seconds
  const std::string missing = "pserver nowhere:1 to start (nothing answers there yet)";
  EXPECT_EQ(reports[0], StrCat("waiting on pserver ps0:1: trainer 0 has waited 10 s for ", missing,
                               "; trainer 1 has waited 10 s for ", missing));
}

TEST(FailureTexts, ABrokenConnectionReportsAPrecedingSilence) {
  HalfAJob job;
  job.Pass(23);  // the trainers were last heard in the ninth second
  job.sim().trainer(1).session().Abort();
  job.Pass(1);
  const std::optional<Status> ended = job.sim().server(0).pserver->Ended();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->id(), "E-peer-lost");
  EXPECT_NE(ended->message().find(" after a silence of 13 s (step 0, seen by pserver ps0:1)"),
            std::string::npos)
      << ended->ToString();
  ASSERT_EQ(job.sim().server(0).reactions.size(), 1u);  // the server made no error
  EXPECT_EQ(job.sim().server(0).reactions[0].ToString(), ended->ToString());
}

TEST(FailureTexts, AMissingPeerIsReportedAfterFifteenMinutes) {
  Simulation sim(TwoServers(), 3, 1, {}, 1);
  const auto pass = [&](int span_s) {
    for (int i = 0; i < span_s; ++i) {
      sim.net().RunUntil([] { return false; }, seconds(1));
      for (int server = 0; server < 2; ++server) sim.server(server).pserver->Tick();
    }
  };
  pass(899);
  EXPECT_FALSE(sim.server(0).pserver->Ended().has_value());
  EXPECT_TRUE(sim.trainer(0).session().status().ok());
  pass(3);
  const std::optional<Status> ended = sim.server(0).pserver->Ended();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->id(), "E-peer-absent");
  EXPECT_EQ(ended->message(), "trainer 1 did not start within 900 s (seen by pserver ps0:1)");
  EXPECT_EQ(sim.trainer(0).session().status().id(), "E-peer-absent");
  EXPECT_FALSE(sim.server(0).reactions.empty());  // the server made no error
}

TEST(FailureTexts, ANotifiedTrainerIsNotTheCause) {
  std::vector<Status> reactions;
  Simulation sim(TwoServers(), 1000, 1, {}, 1);
  client::SessionOptions options{.incarnation = 1};
  options.on_reaction = [&](const Status& why) { reactions.push_back(why); };
  client::Session& told = sim.AddTrainer(1, sim.job(), 1000, options).session();
  sim.net().After(seconds(2), [&] {
    sim.trainer(0).session().Abandon(FailedPrecondition("E-trainer-raised", "ValueError: no"));
  });
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(told.status().id(), "E-peer-failed");
  ASSERT_EQ(reactions.size(), 1u);
  EXPECT_EQ(reactions[0].ToString(), told.status().ToString());
}

TEST(FailureTexts, ARefusedTrainerIsTheCause) {
  std::vector<Status> reactions;
  Simulation sim(TwoServers(), 3, 1, {});
  client::SessionOptions options{.job = "another", .incarnation = 1};
  options.on_reaction = [&](const Status& why) { reactions.push_back(why); };
  const client::Session& refused = sim.AddTrainer(1, sim.job(), 3, options).session();
  ASSERT_TRUE(sim.Run());
  EXPECT_EQ(refused.status().id(), "E-rpc-job");
  EXPECT_TRUE(reactions.empty());
}

}  // namespace
}  // namespace penstock::test
