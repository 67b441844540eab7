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
                           for (const char* optimizer : {"sgd", "momentum", "adagrad"})  // sparse gradients
                             cases.emplace_back("word2vec_small", optimizer);
                           return cases;
                         }()),
                         [](const auto& info) { return StrCat(info.param.first, "_", info.param.second); });

// The same program with dense gradients of its tables.
Program WithDenseGradients(Program program) {
  const std::vector<OpEntry> ops = program.main().ops();
  for (const OpEntry& entry : ops) {
    if (entry.op->Get<bool>("is_sparse") == nullptr) continue;
    Op op = *entry.op;
    program.MutableBlock(0).Replace(entry.id, std::move(op.Set("is_sparse", false)));
  }
  return program;
}

// The losses of ten steps, and what the scope holds afterwards.
std::vector<double> Train(const Case& c, const Program& main, Scope& scope) {
  Executor executor(AllOps(), {.threads = 1});
  auto started =
      executor.Run(test::ProgramOf(StrCat(c.folder, "/", c.optimizer, ".startup.pb")), scope, {}, {});
  EXPECT_TRUE(started.ok()) << started.status().ToString();
  for (const auto& [name, value] : test::ArraysOf(c.folder + "/init.npz"))
    test::SetTensor(scope, name, value);
  const Arrays feeds = test::ArraysOf(c.folder + "/feeds.npz");
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<std::string> fetches = {c.loss};
    auto got = executor.Run(main, scope, test::FeedsOf(feeds, StrCat("s", step, ":"), c.feeds), fetches);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    if (got.ok()) losses.push_back(test::ElementAt(*(*got)[0].If<Tensor>(), 0));
  }
  return losses;
}

// Fluid's sparse adam takes the next step's powers of beta (op_quirks.json, sparse_adam_next_beta_pow), which
// shows in its losses from the fourth step on. Ours is the dense adam of the same gradients; Fluid's losses
// are near.
TEST(SparseAdam, TrainsAsDenseAdamDoes) {
  const Case c = ReadCase("word2vec_small", "adam");
  const Program main = test::ProgramOf(c.folder + "/adam.main.pb");
  const Arrays golden = test::ArraysOf(c.folder + "/adam.npz");
  Scope sparse_scope, dense_scope;
  const std::vector<double> sparse = Train(c, main, sparse_scope);
  const std::vector<double> dense = Train(c, WithDenseGradients(main), dense_scope);
  ASSERT_EQ(sparse.size(), dense.size());
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    EXPECT_NEAR(sparse[i], dense[i], kAtol + kRtol * std::abs(dense[i])) << "loss of step " << i;
    EXPECT_NEAR(sparse[i], test::ElementAt(golden.at("loss"), static_cast<int>(i)), 1e-3);
  }
  CompareFinal(c, golden, sparse_scope);
  for (const auto& [name, value] : test::ArraysOf(c.folder + "/init.npz")) {
    const Status near = NearValues(name, sparse_scope.Find(name)->As<Tensor>(),
                                   dense_scope.Find(name)->As<Tensor>(), kRtol, kAtol);
    EXPECT_TRUE(near.ok()) << near.ToString();
  }
}

}  // namespace
}  // namespace penstock
