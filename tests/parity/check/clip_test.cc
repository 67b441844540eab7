// Sets whose pservers clip the mean of all gradients compute the same as the program of one machine, for
// every clipping of the corpus and every slicing of parameters.
#include <gtest/gtest.h>

#include <iostream>

#include "operators/all_ops.h"
#include "tests/parity/check/role_sets.h"
#include "tests/support/corpus.h"

namespace penstock {
namespace {

using test::CaseFolder;

bool Clips(const CaseFolder& one) { return one.id.find(".clip_") != std::string::npos; }

TEST(CheckClipTest, SetsThatClipGloballyComposeToTheirSource) {
  int checked = 0;
  for (const std::string& id : test::CaseIds(test::CorpusOrSelection())) {
    CaseFolder one = test::ReadCaseFolder(test::CorpusOrSelection(), id);
    plan::TranspileConfig& config = one.job.config;
    if (!Clips(one) || config.kind != plan::Kind::kPserver) continue;
    config.clip = plan::Clip::kGlobal;
    config.allow_small_blocks = true;
    config.sync_mode_argument = config.sync_mode_field = true;
    for (const std::int64_t least : {64, 8192}) {
      config.min_block_size = least;
      const auto set = test::OurSet(one, plan::Dialect::kDefault);
      ASSERT_TRUE(set) << id;
      const check::SourcePrograms source{one.main, one.startup};
      const check::CheckReport report = check::CheckRoles(*set, AllOps(), {.source = &source});
      EXPECT_EQ(report.errors(), 0) << id << " in slices of " << least << "\n" << report.ToString();
      ++checked;
    }
  }
  std::cout << "sets that clip globally: " << checked << "\n";
  EXPECT_GE(checked, test::CorpusFolder().empty() ? 2 : 10);
}

}  // namespace
}  // namespace penstock
