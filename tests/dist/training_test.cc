// Two trainers in sync mode, or one asynchronous trainer, and two pservers as processes, from role programs
// made by Fluid 1.8.5.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/dist/case_job.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/program_files.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

constexpr int kSteps = 10;
constexpr double kRtol = 1e-4, kAtol = 1e-5;

// Rows [begin, begin + rows) of a parameter's value, by the name of the piece, as pserver_K.slices.json says.
Arrays SlicesOf(const std::string& file, const Arrays& whole) {
  Arrays pieces;
  const nlohmann::json slices = nlohmann::json::parse(BytesOf(file));
  for (const auto& [piece, where] : slices.items()) {
    const Tensor& tensor = whole.at(where[0].get<std::string>());
    const Dim begin = where[1].get<Dim>();
    pieces[piece] = tensor.Rows(begin, begin + where[2].get<Dim>()).Clone();
  }
  return pieces;
}

std::string JobsFolder() { return CorpusOrSelection() + "/open/dist_numeric/"; }
std::string NumericFolder(const std::string& model) {
  return StrCat(CorpusOrSelection(), "/open/numeric/", model, "/");
}
constexpr char kOnlyInTheCorpus[] = "the corpus is not beside this checkout";

// A job of the corpus with its initial values and feeds.
struct FluidJob {
  std::string folder, model;
  int trainers = 0;
  std::vector<std::string> feeds;
  Arrays start;  // values of parameters
  std::unique_ptr<Job> job;
};

// The available jobs with `trainers` trainers and two pservers: those whose tables adam updates by rows,
// compared with a NumPy model (model_params.npz), or the others.
std::vector<std::string> JobsOf(const std::string& mode, int trainers, bool of_a_model) {
  std::vector<std::string> jobs = FilesEndingIn(JobsFolder(), "");
  std::erase_if(jobs, [&](const std::string& name) {
    const auto info = nlohmann::json::parse(BytesOf(StrCat(JobsFolder(), name, "/info.json")));
    const bool as_many = info["trainers"] == trainers && info["pservers"].size() == 2;
    const bool has_model = std::filesystem::exists(StrCat(JobsFolder(), name, "/model_params.npz"));
    const bool of_mode = mode == "sync" ? info["sync"].get<bool>() : info.value("mode", "") == mode;
    return !of_mode || !as_many || has_model != of_a_model;
  });
  return jobs;
}
std::vector<std::string> SyncJobs(bool of_a_model) { return JobsOf("sync", 2, of_a_model); }
std::vector<std::string> AsyncJobs(bool of_a_model) { return JobsOf("async", 1, of_a_model); }

FluidJob MakeFluidJob(const std::string& name) {
  FluidJob made;
  made.folder = StrCat(JobsFolder(), name, "/");
  const auto info = nlohmann::json::parse(BytesOf(made.folder + "info.json"));
  made.model = info["model"].get<std::string>();
  made.trainers = info["trainers"].get<int>();
  const std::string own_start = made.folder + "init.npz";
  const std::string numeric = NumericFolder(made.model);
  made.feeds = nlohmann::json::parse(BytesOf(numeric + "info.json"))["feeds"].get<std::vector<std::string>>();
  made.start = ArraysOf(std::filesystem::exists(own_start) ? own_start : numeric + "init.npz");
  const std::vector<std::string> trainers =
      made.trainers == 1 ? std::vector<std::string>{"_0"} : std::vector<std::string>{"_0", "_1"};
  made.job = std::make_unique<Job>(RolesOf(made.folder, "trainer_startup", trainers, "trainer"),
                                   RolesOf(made.folder, "pserver_startup", {"_0", "_1"}, "pserver"));
  Job& job = *made.job;
  job.fetches = {kLoss};
  for (int i = 0; i < 2; ++i)
    job.pserver(i).values = SlicesOf(StrCat(made.folder, "pserver_", i, ".slices.json"), made.start);
  for (int i = 0; i < made.trainers; ++i) {
    const Arrays feeds = ArraysOf(StrCat(made.folder, "feeds_t", i, ".npz"));
    for (int step = 0; step < kSteps; ++step) {
      Arrays& of_step = job.trainer(i).feeds.emplace_back();
      for (exec::Feed& feed : FeedsOf(feeds, StrCat("s", step, ":"), made.feeds))
        of_step[feed.name] = feed.tensor;
    }
  }
  return made;
}

