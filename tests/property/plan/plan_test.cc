// Properties of every plan, on random shapes, pservers and sizes.
#include "transpiler/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "operators/all_ops.h"
#include "tests/support/training_program.h"
#include "transpiler/pipeline/transpile.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/make_plan.h"

namespace penstock {
namespace {

struct Job {
  test::TrainingProgram program;
  plan::TranspileConfig config;
};

// Draws by remainder, because standard distributions differ between libraries.
class Draw {
 public:
  explicit Draw(unsigned seed) : generator_(seed) {}
  int Between(int low, int high) {
    return low + static_cast<int>(generator_() % static_cast<unsigned>(high - low + 1));
  }

 private:
  std::mt19937 generator_;
};

Shape RandomShape(Draw& draw) {
  std::vector<Dim> dims(static_cast<std::size_t>(draw.Between(1, 4)));
  const int largest = dims.size() == 1 ? 100000 : dims.size() == 2 ? 600 : 30;
  for (Dim& dim : dims) dim = draw.Between(1, largest);
  return Shape(std::move(dims));
}

constexpr plan::Slicing kSlicings[] = {plan::Slicing::kFluid, plan::Slicing::kEven, plan::Slicing::kMxnet};
constexpr plan::Placement kPlacements[] = {plan::Placement::kRoundRobin, plan::Placement::kHashName,
                                           plan::Placement::kSizeBalanced};

Job RandomJob(unsigned seed) {
  Draw draw(seed);
  std::vector<Shape> shapes(static_cast<std::size_t>(draw.Between(1, 12)));
  for (Shape& shape : shapes) shape = RandomShape(draw);
  Job job{.program = test::MakeTrainingProgram(shapes), .config = {}};
  job.program.main.mutable_meta().random_seed = draw.Between(0, 1000);
  job.config.trainers = draw.Between(1, 5);
  job.config.slice_params = draw.Between(0, 4) > 0;
  job.config.min_block_size = draw.Between(1, 20000);
  job.config.allow_small_blocks = true;
  if (job.config.slice_params) job.config.slicing = kSlicings[draw.Between(0, 2)];
  if (job.config.slicing != plan::Slicing::kMxnet) job.config.placement = kPlacements[draw.Between(0, 2)];
  job.config.big_array_bound = draw.Between(1, 20000);
  if (draw.Between(0, 1) == 0) job.config.chunk_bytes = draw.Between(1, 20000);
  job.config.dialect = draw.Between(0, 1) == 0 ? plan::Dialect::kDefault : plan::Dialect::kFluid18;
  const int pservers = draw.Between(1, 7);
  for (int i = 0; i < pservers; ++i) job.config.pservers.push_back(StrCat("10.0.0.", i, ":6174"));
  return job;
}

plan::PlacementPlan PlanOf(const Job& job) {
  const Result<plan::Analysis> analysis = plan::Analyse(AllOps(), job.program.main, job.config.dialect);
  PENSTOCK_CHECK(analysis.ok(), analysis.status().ToString());
  const Result<plan::PlacementPlan> plan = plan::MakePlan(job.program.main, *analysis, job.config);
  PENSTOCK_CHECK(plan.ok(), plan.status().ToString());
  return *plan;
}

constexpr unsigned kSeeds = 300;

TEST(EveryPlan, TilesEachParameterOnceInWholeRows) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Job job = RandomJob(seed);
    const plan::PlacementPlan plan = PlanOf(job);
    ASSERT_TRUE(plan::ValidatePlan(plan, job.program.main).ok()) << "seed " << seed;
    for (const plan::ParamPlacement& param : plan.params) {
      std::vector<int> holders(static_cast<std::size_t>(param.shape[0]), 0);
      for (const plan::Slice& slice : param.slices) {
        for (std::int64_t row = slice.row_begin; row < slice.row_end; ++row)
          ++holders[static_cast<std::size_t>(row)];
      }
      EXPECT_EQ(std::count(holders.begin(), holders.end(), 1), param.shape[0]) << "seed " << seed;
      EXPECT_LE(param.slices.size(), plan.pservers.size());
    }
  }
}

