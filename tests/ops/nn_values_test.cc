// Values of convolutions and normalisation for which the corpus has no case.
#include <gtest/gtest.h>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

TEST(BatchNorm, SavesZeroMomentsWithRunningStatistics) {
  Op op = WithSlots("batch_norm", {"X", "Scale", "Bias", "Mean", "Variance"},
                    {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"});
  op.Set("epsilon", 0.0f);
  for (const DType type : {DType::kFp32, DType::kFp64}) {
    const auto one = [type](double value) { return Ramp(type, {1}, value, 0); };
    const Tensors inputs = {{"X", Ramp(type, {2, 1}, 3, 2)},
                            {"Scale", one(1)},
                            {"Bias", one(0)},
                            {"Mean", one(1)},
                            {"Variance", one(4)}};
    for (const char* flag : {"is_test", "use_global_stats"}) {
      const Op running = Op(op).Set(flag, true);
      ExpectValues(RunOne(running, inputs, "Y"), {1, 2});
      ExpectValues(RunOne(running, inputs, "SavedMean"), {0});
      ExpectValues(RunOne(running, inputs, "SavedVariance"), {0});
      ExpectValues(RunOne(running, inputs, "MeanOut"), {1});
    }
  }
}

// The weighted sum of instance_norm_grad's results, with the moments of X.
double WeightedGradients(const Tensors& given) {
  Tensors known = given;
  const Op norm = WithSlots("instance_norm", {"X", "Scale", "Bias"}, {"Y", "SavedMean", "SavedVariance"});
  const Result<Tensors> made = RunOp(AllOps(), norm, known);
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  for (const auto& [name, tensor] : *made) known[name] = tensor;
  const Op grad = WithSlots("instance_norm_grad", {"X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD"},
                            {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
  const Result<Tensors> grads = RunOp(AllOps(), grad, known);
  PENSTOCK_CHECK(grads.ok(), grads.status().ToString());
  double sum = 0;
  for (const char* slot : {"X", "Scale"}) {
    const Tensor &weights = given.at(StrCat("DD", slot)), &values = grads->at(StrCat(slot, "@GRAD"));
    for (std::int64_t i = 0; i < weights.count(); ++i) sum += ElementAt(weights, i) * ElementAt(values, i);
  }
  return sum;
}

TEST(InstanceNormSecondOrder, DifferentiatesThroughTheMoments) {
  Tensors inputs = {{"X", Values({2, 2, 3})},
                    {"Scale", Values({2}, 0.5, 1.5, 3)},
                    {"Bias", Values({2})},
                    {"Y@GRAD", Values({2, 2, 3}, -1, 1, 5)},
                    {"DDX", Values({2, 2, 3}, -1, 1, 7)},
                    {"DDScale", Values({2}, -1, 1, 9)}};
  const Op norm = WithSlots("instance_norm", {"X", "Scale", "Bias"}, {"Y", "SavedMean", "SavedVariance"});
  Tensors known = inputs;
  const Result<Tensors> moments = RunOp(AllOps(), norm, inputs);
  ASSERT_TRUE(moments.ok()) << moments.status().ToString();
  for (const auto& [name, tensor] : *moments) known[name] = tensor;
  Op op = WithSlots("instance_norm_grad_grad", {"X", "Scale", "SavedMean", "SavedVariance", "DDX", "DDScale"},
                    {"DX", "DScale", "DDY"});
  op.AddInput("DY", {"Y@GRAD"});
  const Tensor made = RunOne(op, known, "DX");
  const Tensor x = inputs["X"];
  for (std::int64_t i = 0; i < x.count(); ++i) {
    constexpr double kStep = 1e-5;
    double ends[2];
    for (const int end : {0, 1}) {
      inputs["X"] = x.Clone();
      inputs["X"].Data<double>()[i] += end == 0 ? -kStep : kStep;
      ends[end] = WeightedGradients(inputs);
    }
    EXPECT_NEAR(ElementAt(made, i), (ends[1] - ends[0]) / (2 * kStep), 1e-6);
  }
}

// As for batch_norm, for which Y is X then, because one element has no variance.
TEST(InplaceAbn, ActivatesASingleElementUnnormalised) {
  Op op = WithSlots("inplace_abn", {"X", "Scale", "Bias", "Mean", "Variance"},
                    {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"});
  op.Set("activation", "leaky_relu").Set("alpha", 0.5f);
  const auto one = [](double value) { return Ramp(DType::kFp64, {1}, value, 0); };
  Tensors inputs = {{"X", Ramp(DType::kFp64, {1, 1}, -3, 0)},
                    {"Scale", one(2)},
                    {"Bias", one(5)},
                    {"Mean", one(1)},
                    {"Variance", one(4)}};
  ExpectValues(RunOne(op, inputs, "Y"), {-1.5});
  ExpectValues(RunOne(op, inputs, "MeanOut"), {1});
  Op grad = WithSlots("inplace_abn_grad", {"Y", "Y@GRAD", "Scale", "Bias", "SavedMean", "SavedVariance"},
                      {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
  grad.Set("activation", "leaky_relu").Set("alpha", 0.5f);
  inputs = {{"Y", Ramp(DType::kFp64, {1, 1}, -1.5, 0)},
            {"Y@GRAD", Ramp(DType::kFp64, {1, 1}, 4, 0)},
            {"Scale", one(2)},
            {"Bias", one(5)},
            {"SavedMean", one(0)},
            {"SavedVariance", one(0)}};
  ExpectValues(RunOne(grad, inputs, "X@GRAD"), {2});
  ExpectValues(RunOne(grad, inputs, "Scale@GRAD"), {0});
  ExpectValues(RunOne(grad, inputs, "Bias@GRAD"), {0});
}

// As below, for the gradient of a gradient, also with one of the two directions missing.
TEST(Conv2dSecondOrder, FloatAgreesWithDouble) {
  int compared = 0;
  for (const GradientCase& c : SecondOrderGradientCases()) {
    if (!c.op.type().starts_with("conv")) continue;
    for (const std::vector<std::string>& given :
         {std::vector<std::string>{"DDInput", "DDFilter"}, {"DDInput"}, {"DDFilter"}}) {
      Op op(c.op.type() + "_grad");
      op.AddInput("Input", {"Input"}).AddInput("Filter", {"Filter"}).AddInput("DOutput", {"Output@GRAD"});
      for (const std::string& slot : given) op.AddInput(slot, {slot});
      for (const char* slot : {"DDOutput", "DInput", "DFilter"}) op.AddOutput(slot, {slot});
      for (const NamedAttr& attr : c.op.attrs()) op.Set(attr.name, attr.value);
      Tensors inputs = c.inputs;
      for (const std::string& slot : given)
        inputs[slot] = Values(inputs.at(slot.substr(2)).shape(), -1, 1, 11);
      const Result<Tensors> made = RunOp(AllOps(), op, inputs),
                            made_f32 = RunOp(AllOps(), op, RoundedToFloats(inputs));
      ASSERT_TRUE(made.ok() && made_f32.ok()) << made.status().ToString() << made_f32.status().ToString();
      for (const char* slot : {"DDOutput", "DInput", "DFilter"}) {
        for (std::int64_t i = 0; i < made->at(slot).count(); ++i, ++compared)
          ASSERT_NEAR(ElementAt(made_f32->at(slot), i), ElementAt(made->at(slot), i), 1e-4)
              << c.name << " " << slot;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

// The corpus has no case of it, so f32, which uses oneDNN, is compared with f64, which does not.
TEST(Conv2dTranspose, FloatAgreesWithDouble) {
  for (const GradientCase& c : NnGradientCases()) {
    if (c.op.type() != "conv2d_transpose" && c.op.type() != "conv3d_transpose") continue;
    const Tensors f32 = RoundedToFloats(c.inputs);
    const Tensor expected = RunOne(c.op, c.inputs, "Output"), given = RunOne(c.op, f32, "Output");
    ASSERT_EQ(given.shape(), expected.shape()) << c.name;
    for (std::int64_t i = 0; i < given.count(); ++i)
      ASSERT_NEAR(ElementAt(given, i), ElementAt(expected, i), 1e-4) << c.name;
    Tensors known = c.inputs, known_f32 = f32;
    known["Output@GRAD"] = expected;
    known_f32["Output@GRAD"] = given;
    const auto grads = MakeGradOps(AllOps(), c.op, c.check.wanted);
    ASSERT_TRUE(grads.ok());
    const Result<Tensors> made = RunOp(AllOps(), grads->at(0), known);
    const Result<Tensors> made_f32 = RunOp(AllOps(), grads->at(0), known_f32);
    ASSERT_TRUE(made.ok() && made_f32.ok()) << made_f32.status().ToString();
    for (const auto& [name, tensor] : *made) {
      for (std::int64_t i = 0; i < tensor.count(); ++i)
        ASSERT_NEAR(ElementAt(made_f32->at(name), i), ElementAt(tensor, i), 1e-3) << c.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace penstock::test
