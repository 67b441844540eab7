#include "executor/client/job_client.h"

#include <gtest/gtest.h>

#include "framework/ir/program.h"
#include "framework/text/parser.h"

namespace penstock {
namespace {

// Records what one client is asked, with its number.
class Recording : public RpcClient {
 public:
  Recording(int number, std::vector<std::string>& calls) : number_(number), calls_(calls) {}
  Status Attach(const Program&) override { return Note("attach"); }
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override { return PushHandle{Next(piece.name)}; }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override { return PullHandle{Next(piece.name)}; }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override { return RowsHandle{Next(piece.name)}; }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override {
    return PeersHandle{Next("peers")};
  }
  Status Push(PushHandle piece, const Variable&) override { return Note("push", piece.index); }
  Status EndStep(PeersHandle peers) override {
    ++steps_;
    return Note("end step", peers.index);
  }
  Status Pull(PullHandle piece, Variable&) override { return Note("pull", piece.index); }
  Status PullRows(RowsHandle piece, std::span<const std::int64_t>, Tensor&) override {
    return Note("pull rows", piece.index);
  }
  Status CompleteRows() override { return Note("complete rows"); }
  Status CompletePulls(PeersHandle peers) override { return Note("complete pulls", peers.index); }
  Status SaveTable(PeersHandle peers, const std::string&, const std::vector<std::string>&) override {
    return Note("save", peers.index);
  }
  std::uint64_t step() const override { return steps_; }
  Result<std::uint64_t> FirstStep() override { return std::uint64_t{7} + 10 * number_; }
  Status Complete() override { return Note("complete"); }
  void Cancel() override { static_cast<void>(Note("cancel")); }

 private:
  int Next(const std::string& name) {
    declared_.push_back(name);
    return static_cast<int>(declared_.size()) - 1;
  }
  Status Note(const std::string& what, int handle = -1) {
    calls_.push_back(StrCat(number_, ": ", what, handle < 0 ? "" : StrCat(" ", declared_[handle])));
    return OkStatus();
  }

  const int number_;
  std::vector<std::string>& calls_;
  std::vector<std::string> declared_;
  std::uint64_t steps_ = 0;
};

// A program that receives one parameter of one server.
Program Receiving(const std::string& name, const std::string& facts, const std::string& server = "a:1") {
  Program program = ParseText(StrCat("program\nblock 0 {\n  param ", name, " : f32[2]\n  ", name,
                                     " = recv(X=[]) {epmap=[\"", server, "\"], trainer_id=1} @rpc\n}\n"),
                              "test.ir")
                        .value();
  program.mutable_meta().job_facts = facts;
  return program;
}

struct Job {
  std::vector<std::string> calls;
  int made = 0;
  client::JobClient client{[this] { return std::make_unique<Recording>(made++, calls); }};

