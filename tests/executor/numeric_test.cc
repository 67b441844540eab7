// Ten steps of Fluid 1.8.5's own programs, from its start values, give its losses, fetches, gradients and
// final values.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

using test::Arrays;
using test::NearValues;

constexpr int kSteps = 10;
constexpr double kRtol = 1e-4, kAtol = 1e-5;
// Fluid's own runs of adam differ by that much from each other in their final values.
constexpr double kAdamFinalAtol = 3e-2;

struct Case {
  std::string folder;
  std::string optimizer;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::string loss;
};

std::string Folder(const std::string& model) { return test::CorpusOrSelection() + "/open/numeric/" + model; }

Case ReadCase(const std::string& model, const std::string& optimizer) {
  const std::string folder = Folder(model);
  const auto info = nlohmann::json::parse(test::BytesOf(folder + "/info.json"));
  return {folder, optimizer, info["feeds"], info["fetch"], info["loss"]};
}

// What a step fetches: the loss, then what the golden file has of step 0, by the variable's name.
std::vector<std::string> FetchNames(const Case& c, const Arrays& golden) {
  std::vector<std::string> names = {c.loss};
  for (const auto& [key, value] : golden) {
    for (const std::string prefix : {"step0_fetch:", "step0_grad:"}) {
      if (StartsWith(key, prefix)) names.push_back(key.substr(prefix.size()));
    }
  }
  return names;
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

void CompareFinal(const Case& c, const Arrays& golden, Scope& scope) {
  const double atol = c.optimizer == "adam" ? kAdamFinalAtol : kAtol;
  int compared = 0;
  for (const auto& [key, expected] : golden) {
    const std::string prefix = "final:";
    if (!StartsWith(key, prefix)) continue;
    const std::string name = key.substr(prefix.size());
    Variable* variable = scope.Find(name);
    ASSERT_TRUE(variable != nullptr && variable->initialized()) << name;
    const Status near = NearValues(name, variable->As<Tensor>(), expected, kRtol, atol);
    EXPECT_TRUE(near.ok()) << near.ToString();
    ++compared;
  }
  EXPECT_GE(compared, 3) << "two parameters and the learning rate at least";
}

void RunCase(const Case& c) {
  const Program startup = test::ProgramOf(StrCat(c.folder, "/", c.optimizer, ".startup.pb"));
  const Program main = test::ProgramOf(StrCat(c.folder, "/", c.optimizer, ".main.pb"));
  const Arrays init = test::ArraysOf(c.folder + "/init.npz");
  const Arrays feeds = test::ArraysOf(c.folder + "/feeds.npz");
  const Arrays golden = test::ArraysOf(StrCat(c.folder, "/", c.optimizer, ".npz"));

  Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  auto started = executor.Run(startup, scope, {}, {});
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  for (const auto& [name, value] : init) test::SetTensor(scope, name, value);

  const std::vector<std::string> names = FetchNames(c, golden);
  for (int step = 0; step < kSteps; ++step) {
    auto got = executor.Run(main, scope, test::FeedsOf(feeds, StrCat("s", step, ":"), c.feeds), names);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_NEAR(test::ElementAt(*(*got)[0].If<Tensor>(), 0), test::ElementAt(golden.at("loss"), step),
                kAtol + kRtol * std::abs(test::ElementAt(golden.at("loss"), step)))
        << "loss of step " << step;
    if (step == 0) CompareStepZero(names, *got, golden);
  }
  CompareFinal(c, golden, scope);
  EXPECT_EQ(executor.stats().late_step_count, 0) << "every shape of these programs is known before it runs";
  EXPECT_EQ(executor.stats().specialised_count, 2) << "start-up and main";
  EXPECT_EQ(executor.stats().fast_run_count, kSteps - 1);
}

class Numeric : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(Numeric, TenStepsGiveFluidsNumbers) {
  const auto& [model, optimizer] = GetParam();
  RunCase(ReadCase(model, optimizer));
}

INSTANTIATE_TEST_SUITE_P(Corpus, Numeric, testing::ValuesIn([] {
                           std::vector<std::pair<std::string, std::string>> cases;
                           for (const char* optimizer : {"sgd", "sgd_l2", "momentum", "nesterov", "adam"}) {
                             for (const char* model : {"linear", "softmax_reg"})
                               cases.emplace_back(model, optimizer);
                           }
                           return cases;
                         }()),
                         [](const auto& info) { return StrCat(info.param.first, "_", info.param.second); });

}  // namespace
}  // namespace penstock
