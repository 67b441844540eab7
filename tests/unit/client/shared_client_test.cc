#include "executor/client/shared_client.h"

#include <gtest/gtest.h>

#include <vector>

#include "executor/client/initial_values.h"
#include "framework/ir/program.h"
#include "framework/text/parser.h"

namespace penstock {
namespace {

using Calls = std::vector<std::string>;

// Records the end of a job, and the initial values.
class Recorder : public RpcClient {
 public:
  explicit Recorder(Calls& calls) : calls_(calls) {}
  Status Attach(const Program&) override { return OkStatus(); }
  Result<PushHandle> DeclarePush(const RemotePiece&) override { return PushHandle{0}; }
  Result<PullHandle> DeclarePull(const RemotePiece&) override { return PullHandle{0}; }
  Result<RowsHandle> DeclareRows(const RemotePiece&) override { return RowsHandle{0}; }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override { return PeersHandle{0}; }
  Status Push(PushHandle, const Variable&) override { return OkStatus(); }
  Status EndStep(PeersHandle) override { return OkStatus(); }
  Status Pull(PullHandle, Variable&) override { return OkStatus(); }
  Status PullRows(RowsHandle, std::span<const std::int64_t>, Tensor&) override { return OkStatus(); }
  Status CompleteRows() override { return OkStatus(); }
  Status CompletePulls(PeersHandle) override { return OkStatus(); }
  Status SaveTable(PeersHandle, const std::string&, const std::vector<std::string>&) override {
    return OkStatus();
  }
  Status SetInitial(const std::vector<InitialPiece>& pieces) override {
    for (const InitialPiece& piece : pieces) {
      calls_.push_back(StrCat(piece.name, " at ", piece.pserver, ": ", piece.value.shape(), " from ",
                              piece.value.Data<float>()[0]));
    }
    return OkStatus();
  }
  std::uint64_t step() const override { return steps; }
  Status Complete() override {
    calls_.push_back("complete");
    return OkStatus();
  }
  void Cancel() override { calls_.push_back("cancel"); }
  void Abandon(const Status& why) override { calls_.push_back(StrCat("abandon: ", why.message())); }

  std::uint64_t steps = 0;

 private:
  Calls& calls_;
};

Program Parse(const char* text) { return ParseText(text, "test.ir").value(); }

const char* const kStartup = R"(program
block 0 {
  param w : f32[4, 2]
  var w.block0 : f32[3, 2]
  var w.block1 : f32[1, 2]
  param b : f32[2]
  [w.block0, w.block1] = recv(X=[]) {epmap=["a:1", "b:2"], trainer_id=1} @rpc
  b = recv(X=[]) {epmap=["b:2"], varnames=["theirs"], trainer_id=1} @rpc
  fetch_barrier(X=[]) {endpoints=["a:1", "b:2"], trainer_id=1} @rpc
  w = concat(X=[w.block0, w.block1]) {axis=0}
}
)";

const char* const kMain = R"(program
block 0 {
  param w : f32[4, 2]
  var w.block0 : f32[3, 2]
  var w.block1 : f32[1, 2]
  param b : f32[2]
  send_barrier(X=[]) {endpoints=["a:1", "b:2"], trainer_id=1} @rpc
  [w.block0, w.block1] = recv(X=[]) {epmap=["a:1", "b:2"], trainer_id=1} @rpc
  b = recv(X=[]) {epmap=["b:2"], varnames=["theirs"], trainer_id=1} @rpc
  fetch_barrier(X=[]) {endpoints=["a:1", "b:2"], trainer_id=1} @rpc
  w = concat(X=[w.block0, w.block1]) {axis=0}
}
)";

struct Shared {
  Calls calls;
  client::SharedClient client{std::make_unique<Recorder>(calls)};
};

TEST(SharedClient, CompletesWhenTheLastUserOfServersIsClosed) {
  Shared s;
  const auto first = s.client.NewUser(), second = s.client.NewUser(), local = s.client.NewUser();
  ASSERT_TRUE(first->Attach(Parse(kStartup)).ok());
  ASSERT_TRUE(second->Attach(Parse(kMain)).ok());
  ASSERT_TRUE(local->Attach(Parse("program\nblock 0 {\n}\n")).ok());
  EXPECT_TRUE(first->Complete().ok());
  EXPECT_EQ(s.calls, Calls{});
  EXPECT_TRUE(second->Complete().ok());
  EXPECT_EQ(s.calls, Calls{"complete"});
}

TEST(SharedClient, AttachedProgramsDoNotPreventCompletion) {
  Shared s;
  const auto user = s.client.NewUser(), helper = s.client.NewHelper();
  ASSERT_TRUE(user->Attach(Parse(kStartup)).ok());
  ASSERT_TRUE(helper->Attach(Parse(kMain)).ok());
  EXPECT_TRUE(user->Complete().ok());
  EXPECT_EQ(s.calls, Calls{"complete"});
  helper->Cancel();
  EXPECT_EQ(s.calls, (Calls{"complete", "cancel"})) << "it works for those that are in use";
}

