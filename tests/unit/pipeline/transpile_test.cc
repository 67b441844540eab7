#include "transpiler/pipeline/transpile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <tuple>

#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/training_program.h"

namespace penstock {
namespace {

plan::TranspileConfig Config(int trainers, int pservers) {
  plan::TranspileConfig config;
  config.trainers = trainers;
  for (int i = 0; i < pservers; ++i) config.pservers.push_back(StrCat("10.0.0.", i + 1, ":6174"));
  return config;
}

TEST(Transpile, DoesNotModifyItsInputs) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}, {7}});
  const std::string main = SerializeProgram(program.main);
  const std::string startup = SerializeProgram(program.startup);
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(2, 2));
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  EXPECT_EQ(SerializeProgram(program.main), main);
  EXPECT_EQ(SerializeProgram(program.startup), startup);
}

TEST(Transpile, IsDeterministic) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}, {7}, {300, 300}});
  const auto bytes = [&] {
    const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(2, 2));
    std::string all;
    for (const TrainerPrograms& role : roles->trainers)
      all += SerializeProgram(role.main) + SerializeProgram(role.startup);
    for (const PserverPrograms& role : roles->pservers)
      all += SerializeProgram(role.main) + SerializeProgram(role.startup);
    return all;
  };
  EXPECT_EQ(bytes(), bytes());
}

TEST(Transpile, EveryRoleCarriesThePlanAndSliceRows) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}});
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(2, 2));
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  const Result<Program> read = ParseProgram(SerializeProgram(roles->pservers[1].startup));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->meta().plan, plan::PrintPlan(roles->plan));
  const Var* slice = read->main().FindVar("w0000.block1");
  ASSERT_NE(slice, nullptr);
  ASSERT_TRUE(slice->facts.slice.has_value());
  EXPECT_EQ(*slice->facts.slice, (InitialSlice{"w0000", {100, 200}, 50, 100}));
}

TEST(Transpile, StartUpOpsDropOutputsThatThePserverLacks) {
  test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}});
  Block& startup = program.startup.MutableBlock(0);
  startup.SetVar(TensorVar("own", DType::kFp32, {1}));
  const OpEntry& last = startup.ops().back();
  ASSERT_EQ(last.op->OutputName("Out"), "w0000");
  startup.Replace(last.id, Op("draw").AddOutput("Also", {"own"}).AddOutput("Out", {"w0000"}));
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(1, 1));
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  const Op& op = *roles->pservers[0].startup.main().ops().back().op;
  EXPECT_EQ(op.OutputName("Out"), "w0000");
  EXPECT_EQ(op.OutputName("Also"), "");
}

// A test optimizer: the transpiler knows only its declaration.
void RegisterNudge(OpRegistry& ops, bool elementwise) {
  OpDef& nudge = ops.Add("nudge");
  nudge.Doc("A nudge.", "ParamOut is Param, nudged.")
      .Input("Weight", "the parameter", Floats())
      .Input("Slope", "its gradient", SameTypeAs("Weight"))
      .Input("Heat", "state; shaped like Weight", SameTypeAs("Weight"))
      .Input("Age", "state; one element", SameTypeAs("Weight"))
      .Output("WeightOut", "names Weight's variable", SameTypeAs("Weight"))
      .Output("HeatOut", "names Heat's variable", SameTypeAs("Weight"))
      .Output("AgeOut", "names Age's variable", SameTypeAs("Weight"))
      .InferShape(SameShape("Weight", "WeightOut"))
      .Optimizes("Weight", "Slope")
      .State("Heat", "how much it was nudged", StateSlicing::kWithParam, "heat")
      .State("Age", "how often", StateSlicing::kWhole, "age")
      .NoGrad();
  if (elementwise) nudge.Elementwise();
}

Result<RoleSet> TranspileNudged(bool elementwise) {
  test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}, {7}});
  Block& main = program.main.MutableBlock(0);
  const OpEntry sgd = main.ops()[main.ops().size() - 2];
  Op nudge("nudge");
  nudge.SetRole(OpRole::kOptimize).SetRolePair("w0000", "w0000@GRAD");
  nudge.AddInput("Weight", {"w0000"}).AddInput("Slope", {"w0000@GRAD"}).AddOutput("WeightOut", {"w0000"});
  for (const auto& [slot, name, shape] :
       {std::tuple("Heat", "w0000_heat_0", Shape{100, 200}), std::tuple("Age", "w0000_age_0", Shape{1})}) {
    Var state = TensorVar(name, DType::kFp32, shape);
    state.persistable = true;
    main.SetVar(state);
    program.startup.MutableBlock(0).SetVar(state);
    program.startup.MutableBlock(0).Append(Op("fill_constant")
                                               .AddOutput("Out", {name})
                                               .Set("shape", shape.dims())
                                               .Set("value", 0.0f)
                                               .Set("dtype", 5));
    nudge.AddInput(slot, {name}).AddOutput(StrCat(slot, "Out"), {name});
  }
  main.Replace(sgd.id, std::move(nudge));
  OpRegistry ops;
  RegisterAllOps(ops);
  RegisterNudge(ops, elementwise);
  PENSTOCK_RETURN_IF_ERROR(ops.Finish());
  return Transpile(ops, program.main, program.startup, Config(2, 2));
}

