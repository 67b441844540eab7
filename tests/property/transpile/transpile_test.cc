// Properties of every transpilation: random programs with random configurations.
#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "operators/all_ops.h"
#include "tests/property/transpile/random_job.h"
#include "transpiler/cost/choose_exchange.h"

DECLARE_int32(count);
DECLARE_int32(seed);

namespace penstock::test {
namespace {

class EveryJob : public testing::Test {
 protected:
  // Made once for all tests, because the proofs are slow.
  static const std::map<std::uint64_t, Proof>& Proofs() {
    static const std::map<std::uint64_t, Proof> proofs = [] {
      std::map<std::uint64_t, Proof> made;
      for (int i = 0; i < FLAGS_count; ++i) {
        const auto seed = static_cast<std::uint64_t>(FLAGS_seed) + static_cast<std::uint64_t>(i);
        made.emplace(seed, Prove(MakeRandomJob(seed)));
      }
      return made;
    }();
    return proofs;
  }
};

TEST_F(EveryJob, IsPlannedVerifiedAndReadBack) {
  for (const auto& [seed, proof] : Proofs()) {
    EXPECT_TRUE(proof.holds.ok()) << "repeat with: property_transpile --count 1 --seed " << seed << "\n"
                                  << proof.holds.ToString();
  }
}

TEST_F(EveryJob, HasTheSameBytesInAnotherProcess) {
  const std::string self = std::filesystem::canonical("/proc/self/exe").string();
  const std::string command = StrCat("'", self, "' --digests --count ", FLAGS_count, " --seed ", FLAGS_seed);
  FILE* const other = popen(command.c_str(), "r");
  ASSERT_NE(other, nullptr);
  std::map<std::uint64_t, std::uint64_t> digests;
  unsigned long long seed = 0, digest = 0;
  while (std::fscanf(other, "%llu %llx", &seed, &digest) == 2) digests[seed] = digest;
  EXPECT_EQ(pclose(other), 0);
  ASSERT_EQ(digests.size(), Proofs().size());
  for (const auto& [at, proof] : Proofs()) EXPECT_EQ(digests.at(at), proof.digest) << "seed " << at;
}

std::vector<plan::ExchangeChoice> ChoicesOf(const RandomJob& job) {
  if (job.config.dense != plan::DenseExchange::kAuto) return {};
  const Result<plan::TranspileConfig> chosen = cost::ChooseExchanges(
      {.ops = AllOps(), .main = job.network.main, .startup = job.network.startup, .config = job.config});
  return chosen.ok() ? chosen->exchanges : std::vector<plan::ExchangeChoice>();
}

// Otherwise the properties above would be nearly empty.
TEST(RandomJobs, CoverEveryKind) {
  std::set<std::string> optimizers;
  std::set<std::size_t> pservers, trainers;
  std::set<plan::Mode> modes;
  std::set<std::pair<plan::Slicing, plan::Placement>> placements;
  int shared = 0, frozen = 0, scheduled = 0, clipped = 0, decayed = 0, unsliced = 0, many = 0, on_servers = 0;
  int tables = 0, stale = 0, backed_up = 0;
  std::set<Compression::Kind> compressions;
  std::set<std::pair<plan::DenseExchange, plan::ExchangeChoice::Reason>> exchanges;
  std::set<Dim> extents;
  for (std::uint64_t seed = 1; seed <= 700; ++seed) {
    const RandomJob job = MakeRandomJob(seed);
    optimizers.insert(job.network.optimizer);
    pservers.insert(job.config.pservers.size());
    trainers.insert(static_cast<std::size_t>(job.config.trainers));
    modes.insert(*plan::ResolveMode(job.config));
    for (const plan::ExchangeChoice& choice : ChoicesOf(job)) exchanges.emplace(choice.way, choice.reason);
    placements.emplace(job.config.slicing, job.config.placement);
    shared += job.network.shared > 0;
    frozen += job.network.frozen > 0;
    scheduled += job.network.schedule;
    clipped += job.network.clipped;
    on_servers += job.network.clipped_together && job.config.clip == plan::Clip::kGlobal;
    decayed += job.network.decayed;
    unsliced += !job.config.slice_params;
    many += job.network.params > 20;
    tables += job.network.tables > 0;
    stale += job.config.staleness.has_value();
    backed_up += job.config.backup_trainers > 0;
    compressions.insert(job.config.compression.all.kind);
    for (const VarRef& var : job.network.main.main().vars()) {
      if (var->facts.is_parameter) extents.insert(var->shape().dims().begin(), var->shape().dims().end());
    }
  }
  for (const OpDef* def : PlainOptimizers(AllOps()))
    EXPECT_TRUE(optimizers.contains(def->type())) << def->type();
  EXPECT_GE(optimizers.size(), 10u);
  EXPECT_GE(modes.size(), 13u);
  EXPECT_EQ(placements.size(), 7u);
  EXPECT_TRUE(pservers.contains(1) && pservers.contains(64)) << pservers.size();
  EXPECT_TRUE(trainers.contains(1) && trainers.contains(64));
  for (const int count :
       {shared, frozen, scheduled, clipped, decayed, unsliced, many, on_servers, tables, stale, backed_up})
    EXPECT_GE(count, 10);
  EXPECT_EQ(compressions.size(), 5u);
  EXPECT_EQ(exchanges.size(), 4u);  // sparse, of a single trainer, and both exchanges by time
  for (const Dim extent : {1, 1021, 131071, 16777216}) EXPECT_TRUE(extents.contains(extent)) << extent;
}

}  // namespace
}  // namespace penstock::test
