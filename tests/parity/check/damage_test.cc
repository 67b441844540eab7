// check finds damage: each entry of the table breaks one property of correct sets (Fluid's, and ours in both
// dialects), and check must report one of its findings.
#include <gtest/gtest.h>

#include <algorithm>

#include "operators/all_ops.h"
#include "tests/parity/check/damages.h"
#include "tests/parity/check/role_sets.h"
#include "tests/support/corpus.h"

namespace penstock {
namespace {

using test::CaseFolder;
using test::Damage;

struct Base {
  std::string name;
  CaseFolder one;
  check::RoleFiles roles;
};

std::vector<Base> BasesOf(const std::vector<const char*>& ids) {
  const std::string corpus = test::CorpusOrSelection();
  const auto known = test::CaseIds(corpus);
  std::vector<Base> out;
  for (const char* id : ids) {
    if (std::find(known.begin(), known.end(), id) == known.end()) continue;
    const CaseFolder one = test::ReadCaseFolder(corpus, id);
    if (auto set = test::FluidSet(one)) out.push_back({StrCat(id, ", Fluid's"), one, *set});
    if (auto set = test::OurSet(one, plan::Dialect::kDefault))
      out.push_back({StrCat(id, ", ours"), one, *set});
    if (auto set = test::OurSet(one, plan::Dialect::kFluid18))
      out.push_back({StrCat(id, ", compat"), one, *set});
  }
  return out;
}

// Fluid's sets and ours, in both dialects: dense and sliced, with state, decay, schedules and tables.
const std::vector<Base>& Bases() {
  static const std::vector<Base> bases =
      BasesOf({"wide_linear.sgd@sync_p2t2", "wide_linear.momentum@sync_p2t2",
               "vgg11.momentum.reg_l2@sync_p2t2", "softmax_reg.adam.lr_exponential@sync_mbs1024_p3t2",
               "resnet_small.momentum.lr_piecewise.reg_l2@sync_p2t2",
               "word2vec_dense.adam.lr_exponential_ns@sync_p2t2",
               "ctr_sparse.sgd.lr_exponential.reg_l2@sync_p2t2", "word2vec_dist.sgd@tbl_sync_p2t2"});
  return bases;
}

// Sets of the other modes.
const std::vector<Base>& ModeBases() {
  static const std::vector<Base> bases =
      BasesOf({"softmax_reg.adam.lr_exponential@async_rt_p2t2", "wide_linear.sgd@dc_async_p2t2",
               "fit_a_line.sgd@geo_p2t2", "word2vec_sparse.sgd@geo_p2t2", "fit_a_line.sgd@coll_allreduce_t2",
               "fit_a_line.sgd@coll_localsgd_t2", "lenet.momentum@coll_allreduce_t4_n2",
               "fit_a_line.sgd@nccl2_t2", "lenet.lars@nccl2_t4_hier"});
  return bases;
}

// Sets with settings that Fluid does not have: backup trainers, staleness and compression, by ops and by a
// communicator.
const std::vector<Base>& PolicyBases() {
  static const std::vector<Base> bases = [] {
    std::vector<Base> out;
    const std::string corpus = test::CorpusOrSelection();
    for (const char* id : {"wide_linear.momentum@sync_p2t2", "fit_a_line.sgd@async_p2t2",
                           "softmax_reg.adam.lr_exponential@async_rt_p2t2", "wide_linear.sgd@cna_rt_p2t2"}) {
      const auto known = test::CaseIds(corpus);
      if (std::find(known.begin(), known.end(), id) == known.end()) continue;
      CaseFolder one = test::ReadCaseFolder(corpus, id);
      plan::TranspileConfig& config = one.job.config;
      const plan::Mode mode = *plan::ResolveMode(config);
      if (mode == plan::Mode::kSync) config.backup_trainers = 1;
      if (mode == plan::Mode::kAsync) config.staleness = 3;
      config.compression.all = {.kind = Compression::Kind::kTwoBit};
      if (auto set = test::OurSet(one, plan::Dialect::kDefault)) out.push_back({id, one, *set});
    }
    return out;
  }();
  return bases;
}

void ExpectFound(const Damage& damage, const std::vector<Base>& bases) {
  int made = 0;
  for (const Base& base : bases) {
    check::RoleFiles roles = base.roles;
    if (!damage.make(roles)) continue;
    ++made;
    const check::SourcePrograms source{base.one.main, base.one.startup};
    const check::CheckReport report = check::CheckRoles(roles, AllOps(), {.source = &source});
    const bool found =
        std::any_of(report.findings.begin(), report.findings.end(), [&](const check::Finding& finding) {
          return finding.severity == check::Severity::kError &&
                 std::find(damage.ids.begin(), damage.ids.end(), finding.id) != damage.ids.end();
        });
    EXPECT_TRUE(found) << base.name << ": " << Join(damage.ids, " or ") << " expected, got:\n"
                       << report.ToString();
  }
  // The selection in the tree has no tables and no schedules.
  EXPECT_GE(made, test::CorpusFolder().empty() ? 0 : 1);
}

class DamageTest : public testing::TestWithParam<Damage> {};
TEST_P(DamageTest, IsDetectedAndReported) { ExpectFound(GetParam(), Bases()); }

class ModeDamageTest : public testing::TestWithParam<Damage> {};
TEST_P(ModeDamageTest, IsDetectedAndReported) { ExpectFound(GetParam(), ModeBases()); }

class PolicyDamageTest : public testing::TestWithParam<Damage> {};
TEST_P(PolicyDamageTest, IsDetectedAndReported) { ExpectFound(GetParam(), PolicyBases()); }

TEST(PolicySets, AreCorrect) {
  for (const Base& base : PolicyBases()) {
    const check::SourcePrograms source{base.one.main, base.one.startup};
    const check::CheckReport report = check::CheckRoles(base.roles, AllOps(), {.source = &source});
    EXPECT_EQ(report.errors(), 0) << base.name << "\n" << report.ToString();
  }
}

std::vector<Damage> All() {
  std::vector<Damage> all;
  for (const auto* list : {&test::TrainerDamages(), &test::PserverDamages(), &test::SetDamages()}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Each, DamageTest, testing::ValuesIn(All()),
                         [](const testing::TestParamInfo<Damage>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Each, PolicyDamageTest, testing::ValuesIn(test::PolicyDamages()),
                         [](const testing::TestParamInfo<Damage>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Each, ModeDamageTest, testing::ValuesIn(test::ModeDamages()),
                         [](const testing::TestParamInfo<Damage>& info) { return info.param.name; });

}  // namespace
}  // namespace penstock
