#include "framework/autodiff/recompute.h"

#include <gtest/gtest.h>

#include "framework/autodiff/backward.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "tests/unit/autodiff/test_ops.h"

namespace penstock {
namespace {

// Ops like f that are not reproducible, and one whose name is exempt.
const OpRegistry& RecomputeOps() {
  static const OpRegistry* const made = [] {
    auto* ops = new OpRegistry;
    test::AddForwardOps(*ops);
    ops->Add("draw")
        .Input("X", "", Floats())
        .Output("Out", "", SameTypeAs("X"))
        .Affects({Effect::kRandom})
        .InferShape(SameShape("X", "Out"))
        .Grad({.reads = {"X"}, .yields = {"X"}, .copies_attrs = false});
    ops->Add("batch_norm")
        .Input("X", "", Floats())
        .Input("Mean", "", Floats())
        .Output("Y", "", SameTypeAs("X"))
        .Output("MeanOut", "", SameTypeAs("X"))
        .Attr("is_test", false, "")
        .InferShape([](InferContext& c) {
          PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Mean", "MeanOut"));
          return c.ShareAll("X", "Y");
        })
        .Grad({.reads = {"X"}, .yields = {"X"}});
    return ops;
  }();
  return *made;
}

Program ParsedText(const std::string& body) {
  Result<Program> program = ParseText("program\nblock 0 {\n" + body + "}\n", "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

// The gradient ops that read X, one for each line "name@GRAD reads name".
std::vector<Op> GradsReading(const std::vector<std::string>& names) {
  std::vector<Op> grads;
  for (const std::string& name : names) {
    grads.push_back(Op("f_grad").AddInput("X", {name}).AddOutput("X@GRAD", {name + "@GRAD"}));
  }
  return grads;
}

std::string PrintedOps(const std::vector<Op>& ops) {
  std::string text;
  for (const Op& op : ops) text += PrintOp(op) + "\n";
  return text;
}

std::string AfterRecompute(const std::string& body, const std::vector<std::string>& checkpoints,
                           const std::vector<std::string>& read) {
  auto made = RecomputeBetween(RecomputeOps(), ParsedText(body), checkpoints, GradsReading(read));
  return made.ok() ? PrintedOps(made->grads) : made.status().ToString();
}

const char kChain[] = R"(
  data x : f32[2]
  a : f32[2] = f(X=x)
  b : f32[2] = f(X=a)
  c : f32[2] = f(X=b)
  d : f32[2] = f(X=c)
  e : f32[2] = f(X=d)
)";

TEST(RecomputeBetween, RunsForwardOpsJustBeforeTheirGradient) {
  EXPECT_EQ(AfterRecompute(kChain, {"c"}, {"e", "b", "a", "x"}),
            "(X@GRAD=e@GRAD) = f_grad(X=e)\n"
            "a.subprog_0 = f(X=x) @backward\n"
            "b.subprog_0 = f(X=a.subprog_0) @backward\n"
            "(X@GRAD=b@GRAD) = f_grad(X=b.subprog_0)\n"
            "(X@GRAD=a@GRAD) = f_grad(X=a.subprog_0)\n"
            "(X@GRAD=x@GRAD) = f_grad(X=x)\n");
}

TEST(RecomputeBetween, SegmentsAreCountedFromTheLast) {
  EXPECT_EQ(AfterRecompute(kChain, {"d", "b"}, {"d", "c", "b", "a"}),
            "(X@GRAD=d@GRAD) = f_grad(X=d)\n"
            "c.subprog_0 = f(X=b) @backward\n"
            "(X@GRAD=c@GRAD) = f_grad(X=c.subprog_0)\n"
            "(X@GRAD=b@GRAD) = f_grad(X=b)\n"
            "a.subprog_1 = f(X=x) @backward\n"
            "(X@GRAD=a@GRAD) = f_grad(X=a.subprog_1)\n");
}

TEST(RecomputeBetween, KeepsValuesReadByOtherSegments) {
  const std::string body = std::string(kChain) + "  far : f32[2] = times(X=e, Y=a)\n";
  EXPECT_EQ(AfterRecompute(body, {"b", "d"}, {"c", "a"}),
            "c.subprog_0 = f(X=b) @backward\n"
            "(X@GRAD=c@GRAD) = f_grad(X=c.subprog_0)\n"
            "(X@GRAD=a@GRAD) = f_grad(X=a)\n");
}

TEST(RecomputeBetween, KeepsRandomAndOverwrittenValues) {
  EXPECT_EQ(AfterRecompute(R"(
  data x : f32[2]
  a : f32[2] = draw(X=x)
  b : f32[2] = f(X=a)
  x = f(X=x)
  c : f32[2] = f(X=x)
  d : f32[2] = f(X=c)
)",
                           {"d"}, {"c", "b", "a"}),
            "c.subprog_0 = f(X=x) @backward\n"
            "(X@GRAD=c@GRAD) = f_grad(X=c.subprog_0)\n"
            "b.subprog_0 = f(X=a) @backward\n"
            "(X@GRAD=b@GRAD) = f_grad(X=b.subprog_0)\n"
            "(X@GRAD=a@GRAD) = f_grad(X=a)\n");
  EXPECT_EQ(AfterRecompute(R"(
  data x : f32[2]
  a : f32[2] = f(X=x)
  x = f(X=x)
  b : f32[2] = f(X=a)
)",
                           {"b"}, {"a"}),
            "(X@GRAD=a@GRAD) = f_grad(X=a)\n");
}

TEST(RecomputeBetween, StatisticsOfBatchNormAreUpdatedOnce) {
  const std::string body = R"(
  data x : f32[2]
  persist m : f32[2]
  (Y=a : f32[2], MeanOut=m) = batch_norm(X=x, Mean=m)
  b : f32[2] = f(X=a)
)";
  EXPECT_EQ(AfterRecompute(body, {"b"}, {"a"}),
            "(Y=a.subprog_0, MeanOut=m.subprog_0) = batch_norm(X=x, Mean=m) @backward\n"
            "(X@GRAD=a@GRAD) = f_grad(X=a.subprog_0)\n");
}

