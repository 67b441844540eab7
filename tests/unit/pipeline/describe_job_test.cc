#include "transpiler/pipeline/describe_job.h"

#include <gtest/gtest.h>

#include <functional>

#include "framework/ir/prune.h"
#include "framework/text/job_facts.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/training_program.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock {
namespace {

Program Parsed(std::string_view text) {
  Result<Program> program = ParseText(text, "test");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return *std::move(program);
}

test::TrainingProgram Source() {
  return {Parsed(R"(program {random_seed=1l}
block 0 {
  data x : f32[?, 4]
  param b : f32[3]
  param w : f32[4, 3]
  persist lr : f32[1]
  var h : f32[?, 3]
  var out : f32[?, 3]
  var w@GRAD : f32[4, 3]
  var b@GRAD : f32[3]
  h = mul(X=x, Y=w) at "train.py:3 in net"
  out = elementwise_add(X=h, Y=b) {axis=1}
  (Y@GRAD=b@GRAD) = elementwise_add_grad(X=h, Y=b, Out@GRAD=out) {axis=1} @backward(b, b@GRAD)
  (Y@GRAD=w@GRAD) = mul_grad(X=x, Y=w, Out@GRAD=h) @backward(w, w@GRAD)
  (ParamOut=b) = sgd(Param=b, Grad=b@GRAD, LearningRate=lr) @optimize(b, b@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)
}
)"),
          Parsed(R"(program {random_seed=1l}
block 0 {
  param b : f32[3]
  param w : f32[4, 3]
  persist lr : f32[1]
  lr = fill_constant() {dtype=5, shape=[1l], value=0.1}
  b = fill_constant() {dtype=5, shape=[3l], value=0.0}
  w = uniform_random() {dtype=5, max=0.5, min=-0.5, shape=[4l, 3l]}
}
)")};
}

plan::TranspileConfig Config() {
  plan::TranspileConfig config;
  config.trainers = 2;
  config.pservers = {"a:1", "b:1"};
  return config;
}

std::string FactsOf(const test::TrainingProgram& source, const plan::TranspileConfig& config = Config()) {
  const Result<RoleSet> roles = Transpile(AllOps(), source.main, source.startup, config);
  EXPECT_TRUE(roles.ok()) << roles.status().ToString();
  return roles.ok() ? roles->pservers.front().main.meta().job_facts : "";
}

// The job with one edit of its program's text.
std::string FactsWith(std::string_view from, std::string_view to, bool startup = false) {
  test::TrainingProgram source = Source();
  Program& program = startup ? source.startup : source.main;
  std::string text = PrintProgram(program, PrintOptions::Everything());
  bool found = false;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
    found = true;
  }
  EXPECT_TRUE(found) << from << " is not in\n" << text;
  program = Parsed(text);
  return FactsOf(source);
}

std::string Told(const std::string& here, const std::string& there) {
  const auto difference = FirstJobDifference(here, there);
  return difference ? difference->here + " | " + difference->there : "";
}

TEST(DescribeJob, DescribesSharedFactsOfAJob) {
  std::string text = FactsOf(Source());
  // Only compares words; digests are compared below.
  for (std::size_t at = 0; (at = text.find("digest ", at)) != std::string::npos; at += 8)
    text.replace(at + 7, 16, "#");
  EXPECT_EQ(text, R"(works in mode sync
has random seed 1
updates b, w with sgd, learning rate 0.1
starts b with fill_constant
starts w with uniform_random {max=0.5, min=-0.5}
starts 1 other variable, digest #
trains by 6 ops, digest #
follows the plan of 2 trainers and 2 pservers, digest #
)");
}

TEST(DescribeJob, EqualsForAllRolesOfATranspile) {
  const test::TrainingProgram source = Source();
  plan::TranspileConfig config = Config();
  config.trainer_ids = {0, 1};
  const Result<RoleSet> roles = Transpile(AllOps(), source.main, source.startup, config);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  ASSERT_EQ(roles->trainers.size(), 2u);
  const std::string& facts = roles->trainers[0].main.meta().job_facts;
  ASSERT_NE(facts, "");
  for (const TrainerPrograms& role : roles->trainers) {
    EXPECT_EQ(role.main.meta().job_facts, facts);
    EXPECT_EQ(role.startup.meta().job_facts, facts);
  }
  for (const PserverPrograms& role : roles->pservers) {
    EXPECT_EQ(role.main.meta().job_facts, facts);
    EXPECT_EQ(role.startup.meta().job_facts, facts);
  }
  const Program& main = roles->trainers[1].main;
  const Result<Program> read = ParseProgram(SerializeProgram(main));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->meta().job_facts, facts);
  EXPECT_EQ(Parsed(PrintProgram(main, PrintOptions::Everything())).meta().job_facts, facts);
  const Result<Program> pruned = PruneTo(main, {"x"}, {"out"});
  ASSERT_TRUE(pruned.ok()) << pruned.status().ToString();
  EXPECT_EQ(pruned->meta().job_facts, facts);
  EXPECT_EQ(CloneForTest(main).meta().job_facts, facts);
}

TEST(DescribeJob, DoesNotDependOnTheRole) {
  plan::TranspileConfig first = Config(), second = Config();
  first.trainer_ids = {0};
  second.trainer_ids = {1};
  second.current_addresses = {"b:1"};
  EXPECT_EQ(FactsOf(Source(), first), FactsOf(Source(), second));
}

