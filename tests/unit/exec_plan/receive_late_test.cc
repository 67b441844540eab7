// Parameters arrive after the run only where everyone who reads them waits for them.
#include "executor/plan/receive_late.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "executor/plan/verify.h"
#include "framework/op/tensor_desc.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"

namespace penstock::exec {
namespace {

constexpr char kHead[] =
    "program\nblock 0 {\n  data x : f32[4, 2]\n  param w : f32[4, 2]\n  param v : f32[4, 2]\n"
    "  persist t : f32[4, 2]\n";
constexpr char kUseW[] = "  h : f32[4, 2] = elementwise_mul(X=x, Y=w)\n";
constexpr char kUseV[] = "  g : f32[4, 2] = elementwise_mul(X=h, Y=v)\n";
constexpr char kSend[] = "  send(X=g) {epmap=[\"a:1\"]} @rpc(w, g)\n";
constexpr char kEndStep[] = "  send_barrier() {endpoints=[\"a:1\"]} @rpc\n";
constexpr char kRecv[] = "  [w, v] = recv() {epmap=[\"a:1\", \"a:1\"]} @rpc(w, g)\n";
constexpr char kRecvRows[] =
    "  [w0 : f32[2, 2], w1 : f32[2, 2]] = recv() {epmap=[\"a:1\", \"b:1\"]} @rpc(w, g)\n";
constexpr char kEndFetch[] = "  fetch_barrier() {endpoints=[\"a:1\", \"b:1\"]} @rpc\n";
constexpr char kJoin[] = "  w = concat(X=[w0, w1])\n";

const std::string kWholeStep = StrCat(kUseW, kUseV, kSend, kEndStep);  // NOLINT(cert-err58-cpp)

std::shared_ptr<const CompiledBlock> Compiled(const std::string& ops, std::vector<std::string> fetches = {}) {
  const Result<Program> program = ParseText(StrCat(kHead, ops, "}\n"), "in");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  auto compiled = CompileBlock(AllOps(), *program, {.feeds = {"x"}, .fetches = std::move(fetches)});
  PENSTOCK_CHECK(compiled.ok(), compiled.status().ToString());
  return *std::move(compiled);
}

bool IsLate(const std::string& ops, std::vector<std::string> fetches = {}) {
  return LeavesPulls(*ReceiveLate(Compiled(ops, std::move(fetches))));
}

// "w:0 v:1": the variables that the block awaits, and before which instruction.
std::string AwaitsOf(const std::string& ops, std::vector<std::string> fetches = {}) {
  const std::shared_ptr<const CompiledBlock> block = ReceiveLate(Compiled(ops, std::move(fetches)));
  std::vector<std::string> texts;
  for (const Await& await : FindAwaits(*block)) {
    const std::string name =
        await.slot < 0 ? std::string("*") : block->slots[static_cast<std::size_t>(await.slot)].name;
    texts.push_back(StrCat(name, await.what == Await::For::kCopied ? "!" : "", ":", await.step));
  }
  return Join(texts, " ");
}

TEST(ReceiveLate, TheNextRunAwaitsEachParameterBeforeItsFirstUse) {
  EXPECT_TRUE(IsLate(StrCat(kWholeStep, kRecv, kEndFetch)));
  EXPECT_EQ(AwaitsOf(StrCat(kWholeStep, kRecv, kEndFetch)), "w:0 v:1");
}

TEST(ReceiveLate, AllVariablesOfTheScopeAreAwaited) {
  EXPECT_EQ(AwaitsOf(StrCat(kUseW, "  t = relu(X=h)\n", kUseV, kSend, kEndStep, kRecv, kEndFetch)),
            "w:0 t:1 v:2")
      << "another program may receive t";
  EXPECT_EQ(AwaitsOf(StrCat(kWholeStep, kRecv, kEndFetch), {"t"}), "w:0 v:1 t:5") << "fetched";
}

TEST(ReceiveLate, RowsArriveInPlaceOrAreAwaited) {
  EXPECT_EQ(AwaitsOf(StrCat(kWholeStep, kRecvRows, kEndFetch, kJoin)), "w:0 v:1 w0!:6 w1!:6");
}

TEST(ReceiveLate, BlocksThatFindVariablesByNameAwaitAll) {
  const Result<Program> program =
      ParseText(StrCat(kHead, "  var c : bool[1]\n", kUseW, kUseV,
                       "  conditional_block(Cond=c, Input=[]) {sub_block=^1, is_scalar_condition=true}\n",
                       kSend, kEndStep, kRecv, kEndFetch, "}\nblock 1 in 0 {\n  t = relu(X=t)\n}\n"),
                "in");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  auto compiled = CompileBlock(AllOps(), *program, {.feeds = {"x", "c"}});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const std::vector<Await> awaits = FindAwaits(*ReceiveLate(*std::move(compiled)));
  EXPECT_EQ(std::ranges::count_if(awaits, [](const Await& a) { return a.step == 2 && a.slot < 0; }), 1);
}

TEST(ReceiveLate, AStartupProgramLeavesItsPullsToo) {
  const std::string first = "  w = fill_constant() {shape=[4, 2], dtype=5, value=0.0}\n";
  EXPECT_TRUE(IsLate(StrCat(first, kRecv, kEndFetch)));
  EXPECT_EQ(AwaitsOf(StrCat(first, kRecvRows, kEndFetch, kJoin)), "w:0 w0!:3 w1!:3");
  EXPECT_TRUE(IsLate(StrCat(first, "  send(X=w) {epmap=[\"a:1\"]} @rpc(w, w)\n", kRecv, kEndFetch)))
      << "it sends an initial value";
  EXPECT_FALSE(IsLate(StrCat(kRecv, kEndFetch, "  t = relu(X=v)\n"))) << "computed from what is received";
  EXPECT_FALSE(IsLate(StrCat(kRecv, kEndFetch, kRecv, kEndFetch)));
  EXPECT_FALSE(IsLate(StrCat(kUseW, kUseV, kSend, kRecv, kEndFetch))) << "a step that ends by itself";
}

TEST(ReceiveLate, WaitsInTheRunInUnprovenCases) {
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecv, kEndFetch), {"v"})) << "fetched";
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecv, kEndFetch, "  t = relu(X=v)\n"))) << "read in this run";
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecv, kEndFetch, "  v = relu(X=t)\n"))) << "written in this run";
  EXPECT_TRUE(IsLate(StrCat(kWholeStep, kRecv, kEndFetch, "  t = relu(X=t)\n")));
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecv))) << "no step";
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kEndFetch, kRecv))) << "received after the barrier";
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kEndFetch))) << "nothing is received";
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecv, kEndFetch, kSend))) << "another step begins";
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecvRows, kEndFetch))) << "the pieces end with the run";
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecvRows, kEndFetch, kJoin, "  t = relu(X=w)\n")));
  EXPECT_FALSE(IsLate(StrCat(kWholeStep, kRecvRows, kEndFetch, "  w = concat(X=[w1, w0, w1])\n")))
      << "not rows in their order";
  EXPECT_FALSE(IsLate(
      StrCat(kWholeStep, "  v = recv() {epmap=[\"a:1\"], recv_varnames=[\"v\"]} @rpc(v, g)\n", kEndFetch)))
      << "the communicator receives";
  EXPECT_FALSE(
      IsLate(StrCat(kUseW, kUseV, kSend, "  send_barrier() {endpoints=[\"a:1\"], half_async=true} @rpc\n",
                    kRecv, kEndFetch)));
}

