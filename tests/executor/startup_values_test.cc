// The initial value of an element depends only on the seed, the parameter's name and the element's index, so
// a parameter starts from the same tensor on any number of pservers and on one machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"
#include "tools/case/case_file.h"
#include "transpiler/pipeline/transpile.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

// One parameter for each initializer op that layers put into a startup program.
const std::string kParams = R"(program
block 0 {
  persist lr : f32[1]
  param xavier : f32[29, 6]
  param msra : f32[29, 6]
  param truncated : f32[29, 6]
  param listed : f32[9, 2]
  param diagonal : f32[9, 9]
  persist xavier_moment_0 : f32[29, 6]
)";

const std::string kMain = kParams + R"(  var xavier@GRAD : f32[29, 6]
  var msra@GRAD : f32[29, 6]
  var truncated@GRAD : f32[29, 6]
  var listed@GRAD : f32[9, 2]
  var diagonal@GRAD : f32[9, 9]
  xavier@GRAD = relu(X=xavier) @backward(xavier, xavier@GRAD)
  msra@GRAD = relu(X=msra) @backward(msra, msra@GRAD)
  truncated@GRAD = relu(X=truncated) @backward(truncated, truncated@GRAD)
  listed@GRAD = relu(X=listed) @backward(listed, listed@GRAD)
  diagonal@GRAD = relu(X=diagonal) @backward(diagonal, diagonal@GRAD)
  (ParamOut=diagonal) = sgd(
      Param=diagonal, Grad=diagonal@GRAD, LearningRate=lr) @optimize(diagonal, diagonal@GRAD)
  (ParamOut=listed) = sgd(Param=listed, Grad=listed@GRAD, LearningRate=lr) @optimize(listed, listed@GRAD)
  (ParamOut=msra) = sgd(Param=msra, Grad=msra@GRAD, LearningRate=lr) @optimize(msra, msra@GRAD)
  (ParamOut=truncated) = sgd(
      Param=truncated, Grad=truncated@GRAD, LearningRate=lr) @optimize(truncated, truncated@GRAD)
  (ParamOut=xavier, MomentOut=xavier_moment_0) = adagrad(
      Param=xavier, Grad=xavier@GRAD, Moment=xavier_moment_0, LearningRate=lr) @optimize(xavier, xavier@GRAD)
}
)";

const std::string kStartup = kParams + R"(  lr = fill_constant() {shape=[1l], value=0.1, dtype=5}
  xavier = uniform_random() {shape=[29l, 6l], min=-0.5, max=0.5, seed=7}
  msra = gaussian_random() {shape=[29l, 6l], std=0.3, seed=7}
  truncated = truncated_gaussian_random() {shape=[29, 6], std=0.3, seed=7}
  listed = assign_value() {shape=[9, 2], dtype=5, fp32_values=[
      1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0]}
  diagonal = uniform_random() {shape=[9l, 9l], seed=7, diag_num=9, diag_step=9, diag_val=4.0}
  xavier_moment_0 = fill_constant() {shape=[29l, 6l], value=0.25, dtype=5}
}
)";

plan::TranspileConfig JobOf(int pservers) {
  plan::TranspileConfig config;
  config.trainers = 2;
  config.min_block_size = 1;
  config.allow_small_blocks = true;
  for (int i = 0; i < pservers; ++i) config.pservers.push_back(StrCat("127.0.0.1:", 7000 + i));
  return config;
}

void RunStartup(const Program& startup, Scope& scope) {
  exec::Executor executor(AllOps(), {.threads = 1});
  const auto ran = executor.Run(startup, scope, {}, {});
  ASSERT_TRUE(ran.ok()) << ran.status().ToString();
}

void ExpectRows(const Tensor& whole, const plan::Slice& slice, const Tensor& piece, const std::string& what) {
  const Tensor rows = whole.shape().rank() == 0 ? whole : whole.Rows(slice.row_begin, slice.row_end);
  ASSERT_EQ(rows.shape(), piece.shape()) << what;
  EXPECT_EQ(std::memcmp(rows.raw(), piece.raw(), rows.bytes()), 0) << what;
}

