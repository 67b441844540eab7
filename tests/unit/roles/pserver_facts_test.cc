#include "framework/roles/pserver_facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/program_files.h"
#include "tests/support/run_program.h"
#include "tests/support/training_program.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

Result<roles::PserverFacts> RoleOf(const Program& program) {
  return roles::ReadServer(AllOps(), program, *roles::FindServe(program.main()));
}

Result<roles::PserverFacts> RoleOf(std::string_view text) {
  const Result<Program> program = ParseText(text, "pserver.ir");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return RoleOf(*program);
}

// Two pservers; w is cut into rows [0, 7) and [7, 13).
RoleSet Transpiled() {
  const TrainingProgram source = MakeTrainingProgram({{13, 2048}, {3}});
  plan::TranspileConfig config;
  config.trainers = 2;
  config.pservers = {"a:1", "b:1"};
  Result<RoleSet> set = Transpile(AllOps(), source.main, source.startup, config);
  EXPECT_TRUE(set.ok()) << set.status().ToString();
  return *std::move(set);
}

TEST(PserverFacts, ASliceKnowsItsParameterRowsAndPlan) {
  const RoleSet set = Transpiled();
  std::map<std::string, Dim> rows;  // by parameter: of all pieces
  int cut = 0;
  for (const PserverPrograms& pserver : set.pservers) {
    const Result<roles::PserverFacts> role = RoleOf(pserver.main);
    ASSERT_TRUE(role.ok()) << role.status().ToString();
    EXPECT_EQ(role->plan_fingerprint, plan::Fingerprint(set.plan));
    for (const roles::ServedParam& served : role->params) {
      ASSERT_TRUE(served.row_begin.has_value()) << served.param.name;
      rows[served.logical] += served.param.shape[0];
      if (served.logical == served.param.name) {
        EXPECT_EQ(served.row_begin, 0);
        continue;
      }
      ++cut;
      EXPECT_LE(*served.row_begin + served.param.shape[0], 13);
    }
  }
  EXPECT_EQ(cut, 2);
  EXPECT_EQ(rows.size(), 2u);
  for (const plan::ParamPlacement& param : set.plan.params) EXPECT_EQ(rows[param.param], param.shape[0]);
}

// The handshake compares job facts, which contain the plan.
TEST(PserverFacts, JobFactsNameThePlansFingerprint) {
  const RoleSet set = Transpiled();
  const Result<roles::PserverFacts> role = RoleOf(set.pservers.front().main);
  ASSERT_TRUE(role.ok());
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(*role->plan_fingerprint));
  EXPECT_NE(role->job_facts.find(StrCat("pservers, digest ", digest)), std::string::npos) << role->job_facts;
}

constexpr char kAsync[] = R"(program
block 0 {
  persist w : f32[6, 4]
  persist lr : f32[1]
  persist w.trainer_0_bak : f32[6, 4]
  persist w.trainer_1_bak : f32[6, 4]
  var w@GRAD : f32[6, 4]
  var then : f32[6, 4]
  var now : f32[6, 4]
  var who : i64[1]
  persist count : i64[1]
  persist count.0 : i64[1]
  persist count.1 : i64[1]
  () = listen_and_serv(X=[w@GRAD]) {Fanin=2, distributed_mode=1, dc_asgd=true, endpoint="a:1",
      optimize_blocks=[^1, ^2], lr_decay_block_id=1, grad_to_block_id=["w@GRAD:2"]}
}
block 1 in 0 {
  count = sum(X=[count.0, count.1]) @lr_sched
}
block 2 in 0 {
  then = ref_by_trainer_id(X=[w.trainer_0_bak, w.trainer_1_bak], TrainerId=who)
  now = elementwise_sub(X=w@GRAD, Y=then)
  (ParamOut=w) = sgd(Param=w, Grad=now, LearningRate=lr) @optimize(w, w@GRAD)
}
)";

TEST(PserverFacts, UnmergedGradientsShareOneName) {
  const Result<roles::PserverFacts> role = RoleOf(kAsync);
  ASSERT_TRUE(role.ok()) << role.status().ToString();
  EXPECT_EQ(role->mode, roles::ServeMode::kAsync);
  EXPECT_TRUE(role->keeps_backups);
  EXPECT_EQ(role->counters, (std::vector<std::string>{"count.0", "count.1"}));
  ASSERT_EQ(role->params.size(), 1u);
  const roles::ServedParam& w = role->params.front();
  EXPECT_EQ(w.grads, (std::vector<std::string>{"w@GRAD"}));
  EXPECT_EQ(w.GradientOf(0), "w@GRAD");
  EXPECT_EQ(w.GradientOf(1), "w@GRAD");
  EXPECT_EQ(w.backups, (std::vector<std::string>{"w.trainer_0_bak", "w.trainer_1_bak"}));
  EXPECT_EQ(w.backup_of, "who");
  EXPECT_EQ(w.logical, "w");
  EXPECT_EQ(role->plan_fingerprint, std::nullopt);
}