TEST(DescribeJob, DoesNotDependOnLocalCounters) {
  const std::string facts = FactsOf(Source());
  EXPECT_EQ(FactsWith("train.py:3 in net", "b/train.py:7 in net"), facts);
  test::TrainingProgram source = Source();
  for (const auto& [from, to] : {std::pair{"h", "fc_7.tmp_0"}, std::pair{"lr", "learning_rate_3"}}) {
    source.main.MutableBlock(0).RenameVar(from, to);
    source.startup.MutableBlock(0).RenameVar(from, to);
  }
  EXPECT_EQ(FactsOf(source), facts);
}

TEST(DescribeJob, DoesNotDependOnOpsThatUpdateNothing) {
  test::TrainingProgram source = Source();
  Block& main = source.main.MutableBlock(0);
  main.SetVar(TensorVar("loss", DType::kFp32, {1}));
  main.Insert(2, Op("mean").AddInput("X", {"out"}).AddOutput("Out", {"loss"}));
  EXPECT_EQ(FactsOf(source), FactsOf(Source()));
}

TEST(DescribeJob, DistinguishesSeedsRatesOptimizersAndInitializers) {
  const std::string facts = FactsOf(Source());
  EXPECT_EQ(Told(facts, FactsWith("random_seed=1", "random_seed=2")),
            "has random seed 1 | has random seed 2, of the startup program 1");
  EXPECT_EQ(Told(facts, FactsWith("random_seed=1", "random_seed=2", true)),
            "has random seed 1 | has random seed 1, of the startup program 2");
  EXPECT_EQ(Told(facts, FactsWith("value=0.1", "value=0.2", true)),
            "updates b, w with sgd, learning rate 0.1 | updates b, w with sgd, learning rate 0.2");
  EXPECT_EQ(
      Told(facts, FactsWith("max=0.5", "max=0.25", true)),
      "starts w with uniform_random {max=0.5, min=-0.5} | starts w with uniform_random {max=0.25, min=-0.5}");
  EXPECT_EQ(Told(facts, FactsWith("(ParamOut=w) = sgd(", "(ParamOut=w) = dpsgd(")),
            "updates b, w with sgd, learning rate 0.1 | updates b with sgd, learning rate 0.1");
}

TEST(DescribeJob, DistinguishesModelsAndPlans) {
  const std::string facts = FactsOf(Source());
  const std::string model = Told(facts, FactsWith("{axis=1", "{axis=-1"));
  EXPECT_TRUE(StartsWith(model, "trains by 6 ops, digest ")) << model;
  EXPECT_NE(model.find(" | trains by 6 ops, digest "), std::string::npos) << model;
  plan::TranspileConfig config = Config();
  config.pservers.pop_back();
  const std::string plan = Told(facts, FactsOf(Source(), config));
  EXPECT_TRUE(StartsWith(plan, "follows the plan of 2 trainers and 2 pservers, digest ")) << plan;
  config = Config();
  config.sync_mode_argument = false;
  EXPECT_EQ(Told(facts, FactsOf(Source(), config)), "works in mode sync | works in mode async");
}

// Every hello contains it.
TEST(DescribeJob, LengthIsBounded) {
  const test::TrainingProgram many = test::MakeTrainingProgram(std::vector<Shape>(3000, Shape{2, 2}));
  const std::string alike = FactsOf(many);
  EXPECT_LT(alike.size(), 2000u);
  test::TrainingProgram changed = many;  // a parameter that is not named
  Block& startup = changed.startup.MutableBlock(0);
  const OpEntry last = startup.ops().back();
  startup.Replace(last.id, Op(*last.op).Set("value", 7.0f));
  EXPECT_NE(Told(alike, FactsOf(changed)), "");

  test::TrainingProgram apart = many;
  for (std::size_t i = 1; i < apart.startup.main().ops().size(); ++i) {
    const OpEntry entry = apart.startup.main().ops()[i];
    apart.startup.MutableBlock(0).Replace(entry.id, Op(*entry.op).Set("value", static_cast<float>(i)));
  }
  const std::string different = FactsOf(apart);
  EXPECT_LT(different.size(), 8000u);
  const OpEntry one = apart.startup.main().ops().back();
  apart.startup.MutableBlock(0).Replace(one.id, Op(*one.op).Set("value", 0.5f));
  EXPECT_NE(Told(different, FactsOf(apart)), "");
}

TEST(JobFacts, IncludeBackupTrainersAndCompression) {
  plan::TranspileConfig config = Config();
  config.backup_trainers = 1;
  config.compression = *ParseCompression("two_bit 0.25, b: fp16");
  const std::string facts = FactsOf(Source(), config);
  EXPECT_TRUE(StartsWith(facts, "works in mode sync with backup_trainers 1\n")) << facts;
  EXPECT_NE(facts.find("\ncompresses b with fp16\ncompresses w with two_bit 0.25\n"), std::string::npos)
      << facts;

  config = Config();
  config.sync_mode_argument = false;
  config.staleness = 3;
  EXPECT_TRUE(StartsWith(FactsOf(Source(), config), "works in mode async with staleness 3\n"));
}

}  // namespace
}  // namespace penstock
