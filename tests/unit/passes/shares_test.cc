#include "transpiler/passes/spell/shares.h"

#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/support/training_program.h"
#include "transpiler/pipeline/transpile.h"
#include "transpiler/plan/analyse.h"

namespace penstock {
namespace {

TEST(Shares, EachPserverUpdatesItsPlannedSlices) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}, {7}, {300, 300}, {12}});
  plan::TranspileConfig config;
  config.pservers = {"10.0.0.1:6174", "10.0.0.2:6174", "10.0.0.3:6174"};
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, config);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  const Result<plan::Analysis> analysis = plan::Analyse(AllOps(), program.main, plan::Dialect::kDefault);
  ASSERT_TRUE(analysis.ok()) << analysis.status().ToString();
  const passes::Shares shares(roles->plan, *analysis, program.startup);
  for (int p = 0; p < 3; ++p) {
    EXPECT_EQ(shares.SlicesOn(p), roles->plan.SlicesOn(p));
    EXPECT_EQ(shares.UpdatesOn(p).size(), shares.SlicesOn(p).size());
    for (const passes::ServerUpdate& update : shares.UpdatesOn(p)) {
      EXPECT_EQ(roles->plan.slice(update.at).pserver, p);
      EXPECT_EQ(update.placement->param, update.trained->param);
    }
  }
}

TEST(Shares, AParameterIsFoundByItsGradient) {
  const test::TrainingProgram program = test::MakeTrainingProgram({{100, 200}});
  plan::TranspileConfig config;
  config.pservers = {"10.0.0.1:6174"};
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, config);
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  const passes::Shares shares(roles->plan, plan::Analysis(), program.startup);
  ASSERT_NE(shares.OfGrad(roles->plan.params[0].grad), nullptr);
  EXPECT_EQ(shares.OfGrad(roles->plan.params[0].grad)->param, roles->plan.params[0].param);
  EXPECT_EQ(shares.OfGrad("nobody's"), nullptr);
}

}  // namespace
}  // namespace penstock
