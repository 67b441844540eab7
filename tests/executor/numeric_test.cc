// Ten steps of Fluid 1.8.5's own programs, from its initial values, give its losses, fetches, gradients and
// final values, in every numeric case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/fluid_errors.h"
#include "tests/support/numeric_case.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

using test::Arrays;
using test::NearValues;

constexpr int kSteps = test::kNumericSteps;
constexpr double kRtol = 1e-4, kAtol = 1e-5;
constexpr char kFinal[] = "final:";

// The expected deviations of each case.
struct Listed {
  int lost_rows = 0;  // rows whose gradient Fluid loses, in ten steps
  // By variable: rows after the last row of a gradient, which Fluid's adam updates as if they had a gradient,
  // by at most kRowsOffAtol.
  std::map<std::string, std::set<Dim>> rows_off = {};
  double atol = kAtol;  // for all other values, which depend on those rows
};
constexpr double kRowsOffAtol = 3e-2;

const std::map<std::string, Listed>& ListedCases() {
  static const std::map<std::string, Listed> listed = {
      {"ctr_small/momentum", {.lost_rows = 30}},
      {"word2vec_small/adam", {.rows_off = {{"shared_w", {59}}, {"shared_w_moment1_0", {59}}}, .atol = 4e-3}},
  };
  return listed;
}

struct Case : test::NumericCase {
  Listed listed;
};

Case ReadCase(const std::string& model, const std::string& optimizer) {
  Case c = {test::ReadNumericCase(model, optimizer)};
  const auto listed = ListedCases().find(StrCat(model, "/", optimizer));
  if (listed != ListedCases().end()) c.listed = listed->second;
  return c;
}

// The fetches of a step: the loss, then the variables for which the golden file has values of step 0.
std::vector<std::string> FetchNames(const Case& c) {
  std::vector<std::string> names = {c.loss};
  for (const auto& [key, value] : c.golden) {
    for (const std::string prefix : {"step0_fetch:", "step0_grad:"}) {
      if (StartsWith(key, prefix)) names.push_back(key.substr(prefix.size()));
    }
  }
  return names;
}

double LossOf(const std::vector<Variable>& fetched) { return test::ElementAt(*fetched[0].If<Tensor>(), 0); }

void ExpectLoss(double loss, double expected, int step) {
  EXPECT_NEAR(loss, expected, kAtol + kRtol * std::abs(expected)) << "loss of step " << step;
}

void CompareStepZero(const std::vector<std::string>& names, const std::vector<Variable>& got,
                     const Arrays& golden) {
  for (std::size_t i = 1; i < names.size(); ++i) {
    auto expected = golden.find("step0_fetch:" + names[i]);
    if (expected == golden.end()) expected = golden.find("step0_grad:" + names[i]);
    const Status near = NearValues(names[i], *got[i].If<Tensor>(), expected->second, kRtol, kAtol);
    EXPECT_TRUE(near.ok()) << near.ToString();
  }
}

// Checks that listed rows deviate as listed (a correct row must not be on the list), and then makes them
// equal.
void CompareRowsOff(const std::string& name, const std::set<Dim>& rows, const Tensor& expected, Tensor& got) {
  for (const Dim row : rows) {
    Tensor ours = got.Rows(row, row + 1);
    const Tensor theirs = expected.Rows(row, row + 1);
    EXPECT_FALSE(NearValues(name, ours, theirs, kRtol, kAtol).ok()) << name << " row " << row << " is right";
    const Status near = NearValues(name, ours, theirs, 0, kRowsOffAtol);
    EXPECT_TRUE(near.ok()) << "row " << row << ": " << near.ToString();
    ours.CopyFrom(theirs);
  }
}

void CompareFinal(const Case& c, Scope& scope) {
  std::size_t compared = 0;
  for (const auto& [key, expected] : c.golden) {
    if (!StartsWith(key, kFinal)) continue;
    const std::string name = key.substr(sizeof(kFinal) - 1);
    Variable* variable = scope.Find(name);
    ASSERT_TRUE(variable != nullptr && variable->initialized()) << name;
    Tensor got = variable->As<Tensor>().Clone();
    const auto off = c.listed.rows_off.find(name);
    if (off != c.listed.rows_off.end()) CompareRowsOff(name, off->second, expected, got);
    const Status near = NearValues(name, got, expected, kRtol, c.listed.atol);
    EXPECT_TRUE(near.ok()) << near.ToString();
    ++compared;
  }
  EXPECT_GT(compared, c.start.size()) << "every parameter and the learning rate";
}

// The number of rows in sequences changes in each step, so shapes per sequence are known only at run time.
void ExpectShapesKnown(const Arrays& feeds, const exec::ExecutorStats& stats) {
  if (std::ranges::any_of(feeds, [](const auto& feed) { return EndsWith(feed.first, ":lens"); })) {
    EXPECT_GT(stats.late_step_count, 0);
    EXPECT_LE(stats.specialised_count, 1 + kSteps);
    return;
  }
  EXPECT_EQ(stats.late_step_count, 0) << "every shape of these programs is known before it runs";
  EXPECT_EQ(stats.specialised_count, 2) << "startup and main";
  EXPECT_EQ(stats.fast_run_count, kSteps - 1);
}

Status Start(exec::Executor& executor, const Case& c, Scope& scope) {
  PENSTOCK_RETURN_IF_ERROR(executor.Run(c.startup, scope, {}, {}).status());
  for (const auto& [name, value] : c.start) test::SetTensor(scope, name, value);
  return OkStatus();
}

std::string NameOf(const testing::TestParamInfo<test::NumericNames::value_type>& info) {
  return StrCat(info.param.first, "_", info.param.second);
}

TEST(NumericCases, AllCasesExist) {
  const test::NumericNames all = test::AllNumericCases();
  EXPECT_GE(all.size(), test::CorpusFolder().empty() ? 19u : 33u);
  for (const auto& [name, listed] : ListedCases()) {
    if (test::CorpusFolder().empty() && StartsWith(name, "word2vec")) continue;  // not in the selection
    const std::size_t slash = name.find('/');
    EXPECT_TRUE(std::ranges::count(all, std::pair(name.substr(0, slash), name.substr(slash + 1)))) << name;
  }
}

class Numeric : public testing::TestWithParam<test::NumericNames::value_type> {};

TEST_P(Numeric, TenStepsMatchFluid) {
  const Case c = ReadCase(GetParam().first, GetParam().second);
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const Status started = Start(executor, c, scope);
  ASSERT_TRUE(started.ok()) << started.ToString();
  const test::LostRows fluid(c.main);
  const Program& main = c.listed.lost_rows > 0 ? fluid.program() : c.main;
  int lost_rows = 0;

  const std::vector<std::string> names = FetchNames(c);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<exec::Feed> feeds = FeedsOfStep(c, step);
    const std::vector<exec::Feed> masks = fluid.Masks(feeds, lost_rows);
    if (c.listed.lost_rows > 0) feeds.insert(feeds.end(), masks.begin(), masks.end());
    const auto got = executor.Run(main, scope, feeds, names);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    ExpectLoss(LossOf(*got), test::ElementAt(c.golden.at("loss"), step), step);
    if (step == 0) CompareStepZero(names, *got, c.golden);
  }
  EXPECT_EQ(lost_rows, c.listed.lost_rows);
  CompareFinal(c, scope);
  ExpectShapesKnown(c.values, executor.stats());
}

INSTANTIATE_TEST_SUITE_P(Corpus, Numeric, testing::ValuesIn(test::AllNumericCases()), NameOf);

// The cases with gradients of selected rows.
test::NumericNames CasesWithRows() {
  test::NumericNames cases = test::AllNumericCases();
  std::erase_if(cases, [](const auto& name) {
    const Program main =
        test::ProgramOf(StrCat(test::NumericFolder(), name.first, "/", name.second, ".main.pb"));
    return std::ranges::none_of(main.main().vars(),
                                [](const VarRef& var) { return var->kind == VarKind::kSelectedRows; });
  });
  return cases;
}

class NumericRows : public testing::TestWithParam<test::NumericNames::value_type> {};

// The losses of ten steps of `main`, and the final variables. `betas`: beta powers that start one step ahead.
std::vector<double> Train(const Case& c, const Program& main, Scope& scope,
                          const std::map<std::string, float>& betas = {}) {
  exec::Executor executor(AllOps(), {.threads = 1});
  const Status started = Start(executor, c, scope);
  EXPECT_TRUE(started.ok()) << started.ToString();
  for (const auto& [name, beta] : betas) scope.Find(name)->As<Tensor>().Span<float>()[0] *= beta;
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<std::string> fetches = {c.loss};
    const auto got = executor.Run(main, scope, FeedsOfStep(c, step), fetches);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    losses.push_back(got.ok() ? LossOf(*got) : std::nan(""));
  }
  return losses;
}

// Our updates by rows equal those of the same gradients as dense tensors, also where Fluid's are wrong. Adam
// by rows uses the beta powers of the next step, in Fluid and here.
TEST_P(NumericRows, TrainLikeDenseGradients) {
  const Case c = ReadCase(GetParam().first, GetParam().second);
  Scope sparse_scope, dense_scope;
  const std::vector<double> sparse = Train(c, c.main, sparse_scope);
  const std::vector<double> dense =
      Train(c, test::WithDenseGradients(c.main), dense_scope, test::BetasOfRows(c.main));
  for (int step = 0; step < kSteps; ++step) {
    const auto i = static_cast<std::size_t>(step);
    ExpectLoss(sparse[i], dense[i], step);
    // They must also be close to Fluid's.
    const double fluid = test::ElementAt(c.golden.at("loss"), step);
    EXPECT_NEAR(sparse[i], fluid, 2e-3 * std::abs(fluid));
  }
  for (const auto& [name, value] : c.start) {
    const Status near = NearValues(name, sparse_scope.Find(name)->As<Tensor>(),
                                   dense_scope.Find(name)->As<Tensor>(), kRtol, kAtol);
    EXPECT_TRUE(near.ok()) << near.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, NumericRows, testing::ValuesIn(CasesWithRows()), NameOf);

}  // namespace
}  // namespace penstock
