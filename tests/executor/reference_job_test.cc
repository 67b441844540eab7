// Fluid's own role programs of a sync job with two trainers and two pservers, run on one thread, give the
// losses and parameters of Fluid's processes.
#include "tests/support/reference_job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"

namespace penstock {
namespace {

using test::Arrays;
using test::ReferenceJob;
using test::RolePrograms;

constexpr int kJobSteps = 10, kTrainers = 2, kPservers = 2;
constexpr double kJobRtol = 1e-4, kJobAtol = 1e-5;

struct Job {
  std::string folder;
  std::string numeric;  // the model's folder with initial values and names
};

RolePrograms Role(const Job& job, const std::string& role, int index) {
  return {.startup = test::ProgramOf(StrCat(job.folder, "/", role, "_startup_", index, ".pb")),
          .main = test::ProgramOf(StrCat(job.folder, "/", role, "_", index, ".pb"))};
}

// The servers' initial values are rows of the model's, as in Fluid's run.
void SetSlices(const Job& job, ReferenceJob& reference) {
  const Arrays init = test::ArraysOf(job.numeric + "/init.npz");
  for (int p = 0; p < kPservers; ++p) {
    const auto slices =
        nlohmann::json::parse(test::BytesOf(StrCat(job.folder, "/pserver_", p, ".slices.json")));
    for (const auto& [name, slice] : slices.items()) {
      const Dim begin = slice[1], rows = slice[2];
      test::SetTensor(reference.pserver_scope(p), name,
                      init.at(slice[0].get<std::string>()).Rows(begin, begin + rows));
    }
  }
}

void ExpectNear(const std::string& what, const Tensor& a, const Tensor& b) {
  const Status near = test::NearValues(what, a, b, kJobRtol, kJobAtol);
  EXPECT_TRUE(near.ok()) << near.ToString();
}

void RunJob(const Job& job) {
  const auto info = nlohmann::json::parse(test::BytesOf(job.numeric + "/info.json"));
  const std::vector<std::string> feed_names = info["feeds"];
  const std::vector<std::string> fetches = {info["loss"]};
  std::vector<RolePrograms> trainers, pservers;
  std::vector<Arrays> feeds, golden;
  for (int t = 0; t < kTrainers; ++t) {
    trainers.push_back(Role(job, "trainer", t));
    feeds.push_back(test::ArraysOf(StrCat(job.folder, "/feeds_t", t, ".npz")));
    golden.push_back(test::ArraysOf(StrCat(job.folder, "/trainer_", t, ".npz")));
  }
  for (int p = 0; p < kPservers; ++p) pservers.push_back(Role(job, "pserver", p));

  ReferenceJob reference(AllOps(), std::move(trainers), std::move(pservers));
  Status started = reference.StartServers();
  ASSERT_TRUE(started.ok()) << started.ToString();
  SetSlices(job, reference);
  started = reference.StartTrainers();
  ASSERT_TRUE(started.ok()) << started.ToString();

  for (int step = 0; step < kJobSteps; ++step) {
    std::vector<std::vector<exec::Feed>> step_feeds;
    for (const Arrays& arrays : feeds) {
      step_feeds.push_back(test::FeedsOf(arrays, StrCat("s", step, ":"), feed_names));
    }
    auto losses = reference.Step(step_feeds, fetches);
    ASSERT_TRUE(losses.ok()) << losses.status().ToString();
    for (std::size_t t = 0; t < kTrainers; ++t) {
      const double expected = test::ElementAt(golden[t].at("loss"), step);
      EXPECT_NEAR(test::ElementAt(*(*losses)[t][0].If<Tensor>(), 0), expected,
                  kJobAtol + kJobRtol * std::abs(expected))
          << "trainer " << t << ", step " << step;
    }
  }
  for (const auto& [name, expected] : test::ArraysOf(job.folder + "/final_params.npz")) {
    for (int t = 0; t < kTrainers; ++t) {
      Variable* variable = reference.trainer_scope(t).Find(name);
      ASSERT_TRUE(variable != nullptr && variable->initialized()) << name;
      ExpectNear(StrCat(name, " of trainer ", t), variable->As<Tensor>(), expected);
    }
  }
}

class SyncJob : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(SyncJob, InOneThreadMatchesFluid) {
  const std::string open = test::CorpusOrSelection() + "/open/";
  const auto& [name, model] = GetParam();
  const Job job = {StrCat(open, "dist_numeric/", name), StrCat(open, "numeric/", model)};
  if (!std::filesystem::is_directory(job.folder)) {
    ASSERT_TRUE(test::CorpusFolder().empty()) << "the corpus lacks a job";
    ASSERT_NE(model, "linear") << "the selection in the tree has the linear job";
    GTEST_SKIP() << "only in the whole corpus";
  }
  RunJob(job);
}

INSTANTIATE_TEST_SUITE_P(Corpus, SyncJob,
                         testing::Values(std::pair("linear_sgd_sync", "linear"),
                                         std::pair("softmax_momentum_sync_sliced", "softmax_reg")),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace penstock
