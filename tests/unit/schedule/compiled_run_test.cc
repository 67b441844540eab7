// Running in two phases: a compiled program is found again, reports whether it may wait, and asks its caller
// before each op.
#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "tests/support/toy_ops.h"

namespace penstock {
namespace {

using test::ToyOps;
using test::ToyProgram;
using test::TwoAdds;
using test::TwoFeeds;

TEST(CompiledRun, CacheKeyIsContentFeedsAndFetches) {
  exec::Executor executor(ToyOps());
  Scope scope;
  const ToyProgram p = TwoAdds();
  const std::vector<std::string> fetches = {"out"}, others = {"h"};
  const std::vector<exec::Feed> feeds = TwoFeeds(1, 1, 10);
  EXPECT_EQ(executor.FindCompiled(p.program, feeds, fetches), nullptr);
  const Result<exec::Executor::Compiled> compiled = executor.Compile(p.program, feeds, fetches);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  EXPECT_EQ(executor.FindCompiled(p.program, feeds, fetches), *compiled);
  EXPECT_EQ(executor.FindCompiled(p.program, feeds, others), nullptr);
  const Result<std::vector<Variable>> out = executor.Run(*compiled, scope, feeds);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].If<Tensor>()->Data<float>()[0], 12);
  ASSERT_TRUE(executor.Run(p.program, scope, feeds, fetches).ok());
  EXPECT_EQ(executor.stats().compiled_count, 1);
}

TEST(CompiledRun, OpsWithExternalEffectsMayBlock) {
  exec::Executor executor(ToyOps());
  ToyProgram p = TwoAdds();
  const std::vector<std::string> fetches = {"out"};
  const std::vector<exec::Feed> feeds = TwoFeeds(1, 1, 10);
  EXPECT_FALSE(exec::Executor::MayWait(**executor.Compile(p.program, feeds, fetches)));
  p.Add("toy_send", {{"X", "out"}}, {});
  EXPECT_TRUE(exec::Executor::MayWait(**executor.Compile(p.program, feeds, fetches)));
}

TEST(CompiledRun, ACallbackBeforeEachOpMayEndTheRun) {
  exec::Executor executor(ToyOps());
  Scope scope;
  const ToyProgram p = TwoAdds();
  const std::vector<std::string> fetches = {"out"};
  const std::vector<exec::Feed> feeds = TwoFeeds(1, 1, 10);
  const exec::Executor::Compiled compiled = *executor.Compile(p.program, feeds, fetches);
  int asked = 0;
  EXPECT_TRUE(executor.Run(compiled, scope, feeds, [&] { return ++asked < 0; }).ok());
  EXPECT_EQ(asked, 2);
  const auto out = executor.Run(compiled, scope, feeds, [&] { return ++asked == 4; });
  EXPECT_EQ(out.status().id(), "E-run-cancelled");
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(executor.Run(compiled, scope, feeds).ok());
}

}  // namespace
}  // namespace penstock