TEST(Transpile, CustomOptimizersAreDistributedByDeclaration) {
  const Result<RoleSet> roles = TranspileNudged(true);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  for (const PserverPrograms& role : roles->pservers) {
    const bool second = role.main.main().FindVar("w0000.block1") != nullptr;
    const Block& block = role.main.main();
    ASSERT_NE(block.FindVar("w0000_heat_0"), nullptr);
    EXPECT_EQ(block.FindVar("w0000_heat_0")->shape(), (Shape{50, 200}));
    EXPECT_EQ(*block.FindVar("w0000_heat_0")->facts.slice,
              (InitialSlice{"w0000_heat_0", {100, 200}, second ? 50 : 0, second ? 100 : 50}));
    EXPECT_EQ(block.FindVar("w0000_age_0")->shape(), (Shape{1}));
    EXPECT_EQ(role.startup.main().FindVar("w0000_heat_0")->shape(), (Shape{50, 200}));
    const Op& update = *role.main.block(1).ops().back().op;
    const std::string piece = second ? "w0000.block1" : "w0000.block0";
    EXPECT_EQ(update.type(), "nudge");
    EXPECT_EQ(update.InputName("Weight"), piece);
    EXPECT_EQ(update.InputName("Slope"), second ? "w0000@GRAD.block1" : "w0000@GRAD.block0");
    EXPECT_EQ(update.OutputName("WeightOut"), piece);
    EXPECT_EQ(update.OutputName("AgeOut"), "w0000_age_0");
  }
  for (const OpEntry& entry : roles->trainers[0].main.main().ops()) EXPECT_NE(entry.op->type(), "nudge");
  EXPECT_EQ(roles->trainers[0].startup.main().FindVar("w0000_heat_0"), nullptr);
}

TEST(Transpile, OptimizersMayRequireWholeParameters) {
  const Result<RoleSet> roles = TranspileNudged(false);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  EXPECT_FALSE(roles->plan.params[0].sliced());
}

// Puts everything on the last pserver, and records its calls.
class Last : public plan::Dispatcher {
 public:
  Last(std::string last, std::string& calls) : last_(std::move(last)), calls_(calls) {}
  Result<std::vector<std::string>> Dispatch(const std::vector<plan::Piece>& pieces) override {
    for (const plan::Piece& piece : pieces) calls_ += StrCat(piece.name, piece.shape, " ");
    calls_ += "| ";
    return std::vector<std::string>(pieces.size(), last_);
  }
  Status Reset() override {
    calls_ += "reset | ";
    return OkStatus();
  }

 private:
  std::string last_;
  std::string& calls_;
};

// The arguments of a dispatcher, which puts everything on the last pserver.
std::string CallsOfADispatcher(plan::TranspileConfig config) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}, {7}});
  std::string calls;
  config.dispatcher =
      [&](const std::vector<std::string>& pservers) -> Result<std::unique_ptr<plan::Dispatcher>> {
    return std::unique_ptr<plan::Dispatcher>(new Last(pservers.back(), calls));
  };
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, config);
  EXPECT_TRUE(roles.ok()) << roles.status().ToString();
  if (!roles.ok()) return "";
  EXPECT_TRUE(roles->plan.SlicesOn(0).empty());
  EXPECT_EQ(roles->plan.SlicesOn(1).size(), 3U);
  return calls;
}

TEST(Transpile, DispatchersAreCalledAsInFluid) {
  EXPECT_EQ(CallsOfADispatcher(Config(2, 2)),
            "w0000@GRAD.block0.trainer_0[50, 200] w0000@GRAD.block1.trainer_0[50, 200] | "
            "w0001@GRAD.trainer_0[7] | reset | w0000.block0[50, 200] w0000.block1[50, 200] w0001[7] | ");
}

TEST(Transpile, AsyncDispatchersReceiveTheSentNames) {
  plan::TranspileConfig config = Config(2, 2);
  config.sync_mode_argument = false;
  EXPECT_EQ(CallsOfADispatcher(config),
            "w0000@GRAD.block0[50, 200] w0000@GRAD.block1[50, 200] | w0001@GRAD[7] | reset | "
            "w0000.block0[50, 200] w0000.block1[50, 200] w0001[7] | ");
}

// A table of five rows with lookups on pservers.
constexpr char kTableMain[] = R"(program
block 0 {
  data ids : i64[?, 1]
  persist lr : f32[1]
  param t : f32[5, 4]
  h : f32[?, 4] = lookup_table(Ids=ids, W=t) {is_sparse=true, remote_prefetch=true}
  (W@GRAD=t@GRAD : rows<f32[5, 4]>) = lookup_table_grad(W=t, Ids=ids,
      Out@GRAD=h) {is_sparse=true} @backward(t, t@GRAD)
  (ParamOut=t) = sgd(Param=t, Grad=t@GRAD, LearningRate=lr) @optimize(t, t@GRAD)
}
)";
constexpr char kTableStartup[] = R"(program
block 0 {
  persist lr : f32[1]
  param t : f32[5, 4]
  lr = fill_constant() {shape=[1l], value=0.1}
  t = uniform_random() {shape=[5l, 4l]}
}
)";

