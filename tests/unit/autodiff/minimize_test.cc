#include "framework/autodiff/minimize.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "tests/unit/autodiff/test_ops.h"

namespace penstock {
namespace {

constexpr char kNet[] = R"(program
block 0 {
  data x : f32[?, 4] stop_gradient
  param w2 : f32[4]
  param w1 : f32[4] learning_rate=2.0
  param w0 : f32[4] trainable=false
  a : f32[?, 4] = times(X=x, Y=w2)
  b : f32[?, 4] = times(X=a, Y=w1)
  c : f32[?, 4] = times(X=b, Y=w0)
  loss : f32[1] = mean(X=c)
}
)";

struct Minimized {
  Program main, startup;
  UniqueNames names;
  NameScopes scopes;
  Status status;
  MinimizeResult result;

  void Run(const OptimizerSpec& spec) {
    Result<MinimizeResult> made =
        Minimize(test::TestOps(), main, startup, {.names = names, .scopes = scopes}, spec, {.loss = "loss"});
    if (made.ok()) {
      result = *std::move(made);
    } else {
      status = made.status();
    }
  }
  // The ops with the optimize bit, each with its name scope.
  std::string Optimize() const {
    std::string text;
    for (const OpEntry& entry : main.main().ops()) {
      if (!Has(entry.op->role(), OpRole::kOptimize)) continue;
      Op op = *entry.op;
      text += op.GetOr<std::string>(kNameScopeAttr, "") + "  ";
      op.RemoveAttr(kNameScopeAttr).RemoveAttr(kDeviceAttr);
      text += PrintOp(op) + "\n";
    }
    return text;
  }
  std::string Startup() const {
    std::string text;
    for (const OpEntry& entry : startup.main().ops()) {
      text +=
          StrCat(entry.op->OutputName("Out"), " ", Shape(*entry.op->Get<std::vector<std::int64_t>>("shape")),
                 " = ", *entry.op->Get<float>("value"), " ", *entry.op->Get<std::string>(kDeviceAttr), "\n");
    }
    return text;
  }
};

Minimized Net() {
  Result<Program> program = ParseText(kNet, "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  Minimized made;
  made.main = *std::move(program);
  return made;
}

TEST(MinimizeTest, UpdatesAreSortedAndSkipFrozenParameters) {
  Minimized made = Net();
  made.Run({.op_type = "sgd", .learning_rate = 0.5f});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(
      made.Optimize(),
      test::Unfolded(R"(/optimizer/scale_with_param_lr/  tmp_0 = scale(X=learning_rate_0, ScaleTensor=[])
    {scale=2.0, bias=0.0} @optimize|lr_sched
/optimizer/  (ParamOut=w1) = sgd(Param=w1, Grad=w1@GRAD, LearningRate=tmp_0) @optimize(w1, w1@GRAD)
/optimizer_1/  (ParamOut=w2) = sgd(Param=w2, Grad=w2@GRAD, LearningRate=learning_rate_0)
    @optimize(w2, w2@GRAD)
)"));
  EXPECT_EQ(made.Startup(), "learning_rate_0 [1] = 0.5 \n");
  EXPECT_EQ(made.result.params_grads, (std::vector<ParamGrad>{{"w2", "w2@GRAD"}, {"w1", "w1@GRAD"}}));
  EXPECT_EQ(made.result.learning_rate, "learning_rate_0");
  EXPECT_EQ(made.result.optimizer_ops.size(), 3u);
  EXPECT_EQ(made.main.main().FindVar("w0@GRAD"), nullptr);
  EXPECT_TRUE(made.main.main().FindVar("learning_rate_0")->persistable);
}

TEST(MinimizeTest, ATableShardedByIdIsUpdatedFirst) {
  Minimized made = Net();
  const OpId reads_w2 = made.main.main().ops().front().id;
  Op lookup = *made.main.main().FindOp(reads_w2);
  made.main.MutableBlock(0).Replace(reads_w2, lookup.Set("is_distributed", true));
  made.Run({.op_type = "sgd", .learning_rate = 0.5f});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  const std::string updates = made.Optimize();
  ASSERT_NE(updates.find("Param=w1"), std::string::npos) << updates;
  EXPECT_LT(updates.find("/optimizer/  (ParamOut=w2)"), updates.find("/optimizer_1/  (ParamOut=w1)"))
      << updates;
  const Op& rate = *made.startup.main().ops().front().op;
  EXPECT_EQ(rate.OutputName("Out"), "learning_rate_0");
  EXPECT_EQ(rate.GetOr<std::string>("op_namescope", ""), "/optimizer/") << "where the table is updated";
}

TEST(MinimizeTest, StateComesFromTheOpsDeclaration) {
  Minimized made = Net();
  made.Run(
      {.op_type = "decaying", .attrs = {{"beta", 0.25f}}, .learning_rate = std::string("x"), .name = "mine"});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_EQ(made.Startup(),
            "w2_mine_pow_0 [1] = 0.25 cpu\nw2_mine_moment_0 [4] = 0 \n"
            "w1_mine_pow_0 [1] = 0.25 cpu\nw1_mine_moment_0 [4] = 0 \n");
  const std::string text = made.Optimize();
  EXPECT_NE(
      text.find(
          "/optimizer_1/  (ParamOut=w2, MomentOut=w2_mine_moment_0) = decaying(Param=w2, Grad=w2@GRAD, "
          "LearningRate=x, Moment=w2_mine_moment_0, Pow=w2_mine_pow_0) {beta=0.25} @optimize(w2, w2@GRAD)"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find("/decay_1/  w2_mine_pow_0 = scale(X=w2_mine_pow_0, ScaleTensor=[]) {scale=0.25, bias=0.0} "
                "@optimize(w2, w2@GRAD)"),
      std::string::npos)
      << text;
}

TEST(MinimizeTest, TheParametersRegularizerTakesPrecedence) {
  Minimized made = Net();
  made.Run({.op_type = "sgd",
            .learning_rate = 0.5f,
            .regularizer = Regularizer{.coefficient = 0.125f},
            .param_regularizers = {{"w2", {.kind = Regularizer::Kind::kL1, .coefficient = 0.25f}}}});
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  const std::string text = made.Optimize();
  const std::string expected = test::Unfolded(
      R"(/regularization/  _generated_var_0 = scale(X=w1, ScaleTensor=[]) {scale=0.125, bias=0.0}
    @optimize(w1, w1@GRAD)
/regularization/  w1@GRAD = sum(X=[w1@GRAD, _generated_var_0]) {use_mkldnn=false} @optimize(w1, w1@GRAD)
/regularization/  _generated_var_1 = sign(X=w2) @optimize(w2, w2@GRAD)
/regularization/  _generated_var_1 = scale(X=_generated_var_1, ScaleTensor=[]) {scale=0.25, bias=0.0}
    @optimize(w2, w2@GRAD)
/regularization/  w2@GRAD = sum(X=[w2@GRAD, _generated_var_1]) {use_mkldnn=false} @optimize(w2, w2@GRAD)
)");
  EXPECT_EQ(text.substr(0, expected.size()), expected);
}

TEST(MinimizeTest, ErrorsDoNotModifyThePrograms) {
  Minimized made = Net();
  made.Run({.op_type = "mean"});
  EXPECT_EQ(made.status.message(), "mean is no optimizer's op");
  made.Run({.op_type = "sgd", .attrs = {{"mu", 0.5f}}});
  EXPECT_EQ(made.status.message(), "optimizer sgd has no attribute mu");
  made.Run({.op_type = "sgd", .learning_rate = std::string("rate")});
  EXPECT_EQ(made.status.message(), "the learning rate rate is no variable of the program");
  EXPECT_EQ(made.main.main().ops().size(), 4u);
  EXPECT_TRUE(made.startup.main().ops().empty());
}

}  // namespace
}  // namespace penstock