// The final value of a parameter, joined from its pservers.
Tensor ServedParam(const FluidJob& fluid, const std::string& param) {
  Tensor whole = fluid.start.at(param).Clone();
  for (int i = 0; i < 2; ++i) {
    const Arrays served = fluid.job->Served(i);
    const auto slices = nlohmann::json::parse(BytesOf(StrCat(fluid.folder, "pserver_", i, ".slices.json")));
    for (const auto& [piece, where] : slices.items()) {
      if (where[0].get<std::string>() != param) continue;
      const Dim begin = where[1].get<Dim>();
      whole.Rows(begin, begin + where[2].get<Dim>()).CopyFrom(served.at(piece));
    }
  }
  return whole;
}

// Compares the parameters: tables on the servers, others also on the trainers.
void ExpectParams(const FluidJob& fluid, const Arrays& params) {
  for (const auto& [name, start] : fluid.start) {
    const Tensor served = ServedParam(fluid, name);
    const Status near = NearValues(name, served, params.at(name), kRtol, kAtol);
    EXPECT_TRUE(near.ok()) << near.ToString();
    for (int i = 0; i < fluid.trainers; ++i) {
      const Arrays final = fluid.job->Final(i);
      if (final.contains(name)) ExpectSameBytes(final.at(name), served, name);
    }
  }
}

double LossOf(const FluidJob& fluid, int trainer, int step) {
  return fluid.job->Fetched(trainer, step).at(kLoss).Span<float>()[0];
}

class FluidJobs : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FluidJobs);  // the selection in the tree has no async one

TEST_P(FluidJobs, TrainWithFluidsLossesAndParameters) {
  const FluidJob fluid = MakeFluidJob(GetParam());
  ASSERT_TRUE(fluid.job->Run(seconds(60))) << fluid.job->Logs();
  ExpectParams(fluid, ArraysOf(fluid.folder + "final_params.npz"));
  for (int i = 0; i < fluid.trainers; ++i) {
    const Tensor losses = ArraysOf(StrCat(fluid.folder, "trainer_", i, ".npz")).at("loss");
    for (int step = 0; step < kSteps; ++step) {
      const double loss = ElementAt(losses, step);
      EXPECT_NEAR(LossOf(fluid, i, step), loss, kAtol + kRtol * std::abs(loss))
          << "trainer " << i << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, FluidJobs, testing::ValuesIn(SyncJobs(false)),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Async, FluidJobs, testing::ValuesIn(AsyncJobs(false)),
                         [](const auto& info) { return info.param; });

// Fluid's own jobs end with a few wrong rows, so model_params.npz has NumPy's result.
class SparseAdamJobs : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SparseAdamJobs);  // the selection in the tree has none

TEST_P(SparseAdamJobs, MatchTheReferenceModel) {
  const FluidJob fluid = MakeFluidJob(GetParam());
  ASSERT_TRUE(fluid.job->Run(seconds(60))) << fluid.job->Logs();
  const Arrays want = ArraysOf(fluid.folder + "model_params.npz");
  ExpectParams(fluid, want);
  for (int step = 0; step < kSteps; ++step) {
    const double loss = ElementAt(want.at("loss"), step);
    double mean = 0;
    for (int i = 0; i < fluid.trainers; ++i) mean += LossOf(fluid, i, step) / fluid.trainers;
    EXPECT_NEAR(mean, loss, kAtol + kRtol * std::abs(loss)) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, SparseAdamJobs, testing::ValuesIn(SyncJobs(true)),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Async, SparseAdamJobs, testing::ValuesIn(AsyncJobs(true)),
                         [](const auto& info) { return info.param; });

TEST(DistTraining, EverySyncAndAsyncJobIsCompared) {
  EXPECT_GE(SyncJobs(false).size(), CorpusFolder().empty() ? 1u : 4u);
  EXPECT_GE(SyncJobs(true).size(), CorpusFolder().empty() ? 0u : 2u);
  EXPECT_GE(AsyncJobs(false).size() + AsyncJobs(true).size(), CorpusFolder().empty() ? 0u : 5u);
}

TEST(DistTraining, FluidsWireEqualsTheOneThreadReference) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> jobs = {
      {"linear_sgd_sync", {"fc_0.w_0", "fc_0.b_0"}},
      {"word2vec_sgd_sync", {"fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"}}};
  for (const auto& [job_name, names] : jobs) {
    if (!std::filesystem::exists(JobsFolder() + job_name)) continue;  // only in the whole corpus
    const FluidJob fluid = MakeFluidJob(job_name);
    Job& job = *fluid.job;
    const std::vector<Arrays> reference = ReferenceOf(job, kSteps, names);
    for (int i = 0; i < 2; ++i) job.trainer(i).flags = job.pserver(i).flags = {"--wire=fluid"};
    for (const std::uint64_t seed : {0, 1, 2}) {
      ASSERT_TRUE(job.Run(seconds(60), seed)) << job.Logs();
      EXPECT_NE(job.Logs().find("uses Fluid's wire, which has no exactly-once"), std::string::npos);
      ExpectEnds(job, reference, StrCat(job_name, ", seed ", seed));
    }
  }
}

// Jobs with and without tables, each with the parameters that a trainer has at its end.
TEST(DistTraining, TenDelayedRunsEqualTheOneThreadReference) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> jobs = {
      {"linear_sgd_sync", {"fc_0.w_0", "fc_0.b_0"}},
      {"word2vec_sgd_sync", {"fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"}}};
  for (const auto& [job_name, names] : jobs) {
    if (!std::filesystem::exists(JobsFolder() + job_name)) continue;  // only in the whole corpus
    const FluidJob fluid = MakeFluidJob(job_name);
    Job& job = *fluid.job;
    const std::vector<Arrays> reference = ReferenceOf(job, kSteps, names);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      ASSERT_TRUE(job.Run(seconds(60), seed)) << job.Logs();
      ExpectEnds(job, reference, StrCat(job_name, ", seed ", seed));
    }
  }
}

