// Numeric trainings as jobs of two trainers and two pservers, from our role programs: each trainer takes half
// of the batch, every parameter that can be sliced is sliced, and the job ends with the values of one
// machine.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/corpus.h"
#include "tests/support/numeric_case.h"
#include "tests/support/op_harness.h"
#include "tests/support/role_programs.h"
#include "tests/support/run_program.h"
#include "transpiler/pipeline/transpile.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

constexpr int kTrainers = 2;
constexpr double kRtol = 1e-4, kAtol = 1e-5;

plan::TranspileConfig TwoByTwo() {
  plan::TranspileConfig config;
  config.trainers = kTrainers;
  config.trainer_ids = {0, 1};
  config.pservers = {"127.0.0.1:7000", "127.0.0.1:7001"};
  config.min_block_size = 1;
  config.allow_small_blocks = true;
  return config;
}

// The first or second half of the rows, or of the sequences.
Tensor HalfOf(const Tensor& batch, int half) {
  if (batch.lod().empty()) {
    const Dim rows = batch.shape()[0] / 2;
    return batch.Rows(half * rows, (half + 1) * rows).Clone();
  }
  const LoDLevel& offsets = batch.lod()[0];
  const std::size_t count = offsets.size() / 2, first = static_cast<std::size_t>(half) * count;
  LoDLevel own;
  for (std::size_t i = first; i <= first + count; ++i) own.push_back(offsets[i] - offsets[first]);
  Tensor rows =
      batch.Rows(static_cast<Dim>(offsets[first]), static_cast<Dim>(offsets[first + count])).Clone();
  rows.set_lod({own});
  return rows;
}

std::unique_ptr<Job> MakeJob(const NumericCase& c, const RoleSet& roles) {
  auto job = std::make_unique<Job>(TrainersOf(roles), PserversOf(roles));
  job->fetches = {c.loss};
  for (const plan::ParamPlacement& param : roles.plan.params) {
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      const plan::Slice& slice = param.slices[i];
      job->pserver(slice.pserver).values[plan::ParamPieceName(param, static_cast<int>(i))] =
          c.start.at(param.param).Rows(slice.row_begin, slice.row_end).Clone();
    }
  }
  for (int step = 0; step < kNumericSteps; ++step) {
    for (int i = 0; i < kTrainers; ++i) {
      Arrays& feeds = job->trainer(i).feeds.emplace_back();
      for (const exec::Feed& feed : FeedsOfStep(c, step)) feeds[feed.name] = HalfOf(feed.tensor, i);
    }
  }
  return job;
}

// The losses of one machine, and its final variables.
std::vector<double> OnOneMachine(const NumericCase& c, Scope& scope) {
  exec::Executor executor(AllOps(), {.threads = 1});
  EXPECT_TRUE(executor.Run(c.startup, scope, {}, {}).ok());
  for (const auto& [name, value] : c.start) SetTensor(scope, name, value);
  std::vector<double> losses;
  for (int step = 0; step < kNumericSteps; ++step) {
    const auto got = executor.Run(c.main, scope, FeedsOfStep(c, step), std::vector<std::string>{c.loss});
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    losses.push_back(got.ok() ? ElementAt(*(*got)[0].If<Tensor>(), 0) : std::nan(""));
  }
  return losses;
}

// The final value of a parameter, joined from its pservers.
Tensor Served(const Job& job, const plan::ParamPlacement& param) {
  Tensor whole(param.dtype, param.shape);
  for (std::size_t i = 0; i < param.slices.size(); ++i) {
    const plan::Slice& slice = param.slices[i];
    whole.Rows(slice.row_begin, slice.row_end)
        .CopyFrom(job.Served(slice.pserver).at(plan::ParamPieceName(param, static_cast<int>(i))));
  }
  return whole;
}

class Optimizers : public testing::TestWithParam<NumericNames::value_type> {};

TEST_P(Optimizers, InAJobEqualOneMachine) {
  const auto& [model, optimizer] = GetParam();
  const NumericCase c = ReadNumericCase(model, optimizer);
  const Result<RoleSet> roles = Transpile(AllOps(), c.main, c.startup, TwoByTwo());
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  ASSERT_EQ(roles->plan.params.size(), c.start.size());
  const std::unique_ptr<Job> job = MakeJob(c, *roles);
  ASSERT_TRUE(job->Run(std::chrono::seconds(60))) << job->Logs();

  Scope scope;
  const std::vector<double> losses = OnOneMachine(c, scope);
  for (int step = 0; step < kNumericSteps; ++step) {
    double mean = 0;
    for (int i = 0; i < kTrainers; ++i) mean += ElementAt(job->Fetched(i, step).at(c.loss), 0) / kTrainers;
    const double loss = losses[static_cast<std::size_t>(step)];
    EXPECT_NEAR(mean, loss, kAtol + kRtol * std::abs(loss)) << "step " << step;
  }
  for (const plan::ParamPlacement& param : roles->plan.params) {
    const Status near =
        NearValues(param.param, Served(*job, param), scope.Find(param.param)->As<Tensor>(), kRtol, kAtol);
    EXPECT_TRUE(near.ok()) << near.ToString();
  }
}

// Every optimizer on the linear model, and some on a model with sequences and sparse tables. Excludes
// clipping by norm, because a trainer clips its own gradients, unlike one machine.
NumericNames Chosen() {
  NumericNames cases = AllNumericCases();
  std::erase_if(cases, [](const auto& name) {
    return (name.first != "linear" && name.first != "ctr_small") || name.second == "sgd_gnorm";
  });
  return cases;
}

TEST(OptimizerJobs, AllCasesExist) { EXPECT_GE(Chosen().size(), 18u); }

INSTANTIATE_TEST_SUITE_P(Corpus, Optimizers, testing::ValuesIn(Chosen()),
                         [](const auto& info) { return StrCat(info.param.first, "_", info.param.second); });

}  // namespace
}  // namespace penstock::test
