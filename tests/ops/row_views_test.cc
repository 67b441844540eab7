// Gradients are sent from the memory in which they were computed, and parameters are received into their
// final memory: real ops, and a client that records addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/runtime/rpc_client.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

// A client that keeps pushed tensors, as a session does until they are acknowledged, and fills pulled ones at
// the barrier.
class NotingClient : public RpcClient {
 public:
  std::map<std::string, Tensor> pushed, pulled;  // the last tensor of each name
  float next = 1;                                // element i of all tensors pulled in a step is next + i

  Status Attach(const Program&) override { return OkStatus(); }
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override { return PushHandle{Name(piece)}; }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override { return PullHandle{Name(piece)}; }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override { return RowsHandle{Name(piece)}; }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override { return PeersHandle{0}; }
  Status Push(PushHandle piece, const Variable& value) override {
    pushed[names_[static_cast<std::size_t>(piece.index)]] = *value.If<Tensor>();
    return OkStatus();
  }
  Status EndStep(PeersHandle) override { return OkStatus(); }
  Status Pull(PullHandle piece, Variable& out) override {
    auto& tensor = out.As<Tensor>();
    tensor.Refit(tensor.dtype(), tensor.shape());
    pulled[names_[static_cast<std::size_t>(piece.index)]] = tensor;
    waiting_.push_back(tensor);
    return OkStatus();
  }
  Status PullRows(RowsHandle, std::span<const std::int64_t>, Tensor&) override { return OkStatus(); }
  Status CompleteRows() override { return OkStatus(); }
  Status CompletePulls(PeersHandle) override {
    for (Tensor& tensor : waiting_)
      for (float& value : tensor.Span<float>()) value = next++;
    waiting_.clear();
    return OkStatus();
  }
  Status SaveTable(PeersHandle, const std::string&, const std::vector<std::string>&) override {
    return OkStatus();
  }
  Status Complete() override { return OkStatus(); }
  void Cancel() override {}

 private:
  int Name(const RemotePiece& piece) {
    names_.push_back(piece.name);
    return static_cast<int>(names_.size()) - 1;
  }
  std::vector<std::string> names_;
  std::vector<Tensor> waiting_;
};

constexpr char kServers[] = R"({epmap=["a:1", "b:1"]})";
constexpr char kBarrier[] = R"({endpoints=["a:1", "b:1"]})";

// A trainer whose parameter w : f32[5, 2] has a slice on each of two servers. The gradient is relu(x).
class RowViewsRun : public testing::Test {
 protected:
  RowViewsRun() { executor_.set_rpc(&client_); }

  static std::string Cut() {
    return StrCat("  g : f32[5, 2] = relu(X=x)\n",
                  "  [g0 : f32[3, 2], g1 : f32[2, 2]] = split_byref(X=g) {sections=[3, 2]}\n");
  }
  static std::string Send() { return StrCat("  send(X=[g0, g1]) ", kServers, "\n"); }
  static std::string Receive() {
    return StrCat("  [w0 : f32[3, 2], w1 : f32[2, 2]] = recv() ", kServers, "\n",
                  "  [w0, w1] = fetch_barrier() ", kBarrier, "\n");
  }
  static std::string Step() { return StrCat(Cut(), Send(), Receive(), "  w = concat(X=[w0, w1])\n"); }

  std::vector<Variable> Run(const std::string& ops, float x, const std::vector<std::string>& fetches = {}) {
    Tensor fed(DType::kFp32, {5, 2});
    for (float& value : fed.Span<float>()) value = x++;
    return RunOn(fed, ops, fetches);
  }
  std::vector<Variable> RunOn(const Tensor& x, const std::string& ops,
                              const std::vector<std::string>& fetches = {}) {
    const std::vector<exec::Feed> feeds = {{"x", x}};
    Result<std::vector<Variable>> out = executor_.Run(ProgramOf(ops), scope_, feeds, fetches);
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    return out.ok() ? *std::move(out) : std::vector<Variable>();
  }
  const Program& ProgramOf(const std::string& ops) {
    const auto known = programs_.find(ops);
    if (known != programs_.end()) return known->second;
    Result<Program> program = ParseText(
        StrCat("program\nblock 0 {\n  data x : f32[5, 2] lod=1\n  param w : f32[5, 2]\n", ops, "}\n"),
        "trainer.ir");
    PENSTOCK_CHECK(program.ok(), program.status().ToString());
    return programs_.emplace(ops, *std::move(program)).first->second;
  }

