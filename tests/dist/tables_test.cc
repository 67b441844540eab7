// A table sharded by id in real processes ends with the bytes of one thread, whatever the order of messages
// and the number of shards on each server.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "operators/all_ops.h"
#include "tests/dist/job.h"
#include "tests/support/corpus.h"
#include "tests/support/role_programs.h"
#include "tests/support/run_program.h"
#include "tools/case/case_file.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {
namespace {

constexpr char kLoss[] = "mean_0.tmp_0";
constexpr int kSteps = 3;

// Our role programs for the corpus's word2vec with one table for its four words.
RoleSet Word2vec() {
  const std::string open = CorpusOrSelection() + "/open/";
  const std::string program = open + "programs/word2vec_dist.sgd/";
  Program main = ProgramOf(program + "main.pb"), startup = ProgramOf(program + "startup.pb");
  PENSTOCK_CHECK(ApplyFacts(BytesOf(program + "program.json"), main, startup).ok(), program);
  const Result<CaseFile> file = ParseCase(BytesOf(open + "cases/word2vec_dist.sgd@tbl_sync_p2t2/case.json"));
  PENSTOCK_CHECK(file.ok(), file.status().ToString());
  Result<RoleSet> roles = Transpile(AllOps(), main, startup, file->config);
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  return *std::move(roles);
}

Arrays FeedsOf(int trainer, int step) {
  Arrays feeds;
  int word = 0;
  for (const char* name : {"firstw", "secondw", "thirdw", "forthw", "nextw"}) {
    Tensor ids(DType::kInt64, {5, 1});
    for (Dim i = 0; i < 5; ++i)
      ids.Data<std::int64_t>()[i] = (i * 397 + word * 31 + step * 7 + trainer * 1009) % (i == 4 ? 3 : 2000);
    feeds[name] = ids;
    ++word;
  }
  return feeds;
}

std::vector<exec::Feed> AsFeeds(const Arrays& arrays) {
  std::vector<exec::Feed> feeds;
  for (const auto& [name, tensor] : arrays) feeds.push_back({name, tensor});
  return feeds;
}

TEST(DistTables, EqualTheOneThreadReferenceInAnyOrder) {
  const RoleSet roles = Word2vec();
  const std::vector<RolePrograms> trainers = TrainersOf(roles), pservers = PserversOf(roles);
  Job job(trainers, pservers);
  job.fetches = {kLoss};
  for (int t = 0; t < 2; ++t) {
    for (int step = 0; step < kSteps; ++step) job.trainer(t).feeds.push_back(FeedsOf(t, step));
  }
  ReferenceJob reference(AllOps(), trainers, pservers);
  ASSERT_TRUE(reference.Start().ok());
  std::vector<std::vector<std::vector<Variable>>> losses;
  for (int step = 0; step < kSteps; ++step) {
    auto got = reference.Step({AsFeeds(FeedsOf(0, step)), AsFeeds(FeedsOf(1, step))}, job.fetches);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    losses.push_back(*std::move(got));
  }
  for (const std::uint64_t seed : {0, 7, 8}) {
    for (int p = 0; p < 2; ++p)
      job.pserver(p).flags = {StrCat("--table_shards=", seed == 0 ? 4 : p + seed - 6)};
    ASSERT_TRUE(job.Run(std::chrono::seconds(60), seed)) << job.Logs();
    for (int t = 0; t < 2; ++t) {
      for (int step = 0; step < kSteps; ++step) {
        const Tensor fetched = job.Fetched(t, step).at(kLoss);
        const Tensor& wanted =
            *losses[static_cast<std::size_t>(step)][static_cast<std::size_t>(t)][0].If<Tensor>();
        EXPECT_TRUE(std::isfinite(fetched.Data<float>()[0]));
        EXPECT_EQ(std::memcmp(fetched.raw(), wanted.raw(), wanted.bytes()), 0)
            << "seed " << seed << ", trainer " << t << ", step " << step;
      }
    }
  }
}

TEST(DistTables, LossesOnFluidsWireEqualTheNativeWire) {
  const RoleSet roles = Word2vec();
  std::map<std::string, std::vector<float>> losses;
  for (const std::string wire : {"native", "fluid"}) {
    Job job(TrainersOf(roles), PserversOf(roles));
    job.fetches = {kLoss};
    for (int i = 0; i < 2; ++i) {
      job.trainer(i).flags = job.pserver(i).flags = {"--wire=" + wire};
      for (int step = 0; step < kSteps; ++step) job.trainer(i).feeds.push_back(FeedsOf(i, step));
    }
    ASSERT_TRUE(job.Run(std::chrono::seconds(60))) << job.Logs();
    for (int t = 0; t < 2; ++t) {
      for (int step = 0; step < kSteps; ++step)
        losses[wire].push_back(job.Fetched(t, step).at(kLoss).Data<float>()[0]);
    }
  }
  EXPECT_EQ(losses["fluid"], losses["native"]);
}

// The declared height limits the number of distinct ids, not their values.
TEST(DistTables, AnIdBeyondTheTableSizeHasItsOwnRow) {
  const RoleSet roles = Word2vec();
  Job job(TrainersOf(roles), PserversOf(roles));
  job.fetches = {kLoss};
  for (int t = 0; t < 2; ++t) job.trainer(t).feeds.push_back(FeedsOf(t, 0));
  job.trainer(1).feeds[0]["secondw"].Data<std::int64_t>()[0] = 2000;
  ASSERT_TRUE(job.Run(std::chrono::seconds(60))) << job.Logs();
  for (int t = 0; t < 2; ++t) EXPECT_TRUE(std::isfinite(job.Fetched(t, 0).at(kLoss).Data<float>()[0]));
}

}  // namespace
}  // namespace penstock::test
