// Failures in a job of processes: every process ends and reports the reason, and none is left behind.
#include <gtest/gtest.h>

#include <csignal>

#include "framework/ir/edit.h"
#include "tests/dist/job.h"
#include "tests/support/linear_sgd.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPeerLost(15);  // by then all processes must know

std::unique_ptr<Job> LinearJob(int steps, std::vector<RolePrograms> trainers = Roles("trainer"),
                               std::vector<RolePrograms> pservers = Roles("pserver")) {
  auto job = std::make_unique<Job>(std::move(trainers), std::move(pservers));
  for (int i = 0; i < 2; ++i) {
    job->trainer(i).feeds = {{{"x", Constant({4, 13}, 0.01f)}, {"y", Constant({4, 1}, 0.02f)}}};
    job->trainer(i).flags = {StrCat("--steps=", steps)};  // the same feeds each time
  }
  return job;
}

void ExpectError(Process& process, const std::vector<std::string>& texts, seconds limit = kPeerLost) {
  const std::optional<int> code = process.Wait(limit);
  ASSERT_TRUE(code.has_value()) << "still runs after " << limit.count() << " s\n" << process.Log();
  EXPECT_EQ(*code, 1) << process.Log();
  for (const std::string& text : texts) {
    EXPECT_NE(process.Log().find(text), std::string::npos) << text << " is not in:\n" << process.Log();
  }
}

TEST(DistFailure, AllProcessesNameATrainerKilledMidStep) {
  const auto job = LinearJob(1000);
  Process& pserver0 = job->StartPserver(0);
  Process& pserver1 = job->StartPserver(1);
  Process& trainer0 = job->StartTrainer(0);
  Process& trainer1 = job->StartTrainer(1, {"--die_after=6"});  // the second push of its third step
  EXPECT_EQ(trainer1.Wait(seconds(60)), -SIGKILL);
  ExpectError(trainer0, {"trainer 1 is gone", "E-peer-lost"});
  ExpectError(pserver0, {"trainer 1"});
  ExpectError(pserver1, {"trainer 1"});
}

TEST(DistFailure, ATrainerStartedAfterAFailureGetsTheCause) {
  const auto job = LinearJob(1000);
  Process& pserver0 = job->StartPserver(0);
  Process& pserver1 = job->StartPserver(1);
  EXPECT_EQ(job->StartTrainer(1, {"--die_after=1"}).Wait(seconds(60)), -SIGKILL);
  Process& trainer0 = job->StartTrainer(0);
  ExpectError(trainer0, {"trainer 1 is gone", "E-peer-lost"});
  ExpectError(pserver0, {"tells trainer 0 if it starts within 9 s: trainer 1 is gone"});
  ExpectError(pserver1, {"trainer 1"});
}

TEST(DistFailure, AStoppedTrainerIsLostButASlowOneIsNot) {
  constexpr char kReconnectSoon[] = "--reconnect_ms=500";  // a stopped process does not end
  const auto job = LinearJob(1000);
  Process& pserver0 = job->StartPserver(0, {kReconnectSoon});
  Process& pserver1 = job->StartPserver(1, {kReconnectSoon});
  Process& trainer0 = job->StartTrainer(0, {"--delay_seed=5"});
  Process& trainer1 = job->StartTrainer(1);
  EXPECT_FALSE(
      trainer0.Wait(seconds(2)).has_value());  // trainer 1 waits for it all this time without an error
  EXPECT_FALSE(trainer1.Wait(milliseconds(0)).has_value());
  trainer1.Signal(SIGSTOP);
  ExpectError(trainer0, {"trainer 1 is gone: its connection broke after a silence of 1", "E-peer-lost"},
              seconds(20));
  ExpectError(pserver0, {"trainer 1"});
  ExpectError(pserver1, {"trainer 1"});
}

TEST(DistFailure, TrainersNameAKilledPserver) {
  const auto job = LinearJob(1000);
  Process& pserver0 = job->StartPserver(0);
  Process& pserver1 = job->StartPserver(1, {"--die_after=3"});
  Process& trainer0 = job->StartTrainer(0);
  Process& trainer1 = job->StartTrainer(1);
  EXPECT_EQ(pserver1.Wait(seconds(60)), -SIGKILL);
  ExpectError(trainer0, {job->address(1)});
  ExpectError(trainer1, {job->address(1)});
  ExpectError(pserver0, {job->address(1)});
}

TEST(DistFailure, TrainersWaitForALateServerAndReportIt) {
  const auto job = LinearJob(2);
  job->StartPserver(0);
  Process& trainer0 = job->StartTrainer(0);
  Process& trainer1 = job->StartTrainer(1);
  EXPECT_FALSE(trainer0.Wait(seconds(12)).has_value());
  EXPECT_NE(trainer0.Log().find(StrCat("waiting 10 s in step 0: pserver ", job->address(1), " to start")),
            std::string::npos)
      << trainer0.Log();
  Process& pserver1 = job->StartPserver(1);
  EXPECT_EQ(trainer0.Wait(seconds(30)), 0) << trainer0.Log();
  EXPECT_EQ(trainer1.Wait(seconds(30)), 0) << trainer1.Log();
  EXPECT_EQ(pserver1.Wait(seconds(30)), 0) << pserver1.Log();
}

