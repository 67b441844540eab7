// Runs whose parameters arrive after them: real ops, and a client that fills what was pulled when somebody
// waits for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/runtime/rpc_client.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"

namespace penstock::test {
namespace {

using Calls = std::vector<std::string>;

// Everything that is pulled becomes the number of the pull.
class LateClient : public RpcClient {
 public:
  Calls calls;
  bool leaves = true;
  bool on_threads = false;  // what is left arrives on threads of its own, before somebody waits or after
  Status failure;

  Status Attach(const Program&) override { return OkStatus(); }
  Result<PushHandle> DeclarePush(const RemotePiece&) override { return PushHandle{0}; }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override {
    names_.push_back(piece.name);
    return PullHandle{static_cast<int>(names_.size()) - 1};
  }
  Result<RowsHandle> DeclareRows(const RemotePiece&) override { return RowsHandle{0}; }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override { return PeersHandle{0}; }
  Status Push(PushHandle, const Variable&) override { return CompleteLeft(); }
  Status EndStep(PeersHandle) override { return OkStatus(); }
  Status Pull(PullHandle piece, Variable& out) override {
    auto& tensor = out.As<Tensor>();
    tensor.Refit(tensor.dtype(), tensor.shape());
    calls.push_back("pull " + names_[static_cast<std::size_t>(piece.index)]);
    in_flight_.push_back({names_[static_cast<std::size_t>(piece.index)], tensor, ++number_});
    return OkStatus();
  }
  Status PullNext(PullHandle piece, Variable& out) override { return Pull(piece, out); }
  bool PullsNext() const override { return true; }
  Status PullRows(RowsHandle, std::span<const std::int64_t>, Tensor&) override { return OkStatus(); }
  Status CompleteRows() override { return OkStatus(); }
  Status CompletePulls(PeersHandle) override {
    calls.push_back("complete");
    return ArriveAll();
  }
  bool LeavesPulls() const override { return leaves; }
  Status LeavePulls(PeersHandle) override {
    calls.push_back("leave");
    for (Flying& one : in_flight_) {
      if (on_threads && one.thread == nullptr)
        one.thread = std::make_shared<std::jthread>(&Fill, one.to, one.value);
    }
    return OkStatus();
  }
  Status CompleteLeft() override {
    if (!in_flight_.empty()) calls.push_back("await all");
    return ArriveAll();
  }
  Status CompleteLeftInto(const Variable& variable) override {
    const auto* tensor = variable.If<Tensor>();
    if (tensor == nullptr || !tensor->initialized()) return OkStatus();
    for (const Flying& one : std::vector<Flying>(in_flight_)) {
      if (one.to.raw() + one.to.bytes() <= tensor->raw() || tensor->raw() + tensor->bytes() <= one.to.raw())
        continue;
      calls.push_back("await " + one.name);
      if (!failure.ok()) return failure;
      Arrive(one);
    }
    return OkStatus();
  }
  Status SaveTable(PeersHandle, const std::string&, const std::vector<std::string>&) override {
    return OkStatus();
  }
  Status Complete() override { return OkStatus(); }
  void Cancel() override {}

  Calls TakeCalls() { return std::exchange(calls, {}); }

 private:
  struct Flying {
    std::string name;
    Tensor to;
    float value = 0;
    std::shared_ptr<std::jthread> thread = nullptr;
  };

  static void Fill(Tensor to, float value) { std::ranges::fill(to.Span<float>(), value); }
  void Arrive(const Flying& one) {
    one.thread != nullptr ? one.thread->join() : Fill(one.to, one.value);
    std::erase_if(in_flight_, [&](const Flying& other) { return other.value == one.value; });
  }
  Status ArriveAll() {
    while (!in_flight_.empty()) Arrive(Flying(in_flight_.front()));
    return OkStatus();
  }