  Tensor& w() { return scope_.FindOrCreate("w")->As<Tensor>(); }
  void MakeParameter() {
    w() = Tensor(DType::kFp32, {5, 2});
    std::ranges::fill(w().Span<float>(), 0.0f);
  }
  static std::vector<float> ValuesOf(const Tensor& tensor) {
    const std::span<const float> values = tensor.Span<float>();
    return {values.begin(), values.end()};
  }

  NotingClient client_;
  exec::Executor executor_{AllOps()};
  Scope scope_;
  std::map<std::string, Program> programs_;
};

TEST_F(RowViewsRun, ASlicedGradientIsSentWithoutACopy) {
  MakeParameter();
  Run(Step(), 1);
  const Tensor &g0 = client_.pushed.at("g0"), &g1 = client_.pushed.at("g1");
  EXPECT_EQ(g0.buffer(), g1.buffer());
  EXPECT_EQ(g0.buffer()->bytes(), 40u);
  EXPECT_EQ(g0.raw() + g0.bytes(), g1.raw());
  EXPECT_EQ(ValuesOf(g0), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ValuesOf(g1), (std::vector<float>{7, 8, 9, 10}));
}

TEST_F(RowViewsRun, AGradientInFlightIsNotOverwrittenByLaterSteps) {
  MakeParameter();
  Run(Step(), 1);
  const Tensor first = client_.pushed.at("g1");
  Run(Step(), 101);
  const Tensor second = client_.pushed.at("g1");
  Run(Step(), 201);
  EXPECT_EQ(ValuesOf(first), (std::vector<float>{7, 8, 9, 10}));
  EXPECT_EQ(ValuesOf(second), (std::vector<float>{107, 108, 109, 110}));
  EXPECT_EQ(ValuesOf(client_.pushed.at("g1")), (std::vector<float>{207, 208, 209, 210}));
}

TEST_F(RowViewsRun, AnAcknowledgedGradientsMemoryIsReused) {
  MakeParameter();
  Run(Step(), 1);
  const std::byte* const first = client_.pushed.at("g0").raw();
  client_.pushed.clear();
  Run(Step(), 101);
  EXPECT_EQ(client_.pushed.at("g0").raw(), first);
}

TEST_F(RowViewsRun, PulledSlicesAreWrittenIntoTheParameter) {
  MakeParameter();
  const std::byte* const before = w().raw();
  for (int step = 0; step < 3; ++step) {
    Run(Step(), 1);
    EXPECT_EQ(w().raw(), before);
    EXPECT_EQ(client_.pulled.at("w0").raw(), before);
    EXPECT_EQ(client_.pulled.at("w1").raw(), before + 3 * 2 * sizeof(float));
    const float first = static_cast<float>(10 * step + 1);
    EXPECT_EQ(ValuesOf(w())[0], first);
    EXPECT_EQ(ValuesOf(w())[9], first + 9);
  }
}

TEST_F(RowViewsRun, TheParameterIsNotReferencedBetweenSteps) {
  MakeParameter();
  Run(Step(), 1);
  client_.pulled.clear();
  EXPECT_EQ(w().buffer().use_count(), 1);
}

TEST_F(RowViewsRun, AReplacedParameterIsReceivedIntoItsNewMemory) {
  MakeParameter();
  Run(Step(), 1);
  const Tensor old = w();
  const std::vector<float> values = ValuesOf(old);
  MakeParameter();
  Run(Step(), 1);
  EXPECT_EQ(client_.pulled.at("w1").buffer(), w().buffer());
  EXPECT_EQ(ValuesOf(old), values);
}