TEST(SharedClient, ADestroyedUserDoesNotCompleteIt) {
  Shared s;
  auto first = s.client.NewUser();
  ASSERT_TRUE(first->Attach(Parse(kMain)).ok());
  first.reset();
  EXPECT_EQ(s.calls, Calls{});
  EXPECT_TRUE(s.client.Complete().ok());
  EXPECT_EQ(s.calls, Calls{"complete"});
}

TEST(SharedClient, SendsNothingWithoutServers) {
  Shared s;
  const auto user = s.client.NewUser();
  ASSERT_TRUE(user->Attach(Parse("program\nblock 0 {\n}\n")).ok());
  user->Cancel();
  EXPECT_TRUE(user->Complete().ok());
  s.client.Abandon(Unavailable("E-test", "why"));
  EXPECT_EQ(s.calls, Calls{});
}

TEST(SharedClient, ReportsWhyItsProcessEndsEarly) {
  Shared s;
  const auto user = s.client.NewUser();
  ASSERT_TRUE(user->Attach(Parse(kMain)).ok());
  s.client.Abandon(Unavailable("E-test", "why"));
  s.client.Disconnect();
  EXPECT_TRUE(s.client.Complete().ok());
  EXPECT_EQ(s.calls, Calls{"abandon: why"});
}

Scope& Filled(Scope& scope) {
  Tensor w(DType::kFp32, {4, 2}), b(DType::kFp32, {2});
  for (int i = 0; i < 8; ++i) w.Data<float>()[i] = static_cast<float>(i);
  std::fill_n(b.Data<float>(), 2, 9.0F);
  scope.FindOrCreate("w")->As<Tensor>() = w;
  scope.FindOrCreate("b")->As<Tensor>() = b;
  return scope;
}

TEST(InitialValues, AreSentOnce) {
  Calls calls;
  Recorder rpc(calls);
  Scope scope;
  client::ChangedVars changed = {{"w", true}, {"b", false}, {"learning_rate", true}};
  ASSERT_TRUE(client::InitialValues::HandOver(Parse(kMain), Filled(scope), changed, rpc).ok());
  EXPECT_EQ(calls, (Calls{"theirs at b:2: [2] from 9", "w.block0 at a:1: [3, 2] from 0",
                          "w.block1 at b:2: [1, 2] from 6"}));
  EXPECT_TRUE(changed.empty());
}

TEST(InitialValues, ALaterStartUpProgramOverwritesThem) {
  Calls calls;
  Recorder rpc(calls);
  Scope scope;
  client::ChangedVars changed = {{"w", true}, {"learning_rate", true}};
  ASSERT_TRUE(client::InitialValues::HandOver(Parse(kStartup), Filled(scope), changed, rpc).ok());
  EXPECT_EQ(changed, (client::ChangedVars{{"learning_rate", true}}));
  EXPECT_EQ(calls, Calls{});
}

TEST(InitialValues, AreSentOnlyByProgramsWithServers) {
  client::InitialValues initial;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(initial.Concerns(Parse(kMain)));
    EXPECT_TRUE(initial.Concerns(Parse(kStartup)));
    EXPECT_FALSE(initial.Concerns(Parse("program\nblock 0 {\n}\n")));
  }
}

TEST(InitialValues, LoadingAfterAStepIsAnErrorButSettingIsNot) {
  Calls calls;
  Recorder rpc(calls);
  rpc.steps = 3;
  Scope scope;
  client::ChangedVars by_hand = {{"w", false}};
  EXPECT_TRUE(client::InitialValues::HandOver(Parse(kMain), Filled(scope), by_hand, rpc).ok());
  client::ChangedVars loaded = {{"w", true}};
  const Status late = client::InitialValues::HandOver(Parse(kMain), scope, loaded, rpc);
  EXPECT_EQ(
      late.ToString(),
      "w was loaded after step 3 of this trainer: the parameter servers hold it and would overwrite it   "
      "[E-load-late]\n"
      "  load on every trainer, after its startup program and before its first step");
  EXPECT_EQ(calls, Calls{});
}

TEST(InitialValues, DifferentHeightsAreAnError) {
  Calls calls;
  Recorder rpc(calls);
  Scope scope;
  Filled(scope);
  scope.Find("w")->As<Tensor>() = Tensor(DType::kFp32, {3, 2});
  client::ChangedVars changed = {{"w", true}};
  EXPECT_EQ(client::InitialValues::HandOver(Parse(kMain), scope, changed, rpc).id(), "E-load-shape");
}

}  // namespace
}  // namespace penstock
