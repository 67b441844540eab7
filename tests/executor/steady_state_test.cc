// After warm-up, a step allocates memory only for its results.
#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"
#include "tests/support/run_program.h"
#include "tests/support/toy_ops.h"

namespace penstock {
namespace {

std::int64_t AllocationsOfOneRun(exec::Executor& executor, const Program& program, Scope& scope,
                                 const std::vector<exec::Feed>& feeds,
                                 const std::vector<std::string>& fetches) {
  for (int i = 0; i < 3; ++i) {
    auto out = executor.Run(program, scope, feeds, fetches);
    PENSTOCK_CHECK(out.ok(), out.status().ToString());
  }
  const std::uint64_t before = test::AllocationsSoFar().count;
  auto out = executor.Run(program, scope, feeds, fetches);
  return static_cast<std::int64_t>(test::AllocationsSoFar().count - before);
}

TEST(SteadyState, AThousandSmallOpsAllocateNothing) {
  test::ToyProgram p;
  p.Data("x", {1, 8});
  p.Data("z", {1, 8});
  std::string last = "x";
  for (int i = 0; i < 1000; ++i) {
    const std::string next = StrCat("h", i);
    p.Temporary(next, {1, 8});
    p.Add("elementwise_add", {{"X", last}, {"Y", "z"}}, {{"Out", next}});
    last = next;
  }
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const std::vector<exec::Feed> feeds = {{"x", test::Ramp(DType::kFp32, {1, 8}, 0, 1)},
                                         {"z", test::Ramp(DType::kFp32, {1, 8}, 0, 1)}};
  EXPECT_EQ(AllocationsOfOneRun(executor, p.program, scope, feeds, {}), 0);
  const std::vector<std::string> fetches = {last};
  // The vector of results, and the shape of the one in it.
  EXPECT_LE(AllocationsOfOneRun(executor, p.program, scope, feeds, fetches), 4);
}

constexpr char kChain[] = R"(program
block 0 {
  data x : f32[?, 1024]
  param b : f32[1024]
  t : f32[?, 1024] = elementwise_add(X=x, Y=b)
  r : f32[?, 1024] = tanh(X=t)
  s : f32[?, 1024] = scale(X=r) {scale=2.0}
  u : f32[?, 1024] = elementwise_mul(X=s, Y=x)
  (X@GRAD=v : f32[?, 1024]) = tanh_grad(Out=r, Out@GRAD=u)
}
)";

TEST(SteadyState, ChainsByRowsAllocateNothing) {
  const Program program = ParseText(kChain, "test").value();
  for (const int threads : {1, 2}) {
    exec::Executor executor(AllOps(), {.threads = threads});
    Scope scope;
    test::SetTensor(scope, "b", test::Ramp(DType::kFp32, {1024}, 0, 1));
    for (const Dim rows : {Dim{512}, Dim{301}, Dim{1024}}) {
      const std::vector<exec::Feed> feeds = {{"x", test::Ramp(DType::kFp32, {rows, 1024}, 0, 1e-6)}};
      EXPECT_EQ(AllocationsOfOneRun(executor, program, scope, feeds, {}), 0) << rows << " rows";
    }
    // Shapes that come again find their plan and their memory.
    for (const Dim rows : {Dim{301}, Dim{512}}) {
      const std::vector<exec::Feed> feeds = {{"x", test::Ramp(DType::kFp32, {rows, 1024}, 0, 1e-6)}};
      EXPECT_EQ(AllocationsOfOneRun(executor, program, scope, feeds, {}), 0) << rows << " rows, again";
    }
  }
}

constexpr char kLoop[] = R"(program
block 0 {
  data x : f32[2, 3]
  data c : bool[1]
  var s : step_scopes
  i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  n : i64[1] = fill_constant() {shape=[1l], value=5.0, dtype=3}
  more : bool[1] = less_than(X=i, Y=n)
  y : f32[2, 3] = scale(X=x) {scale=2.0}
  (Out=[i, more, y], StepScopes=[]) = while(X=[x, n, i, y], Condition=more) {sub_block=^1}
  (Out=[y], Scope=[]) = conditional_block(Cond=[c], Input=[x]) {sub_block=^2, is_scalar_condition=true}
  z : f32[2, 3] = scale(X=y) {scale=10.0}
}
block 1 in 0 {
  h : f32[2, 3] = elementwise_add(X=y, Y=x)
  y = scale(X=h) {scale=0.5}
  i = increment(X=i) {step=1.0}
  more = less_than(X=i, Y=n)
}
block 2 in 0 {
  h : f32[2, 3] = scale(X=x) {scale=3.0}
  y = elementwise_add(X=h, Y=x)
}
)";

TEST(SteadyState, BlocksWithoutGradientsAllocateNothing) {
  const Program program = ParseText(kLoop, "test").value();
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  Tensor yes(DType::kBool, {1});
  *yes.Data<bool>() = true;
  const std::vector<exec::Feed> feeds = {{"x", test::Ramp(DType::kFp32, {2, 3}, 0, 1)}, {"c", yes}};
  EXPECT_EQ(AllocationsOfOneRun(executor, program, scope, feeds, {}), 0);
}

// oneDNN allocates a map of arguments for each primitive that it executes; this program has four.
constexpr std::int64_t kInsideOnednnMax = 4 * 8;

TEST(SteadyState, ATrainingStepAllocatesNothing) {
  const std::string folder = test::CorpusOrSelection() + "/open/numeric/softmax_reg/";
  const auto feeds = test::FeedsOf(test::ArraysOf(folder + "feeds.npz"), "s0:", {"img", "label"});
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    exec::Executor executor(AllOps(), {.threads = 1});
    Scope scope;
    auto started = executor.Run(test::ProgramOf(StrCat(folder, optimizer, ".startup.pb")), scope, {}, {});
    ASSERT_TRUE(started.ok()) << started.status().ToString();
    const Program main = test::ProgramOf(StrCat(folder, optimizer, ".main.pb"));
    EXPECT_LE(AllocationsOfOneRun(executor, main, scope, feeds, {}), kInsideOnednnMax) << optimizer;
  }
}

}  // namespace
}  // namespace penstock