TEST_F(RowViewsRun, AParameterWithoutAValueIsConcatenatedFromCopies) {
  Run(Step(), 1);
  EXPECT_NE(client_.pulled.at("w0").buffer(), w().buffer());
  EXPECT_EQ(ValuesOf(w()), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(RowViewsRun, AStartUpProgramOverwritesItsOwnInitialValues) {
  Run(StrCat("  w = fill_constant() {shape=[5l, 2l], value=3.0}\n", Receive(), "  w = concat(X=[w0, w1])\n"),
      1);
  EXPECT_EQ(client_.pulled.at("w1").buffer(), w().buffer());
  EXPECT_EQ(ValuesOf(w()), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(RowViewsRun, AFetchedSliceIsACopy) {
  MakeParameter();
  const std::vector<Variable> out = Run(Step(), 1, {"g1", "w0"});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(ValuesOf(*out[0].If<Tensor>()), (std::vector<float>{7, 8, 9, 10}));
  EXPECT_EQ(ValuesOf(*out[1].If<Tensor>()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_NE(client_.pushed.at("g1").buffer(), client_.pushed.at("g0").buffer());
  EXPECT_EQ(client_.pushed.at("g1").buffer(), out[0].If<Tensor>()->buffer());
  EXPECT_NE(out[1].If<Tensor>()->buffer(), w().buffer());
  EXPECT_EQ(ValuesOf(w()), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(RowViewsRun, AReceivedSliceThatIsReadLaterIsACopy) {
  MakeParameter();
  const std::string ops = StrCat(Step(), "  w = scale(X=w) {scale=2.0}\n  a : f32[3, 2] = relu(X=w0)\n");
  const std::vector<Variable> out = Run(ops, 1, {"a"});
  EXPECT_EQ(ValuesOf(*out[0].If<Tensor>()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ValuesOf(w())[9], 20);
}

TEST_F(RowViewsRun, ChangingASentSliceDoesNotChangeTheMessage) {
  MakeParameter();
  const std::string again =
      "  g0 = scale(X=g0) {scale=2.0}\n  g = relu(X=x)\n  g = scale(X=g) {scale=-1.0}\n";
  const std::vector<Variable> out = Run(StrCat(Cut(), Send(), again), 1, {"g", "g0"});
  EXPECT_EQ(ValuesOf(client_.pushed.at("g0")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ValuesOf(client_.pushed.at("g1")), (std::vector<float>{7, 8, 9, 10}));
  EXPECT_EQ(ValuesOf(*out[0].If<Tensor>())[9], -10);
  EXPECT_EQ(ValuesOf(*out[1].If<Tensor>())[0], 2);
}

TEST_F(RowViewsRun, ReceivingIntoASentVariableKeepsTheMessage) {
  MakeParameter();
  const std::string ops =
      StrCat(Cut(), Send(), "  [g0, g1] = recv() ", kServers, "\n  fetch_barrier() ", kBarrier, "\n");
  const std::vector<Variable> out = Run(ops, 101, {"g0"});
  EXPECT_EQ(ValuesOf(client_.pushed.at("g0"))[0], 101);
  EXPECT_EQ(ValuesOf(*out[0].If<Tensor>())[0], 1);
}

TEST_F(RowViewsRun, SlicesDoNotInheritTheLoD) {
  MakeParameter();
  Tensor fed(DType::kFp32, {5, 2});
  std::ranges::fill(fed.Span<float>(), 1.0f);
  fed.set_lod({{0, 2, 5}});
  RunOn(fed, Step());
  EXPECT_TRUE(client_.pushed.at("g0").lod().empty());
  EXPECT_TRUE(w().lod().empty());
}

}  // namespace
}  // namespace penstock::test