  std::vector<std::string> names_;
  std::vector<Flying> in_flight_;
  float number_ = 0;
};

constexpr char kHead[] = "program\nblock 0 {\n  data x : f32[2]\n  param w : f32[2]\n  param v : f32[2, 1]\n";
constexpr char kStartup[] =
    "  w = fill_constant() {shape=[2], dtype=5, value=7.0}\n"
    "  w = recv() {epmap=[\"a:1\"]} @rpc(w, h)\n"
    "  [v0 : f32[1, 1], v1 : f32[1, 1]] = recv() {epmap=[\"a:1\", \"b:1\"]} @rpc(v, y)\n"
    "  fetch_barrier() {endpoints=[\"a:1\", \"b:1\"]} @rpc\n"
    "  v = concat(X=[v0, v1])\n";
constexpr char kStep[] =
    "  h : f32[2] = elementwise_add(X=x, Y=w)\n"
    "  g : f32[2, 1] = reshape(X=h) {shape=[2, 1]}\n"
    "  y : f32[2, 1] = elementwise_add(X=g, Y=v)\n"
    "  send(X=h) {epmap=[\"a:1\"]} @rpc(w, h)\n"
    "  send_barrier() {endpoints=[\"a:1\"]} @rpc\n"
    "  w = recv() {epmap=[\"a:1\"]} @rpc(w, h)\n"
    "  [v0 : f32[1, 1], v1 : f32[1, 1]] = recv() {epmap=[\"a:1\", \"b:1\"]} @rpc(v, y)\n"
    "  fetch_barrier() {endpoints=[\"a:1\", \"b:1\"]} @rpc\n"
    "  v = concat(X=[v0, v1])\n";

class LatePulls : public testing::Test {
 protected:
  LatePulls() {
    executor_.set_rpc(&client_);
    scope_.FindOrCreate("w")->As<Tensor>() = Tensor(DType::kFp32, {2});
    scope_.FindOrCreate("v")->As<Tensor>() = Tensor(DType::kFp32, {2, 1});
    for (const char* name : {"w", "v"}) std::ranges::fill(Param(name).Span<float>(), 0.0f);
  }

  Tensor& Param(const std::string& name) { return scope_.Find(name)->As<Tensor>(); }
  std::vector<float> ValuesOf(const std::string& name) {
    const std::span<const float> values = Param(name).Span<float>();
    return {values.begin(), values.end()};
  }
  Result<std::vector<Variable>> Try(const std::string& ops, const std::vector<std::string>& fetches = {"y"}) {
    Tensor x(DType::kFp32, {2});
    std::ranges::fill(x.Span<float>(), 10.0f);
    const Result<Program> program = ParseText(StrCat(kHead, ops, "}\n"), "in");
    PENSTOCK_CHECK(program.ok(), program.status().ToString());
    const std::vector<exec::Feed> feeds = {{"x", x}};
    return executor_.Run(*program, scope_, feeds, fetches);
  }
  std::vector<float> Run(const std::string& ops, const std::vector<std::string>& fetches = {"y"}) {
    const auto out = Try(ops, fetches);
    PENSTOCK_CHECK(out.ok(), out.status().ToString());
    const std::span<const float> values = (*out)[0].If<Tensor>()->Span<float>();
    return {values.begin(), values.end()};
  }