// It would leave pulls for which nobody waits.
TEST(ReceiveLate, ProgramsCannotLeavePulls) {
  const Result<Program> program =
      ParseText(StrCat(kHead, "  fetch_barrier() {endpoints=[\"a:1\"], leaves_pulls=true} @rpc\n}\n"), "in");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const auto compiled = CompileBlock(AllOps(), *program, {.feeds = {"x"}});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().id(), "E-op-attr");
}

// A plan of a step whose kernels need no client, without the awaits that `lost` selects.
std::string RuleWithout(const std::string& ops, const std::function<bool(const Await&)>& lost) {
  const std::shared_ptr<const CompiledBlock> block = ReceiveLate(Compiled(ops));
  Specialisation plan;
  plan.block = block;
  plan.steps.resize(block->instructions.size());
  plan.awaits = FindAwaits(*block);
  std::erase_if(plan.awaits, lost);
  const Status status = VerifyPlan(plan);
  EXPECT_EQ(status.id(), status.ok() ? "" : "E-exec-plan");
  return std::string(status.message());
}

TEST(ReceiveLate, AMissingAwaitBreaksThePlan) {
  const std::string whole = StrCat(kWholeStep, kRecv, kEndFetch);
  const std::string rows = StrCat(kWholeStep, kRecvRows, kEndFetch, kJoin);
  const auto none = [](const Await&) { return false; };
  EXPECT_EQ(RuleWithout(whole, none), "");
  EXPECT_EQ(RuleWithout(rows, none), "");
  const std::string second = RuleWithout(whole, [](const Await& await) { return await.step == 1; });
  EXPECT_NE(second.find("v may be on its way"), std::string::npos) << second;
  const std::string piece = RuleWithout(rows, [](const Await& await) { return await.step == 6; });
  EXPECT_NE(piece.find("w0 may be on its way"), std::string::npos) << piece;
}

}  // namespace
}  // namespace penstock::exec