TEST(DistFailure, AWrongTokenIsRefused) {
  const auto job = LinearJob(2);
  job->StartPserver(0);
  job->StartPserver(1);
  Process& trainer = job->StartTrainer(0, {"--token=guess"});
  ExpectError(trainer, {"E-rpc-token", "PENSTOCK_JOB_TOKEN"});
  EXPECT_EQ(trainer.Log().find("a secret"), std::string::npos);
}

TEST(DistFailure, ATrainerIdOutOfRangeIsRefused) {
  std::vector<RolePrograms> trainers = Roles("trainer");
  for (Program* program : {&trainers[1].startup, &trainers[1].main}) {
    ProgramEdit edit(*program);
    for (const OpEntry& entry : program->main().ops()) {
      if (entry.op->FindAttr("trainer_id") == nullptr) continue;
      edit.main().Replace(entry.id, Op(*entry.op).Set("trainer_id", std::int32_t{7}));
    }
    *program = edit.Apply().value();
  }
  const auto job = LinearJob(2, trainers);
  Process& pserver0 = job->StartPserver(0);
  Process& pserver1 = job->StartPserver(1);
  Process& trainer = job->StartTrainer(1);
  ExpectError(trainer, {"trainer_id 7 is out of range", "E-plan-trainer-id"});
  ExpectError(pserver0, {"trainer_id 7 is out of range"});
  ExpectError(pserver1, {"trainer_id 7 is out of range"});
}

TEST(DistFailure, RolesOfDifferentPlansAreRefused) {
  std::vector<RolePrograms> trainers = Roles("trainer");
  for (Program* program : {&trainers[1].startup, &trainers[1].main}) {
    ProgramEdit edit(*program);
    for (const char* name : {"fc_0.w_0", "fc_0.w_0@GRAD.trainer_1"}) {
      if (edit.main().FindVar(name) == nullptr) continue;
      Var var = *edit.main().FindVar(name);
      var.type->shape = {14, 1};
      var.wire_bytes.clear();
      edit.main().SetVar(std::move(var));
    }
    for (const OpEntry& entry : program->main().ops()) {
      if (entry.op->OutputName("Out") != "fc_0.w_0" || entry.op->FindAttr("shape") == nullptr) continue;
      edit.main().Replace(entry.id, Op(*entry.op).Set("shape", std::vector<std::int64_t>{14, 1}));
    }
    *program = edit.Apply().value();
  }
  const auto job = LinearJob(2, trainers);
  Process& pserver0 = job->StartPserver(0);
  Process& pserver1 = job->StartPserver(1);
  Process& trainer0 = job->StartTrainer(0);
  Process& trainer1 = job->StartTrainer(1);
  ExpectError(trainer1, {"E-plan-mismatch", "param fc_0.w_0 : f32[13, 1]   |   param fc_0.w_0 : f32[14, 1]"});
  ExpectError(trainer0, {"were made by different plans", "E-plan-mismatch"});
  ExpectError(pserver0, {"were made by different plans", "E-plan-mismatch"});
  ExpectError(pserver1, {"E-plan-mismatch"});
}

TEST(DistFailure, ServerStartErrorsReachTrainers) {
  std::vector<RolePrograms> pservers = Roles("pserver");
  ProgramEdit edit(pservers[0].main);
  const OpEntry& serve = pservers[0].main.main().ops().back();
  edit.main().Replace(serve.id, Op(*serve.op).Set("distributed_mode", std::int32_t{4}));
  pservers[0].main = edit.Apply().value();
  const auto job = LinearJob(2, Roles("trainer"), std::move(pservers));
  Process& pserver0 = job->StartPserver(0);
  Process& pserver1 = job->StartPserver(1);
  Process& trainer0 = job->StartTrainer(0);
  Process& trainer1 = job->StartTrainer(1);
  for (Process* process : {&pserver0, &trainer0, &trainer1}) ExpectError(*process, {"E-server-mode"});
  ExpectError(pserver1, {"failed: listen_and_serv asks for distributed_mode 4", "E-server-mode"});
}

TEST(DistFailure, AnAddressInUseIsAnError) {
  const auto job = LinearJob(2);
  Process& first = job->StartPserver(0);
  while (first.Log().find("is ready") == std::string::npos)
    ASSERT_FALSE(first.Wait(milliseconds(10)).has_value()) << first.Log();
  Process& second = job->StartPserver(0, {}, "again");
  ExpectError(second, {"E-rpc-bind", job->address(0)});
}

}  // namespace
}  // namespace penstock::test
