#include "framework/autodiff/backward.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "tests/unit/autodiff/test_ops.h"

namespace penstock {
namespace {

Program Parsed(const std::string& body) {
  Result<Program> program = ParseText("program\nblock 0 {\n" + body + "}\n", "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

// The ops that append_backward added, one per line; the role @backward is omitted.
std::string Added(const Program& program, std::size_t from) {
  std::string text;
  const std::vector<OpEntry>& ops = program.main().ops();
  for (std::size_t i = from; i < ops.size(); ++i) {
    Op op = *ops[i].op;
    op.RemoveAttr(kDeviceAttr);
    text += PrintOp(op) + "\n";
  }
  return text;
}

struct Made {
  Program program;
  Status status;
  std::vector<ParamGrad> pairs;
  std::string ops;
};

Made Differentiate(const std::string& body, const BackwardOptions& options) {
  Made made{.program = Parsed(body)};
  const std::size_t before = made.program.main().ops().size();
  UniqueNames names;
  Result<BackwardResult> result = AppendBackward(test::TestOps(), made.program, names, options);
  if (result.ok()) {
    made.pairs = result->params_grads;
  } else {
    made.status = result.status();
  }
  made.ops = Added(made.program, before);
  return made;
}

TEST(BackwardTest, GradientOpsAreReversedAndNameTheirParameter) {
  const Made made = Differentiate(R"(
  data x : f32[?, 4] stop_gradient
  param w : f32[?, 4]
  h : f32[?, 4] = times(X=x, Y=w)
  loss : f32[1] = mean(X=h)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.ops,
            R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=h@GRAD) = mean_grad(X=h, Out@GRAD=loss@GRAD) @backward
(X@GRAD=[], Y@GRAD=w@GRAD) = times_grad(X=x, Y=w, Out@GRAD=h@GRAD) @backward(w, w@GRAD)
)");
  EXPECT_EQ(made.pairs, (std::vector<ParamGrad>{{"w", "w@GRAD"}}));
  const Var* grad = made.program.main().FindVar("w@GRAD");
  ASSERT_NE(grad, nullptr);
  EXPECT_EQ(grad->shape(), Shape({-1, 4}));
  EXPECT_FALSE(grad->persistable);
  EXPECT_EQ(made.program.main().ops()[1].op->role(), OpRole::kForward | OpRole::kLoss);
}

TEST(BackwardTest, GradientPartsAreSummedBeforeTheFirstReader) {
  const Made made = Differentiate(R"(
  param w : f32[4]
  a : f32[4] = f(X=w)
  b : f32[4] = f(X=a)
  c : f32[4] = times(X=a, Y=b)
  loss : f32[1] = mean(X=c)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.ops,
            R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=c@GRAD) = mean_grad(X=c, Out@GRAD=loss@GRAD) @backward
(X@GRAD=a@GRAD@RENAME@block0@0, Y@GRAD=b@GRAD) = times_grad(X=a, Y=b, Out@GRAD=c@GRAD) @backward
(X@GRAD=a@GRAD@RENAME@block0@1) = f_grad(X=a, Out@GRAD=b@GRAD) @backward
a@GRAD = sum(X=[a@GRAD@RENAME@block0@0, a@GRAD@RENAME@block0@1]) {use_mkldnn=false} @backward
(X@GRAD=w@GRAD) = f_grad(X=w, Out@GRAD=a@GRAD) @backward(w, w@GRAD)
)");
}

TEST(BackwardTest, SharedParameterGradientsAreSummedAtTheEnd) {
  const Made made = Differentiate(R"(
  param w : f32[4]
  b : f32[4] = times(X=w, Y=w)
  c : f32[4] = times(X=b, Y=w)
  loss : f32[1] = mean(X=c)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(
      made.ops,
      test::Unfolded(
          R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=c@GRAD) = mean_grad(X=c, Out@GRAD=loss@GRAD) @backward
(X@GRAD=b@GRAD, Y@GRAD=w@GRAD@RENAME@block0@0) = times_grad(X=b, Y=w, Out@GRAD=c@GRAD) @backward
(X@GRAD=w@GRAD@RENAME@block0@1, Y@GRAD=w@GRAD@RENAME@block0@2) = times_grad(X=w, Y=w, Out@GRAD=b@GRAD)
    @backward
w@GRAD = sum(X=[w@GRAD@RENAME@block0@0, w@GRAD@RENAME@block0@1, w@GRAD@RENAME@block0@2]) {use_mkldnn=false}
    @backward(w, w@GRAD)
)"));
}

TEST(BackwardTest, AnOpUsingAVariableTwiceProducesTwoParts) {
  const Made made = Differentiate(R"(
  param w : f32[4]
  b : f32[4] = times(X=w, Y=w)
  loss : f32[1] = mean(X=b)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_NE(made.ops.find("(X@GRAD=w@GRAD@RENAME@block0@0, Y@GRAD=w@GRAD@RENAME@block0@1) = times_grad"),
            std::string::npos)
      << made.ops;
}

TEST(BackwardTest, OpsThatDoNotAffectTheLossGetNoGradient) {
  const Made made = Differentiate(R"(
  param w : f32[4]
  param other : f32[4]
  a : f32[4] = f(X=w)
  b : f32[4] = sort(X=other)
  loss : f32[1] = mean(X=a)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.pairs, (std::vector<ParamGrad>{{"w", "w@GRAD"}}));
  EXPECT_EQ(made.program.main().FindVar("other@GRAD"), nullptr);
}

TEST(BackwardTest, StopGradientBlocksGradients) {
  const std::string body = R"(
  param w : f32[4]
  param v : f32[4]
  a : f32[4] = f(X=w)
  b : f32[4] = times(X=a, Y=v)
  loss : f32[1] = mean(X=b)
)";
  const std::string expected =
      R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=b@GRAD) = mean_grad(X=b, Out@GRAD=loss@GRAD) @backward
(X@GRAD=[], Y@GRAD=v@GRAD) = times_grad(X=a, Y=v, Out@GRAD=b@GRAD) @backward(v, v@GRAD)
)";
  const Made by_set = Differentiate(body, {.loss = "loss", .no_grad = {"a"}});
  ASSERT_TRUE(by_set.status.ok()) << by_set.status.ToString();
  EXPECT_EQ(by_set.ops, expected);
  std::string marked = body;
  marked.insert(marked.find("  a :"), "  var a : f32[4] stop_gradient\n");
  marked.erase(marked.find("a : f32[4] = f") + 1, 9);
  const Made by_flag = Differentiate(marked, {.loss = "loss"});
  ASSERT_TRUE(by_flag.status.ok()) << by_flag.status.ToString();
  EXPECT_EQ(by_flag.ops, expected);
}

TEST(BackwardTest, OmittedInputGradientsKeepPositions) {
  const Made made = Differentiate(R"(
  data x : f32[4] stop_gradient
  param w : f32[4]
  a : f32[4] = cat(X=[x, w])
  loss : f32[1] = mean(X=a)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_NE(made.ops.find("(X@GRAD=[\"@EMPTY@\", w@GRAD]) = cat_grad"), std::string::npos) << made.ops;
}

TEST(BackwardTest, UnwrittenGradientsAreZeros) {
  const Made made = Differentiate(R"(
  param w : f32[4]
  (Low=a : f32[4], High=b : f32[4]) = halves(X=w)
  loss : f32[1] = mean(X=a)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.ops,
            R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=a@GRAD) = mean_grad(X=a, Out@GRAD=loss@GRAD) @backward
b@GRAD = fill_zeros_like(X=b) @backward
(X@GRAD=w@GRAD) = halves_grad(X=w, Low@GRAD=a@GRAD, High@GRAD=b@GRAD) @backward(w, w@GRAD)
)");
}

// lstm's Cell is such an output: Fluid's gradient op has no argument for it, and needs none if no op reads
// it.
TEST(BackwardTest, OptionalOutputGradientsNeedNoZeros) {
  const char* const kForward = R"(
  param w : f32[4]
  (Low=a : f32[4], High=b : f32[4]) = extra(X=w)
)";
  const Made low = Differentiate(StrCat(kForward, "  loss : f32[1] = mean(X=a)\n"), {.loss = "loss"});
  ASSERT_TRUE(low.status.ok()) << low.status.ToString();
  EXPECT_EQ(low.ops,
            R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=a@GRAD) = mean_grad(X=a, Out@GRAD=loss@GRAD) @backward
(X@GRAD=w@GRAD) = extra_grad(X=w, Low@GRAD=a@GRAD) @backward(w, w@GRAD)
)");
  const Made high = Differentiate(StrCat(kForward, "  loss : f32[1] = mean(X=b)\n"), {.loss = "loss"});
  ASSERT_TRUE(high.status.ok()) << high.status.ToString();
  EXPECT_EQ(high.ops,
            R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=b@GRAD) = mean_grad(X=b, Out@GRAD=loss@GRAD) @backward