constexpr char kGeo[] = R"(program
block 0 {
  persist w.block1 : f32[6, 4]
  var w.delta : f32[6, 4]
  () = listen_and_serv() {Fanin=2, distributed_mode=3, endpoint="a:1",
      optimize_blocks=[^1], grad_to_block_id=["w.delta:1"]}
}
block 1 in 0 {
  w.block1 = sum(X=[w.block1, w.delta])
}
)";

TEST(PserverFacts, GeoModeReceivesDeltas) {
  const Result<roles::PserverFacts> role = RoleOf(kGeo);
  ASSERT_TRUE(role.ok()) << role.status().ToString();
  ASSERT_EQ(role->params.size(), 1u);
  EXPECT_TRUE(role->params.front().delta);
  EXPECT_EQ(role->params.front().param.name, "w.block1");
  EXPECT_EQ(role->params.front().GradientOf(1), "w.delta");
  EXPECT_EQ(role->params.front().logical, "") << "nothing says it";
}

TEST(PserverFacts, ReadsNormsMeasuredBeforeUpdates) {
  const TrainingProgram source = MakeTrainingProgram({{13, 4}, {3}});
  plan::TranspileConfig config;
  config.trainers = 2;
  config.pservers = {"a:1"};
  const Result<RoleSet> set = Transpile(AllOps(), source.main, source.startup, config);
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  // The merge moves to a separate block, which squares the merged gradient.
  Program program = set->pservers.front().main;
  const int update =
      roles::FindServe(program.main())->Get<std::vector<BlockRef>>("optimize_blocks")->front().index;
  Op merge = *program.block(update).ops().front().op;
  const Op square = Op("square")
                        .AddInput("X", {merge.OutputName("Out")})
                        .AddOutput("Out", {"squares"})
                        .SetRole(OpRole::kOptimize);
  Block& measure = program.AddBlock(0);
  const int block = measure.index();
  measure.Append(merge);
  measure.Append(square);
  program.MutableBlock(update).Remove(program.block(update).ops().front().id);
  const OpId id = program.main().ops().back().id;
  Op serve = *program.main().ops().back().op;
  std::vector<BlockRef> blocks = *serve.Get<std::vector<BlockRef>>("optimize_blocks");
  blocks.insert(blocks.begin(), {block});
  serve.Set("optimize_blocks", blocks);
  program.MutableBlock(0).Replace(id, serve);
  const Result<roles::PserverFacts> role = RoleOf(program);
  ASSERT_TRUE(role.ok()) << role.status().ToString();
  EXPECT_EQ(role->measure_blocks, (std::vector<int>{block}));
  EXPECT_EQ(std::count_if(role->params.begin(), role->params.end(),
                          [&](const roles::ServedParam& served) { return served.measure_block == block; }),
            1);
}

// Fluid's own programs of all modes, except those that cannot work: sync mode without a merge (quirk Q-01).
TEST(PserverFacts, ProgramsOfEveryModeAreRead) {
  std::map<roles::ServeMode, int> read;
  for (const auto& entry : std::filesystem::directory_iterator(CorpusOrSelection() + "/open/cases")) {
    const std::string folder = entry.path().string() + "/";
    for (const std::string& name : FilesEndingIn(folder, ".pb")) {
      if (!StartsWith(name, "pserver_") || StartsWith(name, "pserver_startup")) continue;
      const Program program = ProgramOf(folder + name + ".pb");
      if (roles::FindServe(program.main()) == nullptr) continue;
      const Result<roles::PserverFacts> role = RoleOf(program);
      if (!role.ok()) {
        EXPECT_EQ(role.status().id(), "E-server-merge") << folder << name << ": " << role.status().ToString();
        EXPECT_EQ(roles::ServeView(*roles::FindServe(program.main())).mode(), roles::ServeMode::kSync)
            << folder;
        continue;
      }
      ++read[role->mode];
      for (const roles::ServedParam& served : role->params) {
        EXPECT_FALSE(served.grads.empty()) << folder << name << ": " << served.param.name;
        EXPECT_FALSE(served.logical.empty() && role->mode != roles::ServeMode::kGeo) << folder << name;
      }
    }
  }
  EXPECT_GT(read[roles::ServeMode::kSync], 0);
}

}  // namespace
}  // namespace penstock::test