// Cases of the corpus end with the bytes of one thread, whatever the order.
void ExpectReferenceBytes(const std::string& name, const std::vector<std::string>& feeds, int steps,
                          const std::vector<std::string>& flags) {
  const CaseJob made = MakeCaseJob(name, feeds, steps);
  for (int i = 0; i < 2; ++i) made.job->pserver(i).flags = flags;
  const std::vector<Arrays> reference = ReferenceOf(*made.job, steps, made.params);
  for (const std::uint64_t seed : {0, 7, 8}) {
    ASSERT_TRUE(made.job->Run(seconds(120), seed)) << made.job->Logs();
    ExpectEnds(*made.job, reference, StrCat(name, ", seed ", seed));
  }
}

TEST(DistTraining, ChunkedSlicesEqualTheOneThreadReference) {
  ExpectReferenceBytes("wide_linear.adam@sync_p2t2", {"x", "y"}, 3, {"--chunk_bytes=100000"});
  ExpectReferenceBytes("wide_linear.momentum@sync_p2t2", {"x", "y"}, 3, {});
}

// Fluid's servers count steps and compute the rate, a temporary, in a separate block.
TEST(DistTraining, ServerSchedulesEqualTheOneThreadReference) {
  if (CorpusFolder().empty()) GTEST_SKIP() << kOnlyInTheCorpus;
  for (const char* name : {"softmax_reg.adam.lr_exponential", "softmax_reg.sgd.lr_noam",
                           "softmax_reg.sgd.lr_polynomial", "softmax_reg.sgd.lr_piecewise"}) {
    SCOPED_TRACE(name);
    ExpectReferenceBytes(StrCat(name, "@sync_p2t2"), {"img", "label"}, 4, {});
  }
}

TEST(DistTraining, LenetEqualsTheOneThreadReference) {
  ExpectReferenceBytes("lenet.momentum@sync_p2t2", {"pixel", "label"}, 2, {"--chunk_bytes=10000"});
}

}  // namespace
}  // namespace penstock::test
