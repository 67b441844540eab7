// The cost of transpiling, counted in allocations and their bytes instead of seconds, is proportional to the
// size of the programs.
#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/training_program.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock {
namespace {

struct Cost {
  double allocations, bytes;
};

Cost CostOf(int params, int pservers) {
  const test::TrainingProgram program =
      test::MakeTrainingProgram(std::vector<Shape>(static_cast<std::size_t>(params), Shape{8, 8}));
  plan::TranspileConfig config;
  config.trainers = 2;
  for (int i = 0; i < pservers; ++i) config.pservers.push_back(StrCat("10.0.0.", i + 1, ":6174"));
  const test::Allocations before = test::AllocationsSoFar();
  const Result<RoleSet> roles = Transpile(AllOps(), program.main, program.startup, config);
  EXPECT_TRUE(roles.ok()) << roles.status().ToString();
  const check::CheckReport report = CheckRoleSet(AllOps(), *roles, program.main, program.startup);
  EXPECT_EQ(report.errors(), 0) << report.ToString();
  const test::Allocations after = test::AllocationsSoFar();
  return {static_cast<double>(after.count - before.count), static_cast<double>(after.bytes - before.bytes)};
}

TEST(TranspileCost, IsLinearInTheParameters) {
  CostOf(8, 2);  // warm-up of objects that a process makes once
  const Cost small = CostOf(250, 4);
  const Cost large = CostOf(1000, 4);
  EXPECT_LT(large.allocations, 4.4 * small.allocations);
  EXPECT_LT(large.bytes, 4.8 * small.bytes);  // arrays grow by doubling
}

// The cost of a pserver's programs is proportional to its contents; a further pserver only adds its fixed
// cost.
TEST(TranspileCost, GrowsLittleWithThePservers) {
  CostOf(8, 2);
  const double few = CostOf(1000, 4).allocations;
  const double many = CostOf(1000, 32).allocations;
  EXPECT_LT(many, 1.1 * few);
}

}  // namespace
}  // namespace penstock