  LateClient client_;
  exec::Executor executor_{AllOps()};
  Scope scope_;
};

TEST_F(LatePulls, ARunEndsBeforeItsParametersArriveAndTheNextAwaitsThem) {
  EXPECT_EQ(Run(kStep), (std::vector<float>{10, 10}));
  EXPECT_EQ(client_.TakeCalls(), (Calls{"pull w", "pull v0", "pull v1", "leave"}))
      << "each is asked for once";
  EXPECT_EQ(ValuesOf("w"), (std::vector<float>{0, 0})) << "on its way";
  EXPECT_EQ(Run(kStep), (std::vector<float>{10 + 1 + 2, 10 + 1 + 3}));
  EXPECT_EQ(client_.TakeCalls(),
            (Calls{"await w", "await v0", "await v1", "pull w", "pull v0", "pull v1", "leave"}));
}

// ThreadSanitizer reports a step that touches what has not arrived.
TEST_F(LatePulls, NothingIsTouchedWhileItArrivesOnAnotherThread) {
  client_.on_threads = true;
  for (float pulls = 0; pulls < 30; pulls += 3) {
    const float w = pulls > 0 ? pulls - 2 : 0, v = pulls > 0 ? pulls - 1 : 0;
    EXPECT_EQ(Run(kStep), (std::vector<float>{10 + w + v, 10 + w + (pulls > 0 ? v + 1 : 0)}));
  }
  EXPECT_EQ(Run("  y : f32[2] = elementwise_add(X=x, Y=w)\n"), (std::vector<float>{38, 38}));
  EXPECT_EQ(ValuesOf("v"), (std::vector<float>{29, 30}));
}

TEST_F(LatePulls, ARunOfAnotherProgramAwaitsAllOfThem) {
  Run(kStep);
  client_.TakeCalls();
  EXPECT_EQ(Run("  y : f32[2] = elementwise_add(X=x, Y=w)\n"), (std::vector<float>{11, 11}));
  EXPECT_EQ(client_.TakeCalls(), (Calls{"await all"}));
}

TEST_F(LatePulls, OtherFetchesOfTheProgramAwaitThemToo) {
  Run(kStep);
  client_.TakeCalls();
  EXPECT_EQ(Run(kStep, {"h"}), (std::vector<float>{11, 11}));
  EXPECT_EQ(client_.TakeCalls()[0], "await w");
  EXPECT_EQ(Run(kStep, {"w"}), (std::vector<float>{7, 7})) << "a fetched parameter arrives in the run";
  EXPECT_EQ(client_.TakeCalls(), (Calls{"await all", "pull w", "pull v0", "pull v1", "complete"}));
}

TEST_F(LatePulls, AStartupProgramEndsBeforeItsParametersArrive) {
  const auto run = Try(kStartup, {});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(client_.TakeCalls(), (Calls{"pull w", "pull v0", "pull v1", "leave"}));
  EXPECT_EQ(Run(kStep), (std::vector<float>{10 + 1 + 2, 10 + 1 + 3}));
  EXPECT_EQ(client_.TakeCalls(),
            (Calls{"await w", "await v0", "await v1", "pull w", "pull v0", "pull v1", "leave"}));
}

TEST_F(LatePulls, PiecesThatAreNotInPlaceArriveBeforeTheyAreJoined) {
  Run(kStep);
  client_.TakeCalls();
  Param("v") = Tensor(DType::kFp32, {1, 2});  // the script gives v another shape
  const auto run =
      Try("  [v0 : f32[1, 1], v1 : f32[1, 1]] = recv() {epmap=[\"a:1\", \"b:1\"]} @rpc(v, y)\n"
          "  y : f32[2] = elementwise_add(X=x, Y=w)\n"
          "  send_barrier() {endpoints=[\"a:1\"]} @rpc\n"
          "  fetch_barrier() {endpoints=[\"a:1\", \"b:1\"]} @rpc\n"
          "  v = concat(X=[v0, v1])\n");
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  const Calls calls = client_.TakeCalls();
  EXPECT_EQ(calls.back(), "await v1");
  EXPECT_EQ(ValuesOf("v"), (std::vector<float>{4, 5}));
}

TEST_F(LatePulls, AnErrorOfAnArrivalNamesTheOpThatNeedsIt) {
  Run(kStep);
  client_.failure = Unavailable("E-test", "the server is gone");
  const auto run = Try(kStep);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.status().id(), "E-test");
  EXPECT_NE(run.status().ToString().find("elementwise_add"), std::string::npos) << run.status().ToString();
}

TEST_F(LatePulls, AClientThatLeavesNothingIsAwaitedInTheRun) {
  client_.leaves = false;
  Run(kStep);
  EXPECT_EQ(client_.TakeCalls(), (Calls{"pull w", "pull v0", "pull v1", "complete"}));
  EXPECT_EQ(ValuesOf("v"), (std::vector<float>{2, 3}));
}

}  // namespace
}  // namespace penstock::test