// Checks that the startup programs of `pservers` make every initial parameter of one machine. Returns the
// numbers of slices and of parameters.
std::pair<int, int> ExpectTheSameStart(const Program& main, const Program& startup, int pservers) {
  const Result<RoleSet> roles = Transpile(AllOps(), main, startup, JobOf(pservers));
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  Scope alone;
  RunStartup(startup, alone);
  std::vector<std::unique_ptr<Scope>> scopes;
  for (const PserverPrograms& role : roles->pservers) {
    scopes.push_back(std::make_unique<Scope>());
    RunStartup(role.startup, *scopes.back());
  }
  int slices = 0;
  for (const plan::ParamPlacement& param : roles->plan.params) {
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      const std::string name = plan::ParamPieceName(param, static_cast<int>(i));
      Variable* piece = scopes[static_cast<std::size_t>(param.slices[i].pserver)]->Find(name);
      if (piece == nullptr) {
        ADD_FAILURE() << name << " is not started";
        continue;
      }
      ExpectRows(alone.Find(param.param)->As<Tensor>(), param.slices[i], piece->As<Tensor>(),
                 StrCat(name, " of ", pservers));
      ++slices;
    }
  }
  return {slices, static_cast<int>(roles->plan.params.size())};
}

TEST(StartupValues, EqualOneMachineOnOneTwoAndSevenPservers) {
  const Program main = ParseText(kMain, "main").value();
  const Program startup = ParseText(kStartup, "startup").value();
  EXPECT_EQ(ExpectTheSameStart(main, startup, 1), std::pair(5, 5));
  EXPECT_EQ(ExpectTheSameStart(main, startup, 2), std::pair(10, 5));
  const auto [slices, params] = ExpectTheSameStart(main, startup, 7);
  EXPECT_GE(slices, 5 * 5);
}

TEST(StartupValues, OptimizerStateHasTheShapeOfItsSlice) {
  const Program main = ParseText(kMain, "main").value();
  const Program startup = ParseText(kStartup, "startup").value();
  const Result<RoleSet> roles = Transpile(AllOps(), main, startup, JobOf(7));
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  const plan::ParamPlacement& xavier = roles->plan.params.back();
  ASSERT_EQ(xavier.param, "xavier");
  Scope scope;
  RunStartup(roles->pservers[static_cast<std::size_t>(xavier.slices[0].pserver)].startup, scope);
  const Tensor& moment = scope.Find("xavier_moment_0")->As<Tensor>();
  EXPECT_EQ(moment.shape(), (Shape{5, 6}));
  EXPECT_EQ(moment.Span<float>()[29], 0.25f);
}

TEST(StartupValues, TwoParametersWithOneSeedDiffer) {
  const std::string text = R"(program
block 0 {
  param a : f32[4]
  param b : f32[4]
  a = uniform_random() {shape=[4l], seed=7}
  b = uniform_random() {shape=[4l], seed=7}
}
)";
  Scope scope, turned;
  RunStartup(ParseText(text, "a, b").value(), scope);
  const auto values = [](Scope& of, const char* name) {
    const auto span = of.Find(name)->As<Tensor>().Span<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  EXPECT_NE(values(scope, "a"), values(scope, "b"));
  // The position among the random ops decides, not the parameter's name.
  RunStartup(ParseText(R"(program
block 0 {
  param b : f32[4]
  b = uniform_random() {shape=[4l], seed=7}
}
)",
                       "b")
                 .value(),
             turned);
  EXPECT_EQ(values(scope, "a"), values(turned, "b"));
}

// Skips large models of the corpus: they are slow and have no other initializers.
constexpr std::int64_t kElementsMax = 500'000;

std::int64_t ElementsOf(const Program& startup) {
  std::int64_t elements = 0;
  for (const VarRef& var : startup.main().vars()) elements += var->HasShape() ? var->shape().Count() : 0;
  return elements;
}

TEST(StartupValues, CorpusValuesDoNotDependOnThePserverCount) {
  namespace fs = std::filesystem;
  int programs = 0;
  for (const auto& entry : fs::directory_iterator(CorpusOrSelection() + "/open/programs")) {
    const std::string folder = entry.path().string();
    Program main = ProgramOf(folder + "/main.pb");
    Program startup = ProgramOf(folder + "/startup.pb");
    ASSERT_TRUE(ApplyFacts(BytesOf(folder + "/program.json"), main, startup).ok());
    const auto roles = Transpile(AllOps(), main, startup, JobOf(1));
    // Rows of a distributed table are initialized when they are first requested.
    if (ElementsOf(startup) > kElementsMax || !roles.ok() || !roles->plan.tables.empty()) continue;
    SCOPED_TRACE(folder);
    const auto [slices, params] = ExpectTheSameStart(main, startup, 7);
    EXPECT_GE(slices, params);
    ++programs;
  }
  EXPECT_GE(programs, CorpusFolder().empty() ? 5 : 30);
}

}  // namespace
}  // namespace penstock::test
