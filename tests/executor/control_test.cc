// Programs of Fluid 1.8.5 with while, conditional_block, tensor arrays and rank tables: their fetches, and
// the learning rates of its schedules.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/executor/control_case.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

constexpr int kRates = 20;

TEST(ControlFlow, ProgramsComputeFluidsOutputs) {
  const std::vector<std::string> names = test::ControlCases();
  for (const std::string& name : names) {
    const test::ControlCase c = test::LoadControlCase(name);
    test::ExpectRuns(c, c.main, "r", c.json["outputs"].get<std::vector<std::string>>());
  }
  EXPECT_GE(names.size(), test::CorpusFolder().empty() ? 2u : 13u);
}

std::string RatesFolder() { return test::CorpusOrSelection() + "/open/lr/"; }

void RunSchedule(const std::string& name, const nlohmann::json& facts, const std::string& suffix) {
  SCOPED_TRACE(name + suffix);
  const Program main = test::ProgramOf(RatesFolder() + name + suffix + ".pb");
  const Program startup = test::ProgramOf(RatesFolder() + name + suffix + ".startup.pb");
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  auto started = executor.Run(startup, scope, {}, {});
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  std::vector<std::string> fetches = {facts["lr_var"], "@LR_DECAY_COUNTER@"};
  if (facts.contains("w00_after_step")) fetches.emplace_back("w");
  std::vector<exec::Feed> feeds;
  for (const VarRef& var : main.main().vars()) {
    if (!var->need_check_feed) continue;
    Tensor ones(var->type->dtype, Shape({1, var->shape()[1]}));
    for (float& value : ones.Span<float>()) value = 1;
    feeds.push_back({var->name, std::move(ones)});
  }
  for (int step = 0; step < kRates; ++step) {
    auto got = executor.Run(main, scope, feeds, fetches);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    const double rate = facts["values"][static_cast<std::size_t>(step)].get<double>();
    EXPECT_NEAR(test::ElementAt(*(*got)[0].If<Tensor>(), 0), rate, 1e-5 * std::abs(rate)) << "step " << step;
    EXPECT_EQ(test::ElementAt(*(*got)[1].If<Tensor>(), 0),
              facts["counter_after_step"][static_cast<std::size_t>(step)].get<double>());
    if (fetches.size() < 3) continue;
    const double weight = facts["w00_after_step"][static_cast<std::size_t>(step)].get<double>();
    EXPECT_NEAR(test::ElementAt(*(*got)[2].If<Tensor>(), 0), weight, 1e-5) << "step " << step;
  }
}

TEST(ControlFlow, SchedulesComputeFluidsLearningRates) {
  const std::vector<std::string> names = test::FilesEndingIn(RatesFolder(), ".json");
  for (const std::string& name : names) {
    const auto facts = nlohmann::json::parse(test::BytesOf(RatesFolder() + name + ".json"));
    RunSchedule(name, facts["alone"], "");
    if (facts.contains("sgd")) RunSchedule(name, facts["sgd"], ".sgd");
  }
  EXPECT_GE(names.size(), test::CorpusFolder().empty() ? 4u : 11u);
}

// A pserver's program counts steps and selects the rate in a separate block, whose cases are further blocks.
TEST(ControlFlow, TheRateBlockOfAPserverRunsWithItsBlocks) {
  const std::string folder =
      test::CorpusOrSelection() + "/open/cases/softmax_reg.sgd.lr_piecewise@sync_p2t2/";
  if (test::FilesEndingIn(folder, ".pb").empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  const Program program = test::ProgramOf(folder + "pserver_0.pb");
  const int block = program.main().ops().front().op->GetOr<std::int32_t>("lr_decay_block_id", -1);
  ASSERT_GT(block, 0);
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  auto started = executor.Run(test::ProgramOf(folder + "pserver_startup_0.pb"), scope, {}, {});
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  for (const auto& [step, rate] : std::vector<std::pair<std::int64_t, float>>{
           {0, 0.1f}, {99, 0.1f}, {100, 0.05f}, {299, 0.05f}, {300, 0.01f}, {600, 0.001f}, {601, 0.001f}}) {
    *scope.Find("@LR_DECAY_COUNTER@")->As<Tensor>().Data<std::int64_t>() = step - 1;
    const Status status = executor.RunBlock(program, block, scope);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(*scope.Find("learning_rate")->As<Tensor>().Data<float>(), rate) << "step " << step;
  }
}

// One iteration per row of the longest sequence; each keeps the rows of `m` whose sequence continues.
constexpr char kRounds[] = R"(program
block 0 {
  data x : f32[?, 1] lod=1
  data m : f32[?, 1]
  var t : rank_table
  var i : i64[1]
  var n : i64[1]
  var c : bool[1]
  var kept : f32[?, 1]
  var s : step_scopes
  t = lod_rank_table(X=x)
  n = max_sequence_len(RankTable=t)
  i = fill_constant() {shape=[1l], dtype=3, value=0.0}
  c = less_than(X=i, Y=n)
  (Out=[i, c, kept], StepScopes=[s]) = while(X=[i, m, n, t], Condition=[c]) {sub_block=^1}
}
block 1 in 0 {
  kept = shrink_rnn_memory(X=m, RankTable=t, I=i)
  i = increment(X=i) {step=1.0}
  c = less_than(X=i, Y=n)
}
)";

TEST(ControlFlow, LoopsOverARankTableArePreparedOnce) {
  const Result<Program> program = ParseText(kRounds, "rounds");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  Tensor x = test::Ramp(DType::kFp32, {6, 1}, 0, 1);
  x.set_lod({{0, 3, 6}});
  const std::vector<exec::Feed> feeds = {{"x", x}, {"m", test::Ramp(DType::kFp32, {2, 1}, 5, 1)}};
  for (int run = 0; run < 3; ++run) {
    const auto got = executor.Run(*program, scope, feeds, std::vector<std::string>{"kept", "i"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[0].If<Tensor>()->shape(), (Shape{2, 1}));
    EXPECT_EQ(test::ElementAt(*(*got)[1].If<Tensor>(), 0), 3);
  }
  // The program, its block before the first iteration has written `kept`, and the block after that.
  EXPECT_LE(executor.stats().specialised_count, 3);
}

}  // namespace
}  // namespace penstock
