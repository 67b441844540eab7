// The corpus's training programs run unchanged, with batches of several sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

// Every model of the corpus has at least this many classes.
constexpr std::int64_t kClasses = 10;

// Small values, because wide_linear diverges on large ones with its learning rates.
Tensor Batch(const Var& var, Dim rows) {
  const Shape shape = var.type->shape.WithRows(rows);
  if (IsFloat(var.type->dtype)) return test::Scattered(var.type->dtype, shape, -0.05, 0.05);
  Tensor labels(var.type->dtype, shape);
  for (std::int64_t i = 0; i < labels.count(); ++i) labels.Data<std::int64_t>()[i] = i % kClasses;
  return labels;
}

std::vector<exec::Feed> Batches(const Program& program, const std::vector<std::string>& names, Dim rows) {
  std::vector<exec::Feed> feeds;
  for (const std::string& name : names) feeds.push_back({name, Batch(*program.main().FindVar(name), rows)});
  return feeds;
}

class Trains : public testing::TestWithParam<std::string> {};

TEST_P(Trains, WithEveryShapeKnownBeforeTheRun) {
  const std::string folder = StrCat(test::CorpusOrSelection(), "/open/programs/", GetParam());
  const auto json = nlohmann::json::parse(test::BytesOf(folder + "/program.json"));
  const Program main = test::ProgramOf(folder + "/main.pb");
  exec::Executor executor(AllOps(), {.threads = 2});
  Scope scope;
  auto started = executor.Run(test::ProgramOf(folder + "/startup.pb"), scope, {}, {});
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  const std::vector<std::string> fetches = {json["loss"]};
  double first = 0, last = 0;
  constexpr int kSteps = 3;
  for (int step = 0; step < kSteps; ++step) {
    auto got = executor.Run(main, scope, Batches(main, json["feeds"], 4), fetches);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    last = test::ElementAt(*(*got)[0].If<Tensor>(), 0);
    if (step == 0) first = last;
  }
  EXPECT_TRUE(std::isfinite(last));
  EXPECT_NE(last, first) << "the parameters were not updated";
  // The last batch of an epoch is smaller.
  auto got = executor.Run(main, scope, Batches(main, json["feeds"], 3), fetches);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(executor.stats().specialised_count, 3) << "startup, and main for each batch size";
  EXPECT_EQ(executor.stats().late_step_count, 0);
}

// The losses of a few steps that fetch every forward value; the caller keeps the fetched values or not.
std::vector<double> LossesWhileFetchingAll(const std::string& folder, bool keep) {
  const auto json = nlohmann::json::parse(test::BytesOf(folder + "/program.json"));
  const Program main = test::ProgramOf(folder + "/main.pb");
  std::vector<std::string> fetches = {json["loss"]};
  for (const OpEntry& entry : main.main().ops()) {
    if (entry.op->role() != OpRole::kForward) continue;
    for (const std::string& name : entry.op->OutputNames()) fetches.push_back(name);
  }
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  auto started = executor.Run(test::ProgramOf(folder + "/startup.pb"), scope, {}, {});
  PENSTOCK_CHECK(started.ok(), started.status().ToString());
  std::vector<double> losses;
  std::vector<std::vector<Variable>> kept;
  std::vector<Tensor> first_values;
  for (int step = 0; step < 4; ++step) {
    auto got = executor.Run(main, scope, Batches(main, json["feeds"], 4), fetches);
    PENSTOCK_CHECK(got.ok(), got.status().ToString());
    losses.push_back(test::ElementAt(*(*got)[0].If<Tensor>(), 0));
    if (step == 0) {
      for (const Variable& value : *got) first_values.push_back(value.If<Tensor>()->Clone());
    }
    if (keep) kept.push_back(*std::move(got));
  }
  for (std::size_t i = 0; keep && i < first_values.size(); ++i) {
    const Status same = test::NearValues(fetches[i], *kept[0][i].If<Tensor>(), first_values[i], 0, 0);
    EXPECT_TRUE(same.ok()) << same.ToString();
  }
  return losses;
}

TEST(Fetches, KeptByTheCallerDoNotAffectLaterRuns) {
  const std::string folder = StrCat(test::CorpusOrSelection(), "/open/programs/lenet.momentum");
  EXPECT_EQ(LossesWhileFetchingAll(folder, true), LossesWhileFetchingAll(folder, false));
}

INSTANTIATE_TEST_SUITE_P(Corpus, Trains,
                         testing::Values("fit_a_line.sgd", "wide_linear.sgd", "wide_linear.momentum",
                                         "wide_linear.adam", "lenet.momentum", "vgg11.momentum.reg_l2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace penstock