a@GRAD = fill_zeros_like(X=a) @backward
(X@GRAD=w@GRAD) = extra_grad(X=w, Low@GRAD=a@GRAD, High@GRAD=b@GRAD) @backward(w, w@GRAD)
)");
}

// Fluid sums an input that no op writes.
TEST(BackwardTest, AbsentGradientsAreNotSummed) {
  const Made made = Differentiate(R"(
  param w : f32[4]
  a : f32[4] = f(X=w)
  r : f32[4] = round(X=a)
  b : f32[4] = times(X=r, Y=w)
  loss : f32[1] = mean(X=b)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.ops,
            R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=b@GRAD) = mean_grad(X=b, Out@GRAD=loss@GRAD) @backward
(X@GRAD=r@GRAD, Y@GRAD=w@GRAD) = times_grad(X=r, Y=w, Out@GRAD=b@GRAD) @backward(w, w@GRAD)
)");
}

TEST(BackwardTest, CustomGradientMakersMayReturnSeveralOps) {
  const Made made = Differentiate(R"(
  data x : f32[4] stop_gradient
  param w : f32[4]
  param v : f32[4]
  a : f32[4] = sum(X=[w, x, v])
  loss : f32[1] = mean(X=a)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.ops,
            R"(loss@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=a@GRAD) = mean_grad(X=a, Out@GRAD=loss@GRAD) @backward
w@GRAD = scale(X=a@GRAD) {scale=1.0} @backward(w, w@GRAD)
v@GRAD = scale(X=a@GRAD) {scale=1.0} @backward(v, v@GRAD)
)");
}

