#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "tests/support/toy_ops.h"

namespace penstock {
namespace {

using test::ToyOps;
using test::ToyProgram;
using test::TwoAdds;
using test::TwoFeeds;
using test::Values;

Status RunStatus(const Program& program, const std::vector<exec::Feed>& feeds,
                 const std::vector<std::string>& fetches) {
  exec::Executor executor(ToyOps());
  Scope scope;
  auto result = executor.Run(program, scope, feeds, fetches);
  return result.ok() ? OkStatus() : std::move(result).status();
}

TEST(ExecutorErrors, NameTheRuleTheOpTheFactsAndTheUsersLine) {
  ToyProgram p = TwoAdds();
  std::vector<exec::Feed> feeds = TwoFeeds(2, 1, 1);
  feeds[1] = TwoFeeds(3, 1, 1)[1];
  p.program.MutableBlock(0).Remove(p.program.main().ops()[0].id);
  p.Temporary("z", {-1, 2});
  p.Add("toy_add", {{"X", "x"}, {"Y", "y"}}, {{"Out", "z"}}, 0, {}, "train.py:7 in mlp");
  p.program.MutableBlock(0).Remove(p.program.main().ops()[0].id);
  const Status status = RunStatus(p.program, feeds, {"z"});
  EXPECT_EQ(status.ToString(),
            "toy_add: shape of X ([2, 2]) must equal shape of Y ([3, 2])   [E-shape-toy_add]\n"
            "  op 0 of block 0:  z = toy_add(X=x, Y=y)\n"
            "    X = x : f32[2, 2]\n"
            "    Y = y : f32[3, 2]\n"
            "  written at train.py:7 in mlp");
}

TEST(ExecutorErrors, KernelErrorsNameTheOp) {
  ToyProgram p;
  p.Data("x", {-1});
  p.Temporary("out", {-1});
  p.Add("toy_fail", {{"X", "x"}}, {{"Out", "out"}}, 0, {}, "train.py:3");
  const Status status = RunStatus(p.program, {{"x", Values({1})}}, {});
  EXPECT_EQ(status.id(), "E-toy-fail");
  ASSERT_EQ(status.details().size(), 3u) << status.ToString();
  EXPECT_EQ(status.details()[1], "  X = x : f32[1]");
  EXPECT_EQ(status.details()[2], "written at train.py:3");
}

// Only what is declared float16 is converted for an op that computes in float32.
TEST(ExecutorErrors, Float16FeedsOfOtherDeclaredTypesAreReported) {
  const ToyProgram p = TwoAdds();
  std::vector<exec::Feed> feeds = TwoFeeds(2, 1, 1);
  feeds[1].tensor = Tensor(DType::kFp16, {2, 2});
  const Status status = RunStatus(p.program, feeds, {"out"});
  EXPECT_EQ(status.id(), "E-feed-dtype") << status.ToString();
  EXPECT_EQ(status.message(), "feed: y is f16; it is declared f32");
}

TEST(ExecutorErrors, FeedAndFetchErrors) {
  ToyProgram p = TwoAdds();
  Var checked = *p.program.main().FindVar("y");
  checked.need_check_feed = true;
  p.program.MutableBlock(0).SetVar(std::move(checked));
  std::vector<exec::Feed> feeds = TwoFeeds(1, 1, 1);
  EXPECT_EQ(RunStatus(p.program, {feeds[0]}, {}).id(), "E-feed-missing");
  EXPECT_EQ(RunStatus(p.program, {feeds[0], feeds[1], feeds[0]}, {}).id(), "E-feed-twice");
  EXPECT_EQ(RunStatus(p.program, {feeds[0], feeds[1], {"q", feeds[0].tensor}}, {}).id(), "E-feed-unknown");
  EXPECT_EQ(RunStatus(p.program, {feeds[0], {"y", Tensor()}}, {}).id(), "E-feed-empty");
  const Status shape = RunStatus(p.program, {feeds[0], {"y", Values({1, 2, 3}, {1, 3})}}, {});
  EXPECT_EQ(shape.ToString(), "feed: y has shape [1, 3]; it is declared [?, 2]   [E-feed-shape]");
  const Status dtype = RunStatus(p.program, {feeds[0], {"y", Tensor(DType::kFp64, {1, 2})}}, {});
  EXPECT_EQ(dtype.ToString(), "feed: y is f64; it is declared f32   [E-feed-dtype]");
  EXPECT_EQ(RunStatus(p.program, feeds, {"ouut"}).ToString(),
            "fetch: ouut is not a variable of the program   [E-fetch-unknown]\n"
            "  note: variables with a similar name: out");
}

// As in Fluid, the feed determines the type of a variable without need_check_feed.
TEST(ExecutorErrors, FeedTypeErrorsNameTheFeedAndTheOp) {
  const ToyProgram p = TwoAdds();
  const std::vector<exec::Feed> feeds = {{"x", Tensor(DType::kFp64, {1, 2})}, {"y", Values({1, 2}, {1, 2})}};
  const Status status = RunStatus(p.program, feeds, {});
  EXPECT_EQ(status.message(), "feed: x is f64; it is declared f32");
  EXPECT_EQ(status.id(), "E-feed-dtype");
  ASSERT_EQ(status.details().size(), 1U);
  EXPECT_EQ(status.details()[0].substr(0, 14), "note: toy_add:");
}

TEST(ExecutorErrors, FeedsWithTheDeclaredLoDLevelAreAccepted) {
  ToyProgram p = TwoAdds();
  Var checked = *p.program.main().FindVar("y");
  checked.need_check_feed = true;
  checked.type->shape = Shape{1, 2};
  p.program.MutableBlock(0).SetVar(std::move(checked));
  Tensor y = Values({1, 2, 3, 4}, {2, 2});
  y.set_lod({{0, 2}});
  EXPECT_EQ(RunStatus(p.program, {{"x", Values({1, 2, 3, 4}, {2, 2})}, {"y", y}}, {}).ToString(), "ok");
  y.set_lod({{0, 1, 2}});
  EXPECT_EQ(RunStatus(p.program, {{"x", Values({1, 2, 3, 4}, {2, 2})}, {"y", y}}, {}).id(), "E-feed-shape");
}

TEST(ExecutorErrors, FeedShapesAreCheckedOnlyIfRequested) {
  const ToyProgram p = TwoAdds();
  const std::vector<exec::Feed> feeds = {{"x", Values({1, 2, 3}, {1, 3})}, {"y", Values({4, 5, 6}, {1, 3})}};
  exec::Executor executor(ToyOps());
  Scope scope;
  const std::vector<std::string> fetches = {"out"};
  const auto out = executor.Run(p.program, scope, feeds, fetches);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->front().If<Tensor>()->shape(), (Shape{1, 3}));
  EXPECT_EQ(out->front().If<Tensor>()->Data<float>()[2], 12.0F);
}

TEST(ExecutorErrors, InvalidProgramsAreReported) {
  ToyProgram unknown = TwoAdds();
  unknown.Add("no_such_op", {{"X", "x"}}, {{"Out", "out"}});
  EXPECT_EQ(RunStatus(unknown.program, TwoFeeds(1, 1, 1), {}).id(), "E-op-unknown");
  ToyProgram undeclared = TwoAdds();
  undeclared.Add("toy_add", {{"X", "x"}, {"Y", "y"}}, {{"Out", "nobody"}});
  EXPECT_EQ(RunStatus(undeclared.program, TwoFeeds(1, 1, 1), {}).id(), "E-var-undeclared");
  ToyProgram no_startup;
  no_startup.Persistable("w", {2});
  no_startup.Temporary("out", {2});
  no_startup.Add("toy_add", {{"X", "w"}, {"Y", "w"}}, {{"Out", "out"}});
  const Status status = RunStatus(no_startup.program, {}, {"out"});
  EXPECT_EQ(status.id(), "E-run-uninitialized");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  ToyProgram no_kernel;
  no_kernel.Data("x", {2}, DType::kFp64);
  no_kernel.program.MutableBlock(0).SetVar(TensorVar("out", DType::kFp64, {2}));
  no_kernel.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "out"}});
  EXPECT_EQ(RunStatus(no_kernel.program, {{"x", Tensor(DType::kFp64, {2})}}, {}).id(), "E-kernel-missing");
}

}  // namespace
}  // namespace penstock
