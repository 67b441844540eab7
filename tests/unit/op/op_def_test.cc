#include <gtest/gtest.h>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

class NoKernel : public Kernel {
  Status Prepare(KernelSetup&) override { return OkStatus(); }
  Status Run(KernelRun&) override { return OkStatus(); }
};

void RegisterDouble(OpRegistry& ops) {
  ops.Add("double")
      .Doc("Twice X.", "")
      .Input("X", "any shape", Floats())
      .Output("Out", "2 X", SameTypeAs("X"))
      .Attr("times", 2, "how often", AtLeast(1))
      .InferShape(SameShape("X", "Out"))
      .KernelForAnyType<Cpu, NoKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}});
}

Op Doubled() {
  Op op("double");
  op.AddInput("X", {"x"}).AddOutput("Out", {"y"});
  return op;
}

TEST(OpDefTest, TheGradientOpFollowsFromItsSpec) {
  OpRegistry ops;
  RegisterDouble(ops);
  ASSERT_TRUE(ops.Finish().ok());
  const OpDef* grad = ops.Find("double_grad");
  ASSERT_NE(grad, nullptr);
  EXPECT_NE(grad->FindInput("X"), nullptr);
  EXPECT_NE(grad->FindInput("Out@GRAD"), nullptr);
  EXPECT_NE(grad->FindOutput("X@GRAD"), nullptr);
  EXPECT_NE(grad->FindAttr("times"), nullptr);
}

TEST(OpDefTest, InferenceDeclaresTheOutput) {
  OpRegistry ops;
  RegisterDouble(ops);
  ASSERT_TRUE(ops.Finish().ok());
  Program program;
  program.MutableBlock(0).SetVar(TensorVar("x", DType::kFp64, {kUnknownDim, 3}));
  ASSERT_TRUE(InferAndDeclare(ops, program, 0, Doubled()).ok());
  const Var* y = program.main().FindVar("y");
  ASSERT_NE(y, nullptr);
  EXPECT_EQ(y->type->dtype, DType::kFp64);
  EXPECT_EQ(y->shape(), (Shape{kUnknownDim, 3}));
}

TEST(OpDefTest, InvalidOpsAreReported) {
  OpRegistry ops;
  RegisterDouble(ops);
  ASSERT_TRUE(ops.Finish().ok());
  const OpDef& def = *ops.Find("double");
  Op op = Doubled();
  op.Set("times", 0);
  EXPECT_EQ(def.CheckOp(op).message(), "double: attribute times is 0; it must be at least 1");
  op.Set("times", 1.5f);
  EXPECT_EQ(def.CheckOp(op).message(), "double: attribute times is 1.5 (float); it must be int");
  op.Set("times", std::int64_t{1} << 40);
  EXPECT_EQ(def.CheckOp(op).message(), "double: attribute times is 1099511627776l (long); it must be int");
  op.Set("times", Attr(std::int64_t{0}));
  EXPECT_EQ(def.CheckOp(op).message(), "double: attribute times is 0l; it must be at least 1");
  op.Set("times", 2.0f);
  EXPECT_TRUE(def.CheckOp(op).ok());
  EXPECT_EQ(def.CheckOp(Op("double")).message(), "double: input X is missing");
  op = Doubled();
  op.AddInput("Z", {"x"});
  EXPECT_EQ(def.CheckOp(op).message(), "double: it has no input slot \"Z\"");
  Program program;
  program.MutableBlock(0).SetVar(TensorVar("x", DType::kInt32, {3}));
  EXPECT_EQ(InferAndDeclare(ops, program, 0, Doubled()).message(),
            "double: element type of X (i32) must be f32 or f64");
}

TEST(OpDefTest, NonDenseInputsMustBeDeclared) {
  OpRegistry ops;
  RegisterDouble(ops);
  ops.Add("take")
      .Input("X", "", AnyType(), OfKind(VarKind::kTensorArray))
      .Output("Out", "", SameTypeAs("X"), TensorOrRows())
      .InferShape(SameShape("X", "Out"))
      .Grad({.reads = {"X"}, .yields = {"X"}});
  ASSERT_TRUE(ops.Finish().ok());
  Program program;
  Var x = TensorVar("x", DType::kFp32, {3});
  x.kind = VarKind::kTensorArray;
  program.MutableBlock(0).SetVar(x);
  const Status status = InferAndDeclare(ops, program, 0, Doubled());
  EXPECT_EQ(status.id(), "E-op-kind");
  EXPECT_EQ(status.message(), "double: X (x) is an array of tensors; it must be a dense tensor");
  const OpDef& grad = *ops.Find("take_grad");
  EXPECT_EQ(grad.FindInput("X")->kinds, KindSet::Of(VarKind::kTensorArray));
  EXPECT_EQ(grad.FindOutput("X@GRAD")->kinds, KindSet::Of(VarKind::kTensorArray));
  EXPECT_EQ(grad.FindInput("Out@GRAD")->kinds, KindSet::Of(VarKind::kTensor)) << "rows only where it says so";
  EXPECT_EQ(ops.Find("take")->FindOutput("Out")->kinds.ToString(), "a dense tensor or selected rows");
  EXPECT_EQ(KindSet::Any().ToString(), "of any kind");
}

TEST(OpRegistryTest, UnknownOpsAreReportedWithSuggestions) {
  OpRegistry ops;
  RegisterDouble(ops);
  ASSERT_TRUE(ops.Finish().ok());
  const auto def = ops.Require(Op("duoble"));
  ASSERT_FALSE(def.ok());
  EXPECT_EQ(def.status().ToString(),
            "op type duoble is not known   [E-op-unknown]\n  note: known types with a similar name: double");
}

TEST(OpRegistryTest, OptimizerStateMustBeASlot) {
  OpRegistry ops;
  ops.Add("opt")
      .Input("Param", "", Floats())
      .Input("Grad", "", Floats())
      .Output("ParamOut", "", SameTypeAs("Param"))
      .Optimizes("Param", "Grad")
      .State("Moment", "", StateSlicing::kWithParam, "moment");
  EXPECT_EQ(ops.Finish().id(), "E-registry-optimizer");
}

}  // namespace
}  // namespace penstock