TEST(BackwardTest, AnOpWithoutGradientStopsPropagation) {
  const Made made = Differentiate(R"(
  param w : f32[4]
  param v : f32[4]
  a : f32[4] = round(X=w)
  b : f32[4] = times(X=a, Y=v)
  loss : f32[1] = mean(X=b)
)",
                                  {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.pairs, (std::vector<ParamGrad>{{"v", "v@GRAD"}}));
}

TEST(BackwardTest, ASecondLossUsesFreshGradientNames) {
  Made made = Differentiate(R"(
  param w : f32[4]
  a : f32[4] = f(X=w)
  loss : f32[1] = mean(X=a)
  b : f32[4] = f(X=w)
  other : f32[1] = mean(X=b)
)",
                            {.loss = "loss"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  UniqueNames names;
  const std::size_t before = made.program.main().ops().size();
  const Result<BackwardResult> second =
      AppendBackward(test::TestOps(), made.program, names, {.loss = "other"});
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(Added(made.program, before),
            R"(other@GRAD = fill_constant() {shape=[1l], value=1.0, dtype=5, force_cpu=false} @backward|loss
(X@GRAD=b@GRAD) = mean_grad(X=b, Out@GRAD=other@GRAD) @backward
(X@GRAD=w@GRAD_0) = f_grad(X=w, Out@GRAD=b@GRAD) @backward(w, w@GRAD_0)
)");
}

TEST(BackwardTest, ErrorsDoNotModifyTheProgram) {
  const std::string body = R"(
  param w : f32[4]
  param u : f32[4]
  a : f32[4] = sort(X=w) at "train.py:7 in net"
  loss : f32[1] = mean(X=a)
)";
  const Made no_grad = Differentiate(body, {.loss = "loss"});
  EXPECT_EQ(no_grad.status.id(), "E-backward-no-grad");
  EXPECT_EQ(no_grad.status.message(), "backward: sort has no gradient, and its input w needs one");
  EXPECT_NE(no_grad.status.ToString().find("train.py:7 in net"), std::string::npos)
      << no_grad.status.ToString();
  EXPECT_EQ(no_grad.ops, "");
  EXPECT_EQ(no_grad.program.main().ops()[1].op->role(), OpRole::kForward);

  EXPECT_EQ(Differentiate(body, {.loss = "nothing"}).status.message(),
            "backward: the loss nothing is no variable of block 0");
  EXPECT_EQ(Differentiate(body, {.loss = "a"}).status.message(),
            "backward: the shape of the loss a is [4]; it must be [1]");
  const Made unreached = Differentiate(body, {.loss = "loss", .parameters = {"u"}, .no_grad = {"w"}});
  EXPECT_TRUE(unreached.status.ok()) << unreached.status.ToString();
  EXPECT_TRUE(unreached.pairs.empty());
}

}  // namespace
}  // namespace penstock