TEST(RecomputeBetween, RecomputedVariablesHaveNewNames) {
  const std::string body = std::string(kChain) + "  a.subprog_0 : f32[2] = f(X=e)\n";
  EXPECT_EQ(AfterRecompute(body, {"b"}, {"a"}),
            "a.subprog_0_ = f(X=x) @backward\n"
            "(X@GRAD=a@GRAD) = f_grad(X=a.subprog_0_)\n");
}

TEST(RecomputeBetween, ACheckpointMustBeDeclared) {
  EXPECT_EQ(AfterRecompute(kChain, {"z"}, {"a"}),
            "backward: checkpoint z is no variable of block 0   [E-backward-checkpoint]");
  // A fed variable does not end a segment.
  EXPECT_EQ(AfterRecompute(kChain, {"x"}, {"a"}), "(X@GRAD=a@GRAD) = f_grad(X=a)\n");
}

TEST(AppendBackward, DeclaresRecomputedVariablesLikeTheOriginals) {
  Program program = ParsedText(R"(
  data x : f32[?, 4] stop_gradient
  param w : f32[?, 4]
  h : f32[?, 4] = f(X=x)
  a : f32[?, 4] = times(X=h, Y=w)
  loss : f32[1] = mean(X=a)
)");
  UniqueNames names;
  BackwardOptions options{.loss = "loss"};
  options.checkpoints = {"a"};
  const auto made = AppendBackward(test::TestOps(), program, names, options);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_EQ(made->params_grads.size(), 1u);
  const Var* copy = program.main().FindVar("h.subprog_0");
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->shape(), Shape({-1, 4}));
  EXPECT_FALSE(copy->persistable);
}

}  // namespace
}  // namespace penstock