TEST(Transpile, FluidsSharedTranspilerGivesTrainersTheLastTableSlice) {
  const Result<Program> main = ParseText(kTableMain, "main");
  const Result<Program> startup = ParseText(kTableStartup, "startup");
  ASSERT_TRUE(main.ok() && startup.ok()) << main.status().ToString() << startup.status().ToString();
  plan::TranspileConfig config = Config(2, 2);
  config.dialect = plan::Dialect::kFluid18;
  config.shared_transpiler = config.allow_small_blocks = true;
  config.min_block_size = 8;
  const Result<RoleSet> roles = Transpile(AllOps(), *main, *startup, config);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  const Block& start = roles->trainers[0].startup.main();
  EXPECT_EQ(start.FindVar("t")->shape(), (Shape{2, 4}));
  EXPECT_EQ(*start.ops().back().op->Get<std::vector<Dim>>("shape"), (std::vector<Dim>{2, 4}));
}

TEST(Transpile, DispatcherErrorsAreReturned) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{7}});
  plan::TranspileConfig config = Config(2, 2);
  config.dispatcher = [](const std::vector<std::string>&) -> Result<std::unique_ptr<plan::Dispatcher>> {
    return FailedPrecondition("E-mine", "mine: not today");
  };
  EXPECT_EQ(Transpile(AllOps(), program.main, program.startup, config).status().id(), "E-mine");
}

TEST(Transpile, EveryRoleCarriesThePolicyOfRunningStatistics) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{7}});
  plan::TranspileConfig config = Config(2, 2);
  EXPECT_TRUE(
      Transpile(AllOps(), program.main, program.startup, config)->trainers[0].main.meta().policies.empty());
  config.bn_sync = plan::BnSync::kAverage;
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, config);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  const Result<Program> read = ParseProgram(SerializeProgram(roles->trainers[0].main));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->meta().policies.at(plan::kBnSyncPolicy), "average");
  EXPECT_EQ(roles->pservers[1].startup.meta().policies.at(plan::kBnSyncPolicy), "average");
  config.dialect = plan::Dialect::kFluid18;
  EXPECT_EQ(Transpile(AllOps(), program.main, program.startup, config).status().id(), "E-plan-bn-sync");
}

TEST(Transpile, InsertedOpsNameTheirPass) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}});
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(2, 2));
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  for (int block = 0; block < roles->pservers[0].main.block_count(); ++block) {
    for (const OpEntry& entry : roles->pservers[0].main.block(block).ops())
      EXPECT_NE(entry.op->made_by(), "");
  }
  for (const OpEntry& entry : roles->trainers[0].main.main().ops()) {
    const bool sent_or_received = entry.op->role() == OpRole::kRpc || entry.op->role() == OpRole::kDist;
    EXPECT_EQ(sent_or_received, !entry.op->made_by().empty()) << PrintOp(*entry.op);
  }
}

TEST(Transpile, AFailureLeavesAReproducer) {
  test::TrainingProgram program = test::MakeTrainingProgram({{7}});
  // The gradient is declared, but no op makes it.
  Block& main = program.main.MutableBlock(0);
  main.Remove(main.ops()[1].id);
  std::string text;
  PassOptions options;
  options.reproducer = [&](const std::string& reproducer) { text = reproducer; };
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(2, 2), options);
  ASSERT_FALSE(roles.ok());
  EXPECT_EQ(roles.status().id(), "E-pass-send_gradients");
  EXPECT_NE(text.find("-- passes (trainer 0)\nsend_gradients\ndeclare_residuals\nsend_table_gradients\n"),
            std::string::npos)
      << text;
}

TEST(Transpile, AThousandParametersAreSlicedOverAllPservers) {
  const std::vector<Shape> shapes(1000, Shape{300, 300});
  const test::TrainingProgram program = test::MakeTrainingProgram(shapes);
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(4, 4));
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  ASSERT_EQ(roles->plan.params.size(), 1000U);
  for (const auto& param : roles->plan.params) EXPECT_EQ(param.slices.size(), 4U) << param.param;
}

TEST(Transpile, TimesEachPassWithTheGivenClock) {
  class Ticking final : public Clock {  // advances by a second at each reading
   public:
    Nanoseconds Now() const override { return now_ += std::chrono::seconds(1); }

   private:
    mutable Nanoseconds now_{0};
  };
  const Ticking clock;
  const test::TrainingProgram program = test::MakeTrainingProgram({{30, 30}});
  int passes = 0;
  PassOptions options;
  options.clock = &clock;
  options.observe = [&](const PassEvent&) { ++passes; };
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, Config(2, 2), options);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  EXPECT_EQ(static_cast<int>(roles->timings.size()), passes);
  for (const PassTiming& timing : roles->timings) {
    EXPECT_EQ(timing.took, std::chrono::seconds(1)) << timing.pipeline << " " << timing.pass;
  }
}

}  // namespace
}  // namespace penstock