  std::vector<std::string> Take() { return std::exchange(calls, {}); }
};

using Calls = std::vector<std::string>;

TEST(JobClient, CreatesAClientForEachTranspile) {
  Job job;
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d\n")).ok());
  const PeersHandle d = job.client.DeclarePeers({"a:1"}, 1).value();
  ASSERT_TRUE(job.client.Attach(Receiving("g", "updates g\n")).ok());
  const PeersHandle g = job.client.DeclarePeers({"a:1"}, 1).value();
  const PullHandle pull = job.client.DeclarePull({"a:1", "g"}).value();
  EXPECT_EQ(job.Take(), (Calls{"0: attach", "1: attach"}));
  Variable out;
  EXPECT_TRUE(job.client.EndStep(d).ok());
  EXPECT_TRUE(job.client.EndStep(g).ok());
  EXPECT_TRUE(job.client.EndStep(g).ok());
  EXPECT_TRUE(job.client.Pull(pull, out).ok());
  EXPECT_EQ(job.Take(), (Calls{"0: end step peers", "1: end step peers", "1: end step peers", "1: pull g"}));
  EXPECT_EQ(job.client.step(), 3);
  EXPECT_EQ(job.client.StepOf(Receiving("d", "updates d\n")), 1);
  EXPECT_EQ(job.client.StepOf(Receiving("g", "updates g\n")), 2);
  EXPECT_EQ(job.client.StepOf(Receiving("h", "updates h\n")), 0);
  EXPECT_TRUE(job.client.Complete().ok());
  job.client.Cancel();
  EXPECT_EQ(job.Take(), (Calls{"0: complete", "1: complete", "0: cancel", "1: cancel"}));
}

TEST(JobClient, KnowsWhatOtherProgramsReceive) {
  Job job;
  const Program d = Receiving("d", "updates d\n"), g = Receiving("g", "updates g\n");
  ASSERT_TRUE(job.client.Attach(d).ok());
  EXPECT_FALSE(job.client.IsOfAnotherProgram(d, "g"));
  ASSERT_TRUE(job.client.Attach(g).ok());
  EXPECT_TRUE(job.client.IsOfAnotherProgram(d, "g"));
  EXPECT_FALSE(job.client.IsOfAnotherProgram(d, "d"));
  EXPECT_TRUE(job.client.IsOfAnotherProgram(g, "d"));
}

// The client of the variable's program compares the facts, or needs none.
TEST(JobClient, ProgramsWithSharedVariablesShareAClient) {
  Job job;
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d\n")).ok());
  ASSERT_TRUE(job.client.Attach(Receiving("g", "updates g\n")).ok());
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d otherwise\n")).ok());
  ASSERT_TRUE(job.client.Attach(Receiving("d", "")).ok());
  ASSERT_TRUE(job.client.Attach(Receiving("g", "")).ok());
  EXPECT_EQ(job.Take(), (Calls{"0: attach", "1: attach", "0: attach", "0: attach", "1: attach"}));
}

TEST(JobClient, RefusesTwoCopiesOfAVariable) {
  Job job;
  Program there = Receiving("d", "updates d on another server\n");
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d\n")).ok());
  Op op = *there.main().ops()[0].op;
  op.Set("epmap", std::vector<std::string>{"b:2"});
  there.MutableBlock(0).Replace(there.main().ops()[0].id, std::move(op));
  for (int i = 0; i <= client::JobClient::kProgramsMax; ++i) {
    const Status status = job.client.Attach(there);
    EXPECT_EQ(status.id(), "E-plan-programs");
    EXPECT_NE(status.message().find("d is received from pservers by programs of two transpiles"),
              std::string::npos);
  }
  EXPECT_EQ(job.made, 1);
}

TEST(JobClient, LimitsTheNumberOfPrograms) {
  Job job;
  for (int i = 0; i < client::JobClient::kProgramsMax; ++i)
    ASSERT_TRUE(job.client.Attach(Receiving(StrCat("w", i), StrCat("updates w", i, "\n"))).ok());
  EXPECT_EQ(job.client.Attach(Receiving("w", "updates w\n")).id(), "E-plan-programs");
}

TEST(JobClient, MovesToOtherServersBetweenTwoSteps) {
  Job job;
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d\n")).ok());
  const PeersHandle before = job.client.DeclarePeers({"a:1"}, 1).value();
  EXPECT_TRUE(job.client.EndStep(before).ok());
  EXPECT_TRUE(job.client.EndStep(before).ok());
  EXPECT_EQ(job.client.step_here(), 2);
  job.Take();
  ASSERT_TRUE(job.client.Move().ok());
  EXPECT_EQ(job.Take(), (Calls{"0: complete"}));
  EXPECT_EQ(job.client.step_here(), 0);
  EXPECT_EQ(job.client.step(), 2);
  EXPECT_EQ(job.client.FirstStep().value(), 7) << "the step with which this process began";

  const Program there = Receiving("d", "updates d\n", "b:2");
  ASSERT_TRUE(job.client.Attach(there).ok());
  const PeersHandle after = job.client.DeclarePeers({"b:2"}, 1).value();
  EXPECT_TRUE(job.client.EndStep(after).ok());
  EXPECT_EQ(job.client.step(), 3);
  EXPECT_EQ(job.client.StepOf(there), 3);
  EXPECT_FALSE(job.client.IsOfAnotherProgram(there, "d"));
  EXPECT_TRUE(job.client.Complete().ok());
  job.client.Cancel();
  EXPECT_EQ(job.Take(), (Calls{"1: attach", "1: end step peers", "1: complete", "1: cancel"}));
}

TEST(JobClient, AnOldRouteIsAnErrorAfterAMove) {
  Job job;
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d\n")).ok());
  const PullHandle pull = job.client.DeclarePull({"a:1", "d"}).value();
  const PushHandle push = job.client.DeclarePush({"a:1", "d@GRAD"}).value();
  const PeersHandle peers = job.client.DeclarePeers({"a:1"}, 1).value();
  ASSERT_TRUE(job.client.Move().ok());
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d\n", "b:2")).ok());
  ASSERT_TRUE(job.client.DeclarePull({"b:2", "d"}).ok());
  job.Take();
  Variable value;
  EXPECT_EQ(job.client.Pull(pull, value).id(), "E-scale-moved");
  EXPECT_EQ(job.client.PullAhead(pull, value).id(), "E-scale-moved");
  EXPECT_EQ(job.client.Push(push, value).id(), "E-scale-moved");
  EXPECT_EQ(job.client.EndStep(peers).id(), "E-scale-moved");
  EXPECT_EQ(job.client.CompletePulls(peers).id(), "E-scale-moved");
  EXPECT_EQ(job.client.Attach(Receiving("d", "updates d\n")).id(), "E-scale-moved");
  EXPECT_EQ(job.client.Attach(Receiving("d", "")).id(), "E-scale-moved");
  EXPECT_EQ(job.Take(), Calls{}) << "nothing reaches a server";
}

TEST(JobClient, MovesOneProgramAtMostFifteenTimes) {
  Job job;
  ASSERT_TRUE(job.client.Attach(Receiving("d", "updates d\n")).ok());
  for (int i = 1; i < client::JobClient::kProgramsMax; ++i) ASSERT_TRUE(job.client.Move().ok());
  EXPECT_EQ(job.client.Move().id(), "E-scale-programs");
  Job two;
  ASSERT_TRUE(two.client.Attach(Receiving("d", "updates d\n")).ok());
  ASSERT_TRUE(two.client.Attach(Receiving("g", "updates g\n")).ok());
  EXPECT_EQ(two.client.Move().id(), "E-scale-programs");
}

}  // namespace
}  // namespace penstock