TEST(EveryPlan, OnlyLastSlicesAreBelowTheMinimum) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Job job = RandomJob(seed);
    job.config.slicing = plan::Slicing::kFluid;
    for (const plan::ParamPlacement& param : PlanOf(job).params) {
      for (std::size_t i = 0; i + 1 < param.slices.size(); ++i) {
        EXPECT_GE(param.slices[i].rows() * param.shape.RowWidth(), job.config.min_block_size)
            << "seed " << seed;
      }
    }
  }
}

TEST(EveryPlan, ReadsBackFromItsText) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const plan::PlacementPlan plan = PlanOf(RandomJob(seed));
    const Result<plan::PlacementPlan> again = plan::ParsePlan(plan::PrintPlan(plan));
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(*again, plan) << "seed " << seed;
    EXPECT_EQ(plan::Fingerprint(*again), plan::Fingerprint(plan));
  }
}

TEST(EveryPlan, DoesNotDependOnTheRole) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Job job = RandomJob(seed);
    const plan::PlacementPlan plan = PlanOf(job);
    Job other = RandomJob(seed);
    other.config.trainer_ids = {other.config.trainers - 1};
    EXPECT_EQ(PlanOf(other), plan) << "seed " << seed;
  }
}

TEST(EveryPlan, CutsEvenlyOnRequest) {
  unsigned asked = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Job job = RandomJob(seed);
    if (job.config.slicing != plan::Slicing::kEven) continue;
    ++asked;
    for (const plan::ParamPlacement& param : PlanOf(job).params) {
      const std::int64_t most = param.slices.front().rows(), least = param.slices.back().rows();
      EXPECT_LE(most - least, 1) << "seed " << seed;
    }
  }
  EXPECT_GE(asked, kSeeds / 8);
}

TEST(EveryPlan, BalancesBytesOnRequest) {
  unsigned asked = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Job job = RandomJob(seed);
    if (job.config.placement != plan::Placement::kSizeBalanced) continue;
    ++asked;
    const plan::PlacementPlan plan = PlanOf(job);
    std::vector<std::int64_t> bytes(plan.pservers.size(), 0);
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < plan.pservers.size(); ++i) {
      for (const plan::SliceRef ref : plan.SlicesOn(static_cast<int>(i))) {
        bytes[i] += plan.param(ref).BytesOf(plan.slice(ref));
        largest = std::max(largest, plan.param(ref).BytesOf(plan.slice(ref)));
      }
    }
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    EXPECT_LE(*most - *least, largest) << "seed " << seed;
  }
  EXPECT_GE(asked, kSeeds / 8);
}

TEST(EveryPlan, AssignsSlicesRoundRobinOnRequest) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Job job = RandomJob(seed);
    if (job.config.slicing == plan::Slicing::kMxnet) continue;
    job.config.placement = plan::Placement::kRoundRobin;
    const plan::PlacementPlan plan = PlanOf(job);
    std::size_t least = plan.params.size() * plan.pservers.size(), most = 0;
    for (int i = 0; i < static_cast<int>(plan.pservers.size()); ++i) {
      least = std::min(least, plan.SlicesOn(i).size());
      most = std::max(most, plan.SlicesOn(i).size());
    }
    EXPECT_LE(most - least, 1U) << "seed " << seed;
  }
}

// Compat ignores further slices of a parameter on one pserver, like Fluid.
std::size_t UpdatedOn(const plan::PlacementPlan& plan, int pserver) {
  const std::vector<plan::SliceRef> slices = plan.SlicesOn(pserver);
  std::set<int> params;
  for (const plan::SliceRef ref : slices) params.insert(ref.param);
  return plan.dialect == plan::Dialect::kFluid18 ? params.size() : slices.size();
}

TEST(EveryPlan, CanBeTranspiledAndServedByAllItsPservers) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Job job = RandomJob(seed);
    const Result<RoleSet> roles = Transpile(AllOps(), job.program.main, job.program.startup, job.config);
    ASSERT_TRUE(roles.ok()) << "seed " << seed << ": " << roles.status().ToString();
    std::size_t blocks = 0, slices = 0;
    for (std::size_t i = 0; i < roles->pservers.size(); ++i) {
      const std::size_t held = UpdatedOn(roles->plan, static_cast<int>(i));
      slices += held;
      blocks += held == 0 ? 0 : static_cast<std::size_t>(roles->pservers[i].main.block_count() - 1);
    }
    EXPECT_EQ(blocks, slices) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock
