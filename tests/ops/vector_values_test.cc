// Ops whose f32 kernels are those of framework/vector: they agree with the plain loops of f64, with extents
// that are and are not multiples of a vector's, in all branches.
#include <gtest/gtest.h>

#include <cmath>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

void ExpectAlike(const Tensors& f32, const Tensors& f64, const std::string& name) {
  for (const auto& [variable, tensor] : f64) {
    const Tensor& given = f32.at(variable);
    ASSERT_EQ(given.shape(), tensor.shape()) << name;
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      const double wanted = ElementAt(tensor, i);
      if (std::isnan(wanted) && std::isnan(ElementAt(given, i))) continue;
      ASSERT_NEAR(ElementAt(given, i), wanted, 2e-5 * (1 + std::abs(wanted)))
          << name << " " << variable << " " << i;
    }
  }
}

// Both types' outputs, and their gradients by `wanted` if there are any.
void Compare(const Op& op, const Tensors& inputs, const std::set<std::string>& wanted,
             const std::string& name) {
  const Tensors f32 = RoundedToFloats(inputs);
  const Result<Tensors> made = RunOp(AllOps(), op, inputs), made_f32 = RunOp(AllOps(), op, f32);
  ASSERT_TRUE(made.ok() && made_f32.ok()) << name << made.status().ToString() << made_f32.status().ToString();
  ExpectAlike(*made_f32, *made, name);
  if (wanted.empty()) return;
  Tensors known = inputs;
  known.insert(made->begin(), made->end());
  const std::string out = made->contains("Out") ? "Out" : "Y";
  known[out + "@GRAD"] = Values(made->at(out).shape(), -1, 1, 7);
  Tensors known_f32 = RoundedToFloats(known);
  for (const auto& [variable, tensor] : *made_f32) known_f32[variable] = tensor;  // ties stay ties
  for (const auto& [variable, tensor] : known) {
    if (tensor.dtype() == DType::kUInt8) known_f32[variable] = tensor;
  }
  const auto grads = MakeGradOps(AllOps(), op, wanted);
  ASSERT_TRUE(grads.ok()) << grads.status().ToString();
  const Result<Tensors> back = RunOp(AllOps(), grads->at(0), known),
                        back_f32 = RunOp(AllOps(), grads->at(0), known_f32);
  ASSERT_TRUE(back.ok() && back_f32.ok()) << name << back.status().ToString() << back_f32.status().ToString();
  ExpectAlike(*back_f32, *back, name + " gradient");
}

Tensors Normalised(const Shape& x, Dim channels) {
  return {{"X", Values(x)},
          {"Scale", Values({channels}, 0.5, 1.5, 2)},
          {"Bias", Values({channels}, -1, 1, 3)},
          {"Mean", Values({channels}, -1, 1, 4)},
          {"Variance", Values({channels}, 0.5, 1.5, 5)}};
}

TEST(VectorKernels, BatchNormMatchesTheReference) {
  for (const Shape& x : {Shape{3, 18, 2}, Shape{2, 5, 7, 5}, Shape{4, 3, 16, 16}, Shape{9, 5},
                         Shape{6, 4, 1, 1}, Shape{2, 3, 4, 5, 6}}) {
    for (const char* flag : {"", "use_global_stats", "is_test"}) {
      Op op = WithSlots("batch_norm", {"X", "Scale", "Bias", "Mean", "Variance"},
                        {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"});
      if (*flag != 0) op.Set(flag, true);
      const bool test = flag == std::string("is_test");
      Compare(op, Normalised(x, x[1]),
              test ? std::set<std::string>{} : std::set<std::string>{"X", "Scale", "Bias"},
              StrCat("batch_norm ", x, " ", flag));
    }
  }
}

// With channels last, the f32 kernel computes the sum and relu in its passes.
TEST(VectorKernels, BatchNormWithReluMatchesTheReference) {
  for (const Shape& x : {Shape{3, 2, 18}, Shape{2, 7, 5, 5}, Shape{9, 16, 16, 3}, Shape{1, 1, 1, 4}}) {
    for (const char* flag : {"", "use_global_stats", "is_test"}) {
      for (const bool adds : {false, true}) {
        Op op = WithSlots("batch_norm_relu", {"X", "Scale", "Bias", "Mean", "Variance"},
                          {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"});
        op.Set("data_layout", "NHWC");
        if (*flag != 0) op.Set(flag, true);
        Tensors inputs = Normalised(x, x[x.rank() - 1]);
        std::set<std::string> wanted = {"X", "Scale", "Bias"};
        if (adds) {
          op.AddInput("Addend", {"Addend"});
          inputs["Addend"] = Values(x, -1, 1, 6);
          wanted.insert("Addend");
        }
        if (flag == std::string("is_test")) wanted.clear();
        Compare(op, inputs, wanted, StrCat("batch_norm_relu ", x, " ", flag, adds));
      }
    }
  }
}

TEST(VectorKernels, GroupNormMatchesTheReference) {
  for (const Shape& x : {Shape{2, 6, 5, 7}, Shape{3, 7, 16}, Shape{2, 6}}) {
    Tensors inputs = Normalised(x, x[1]);
    inputs.erase("Mean"), inputs.erase("Variance");
    for (const int groups : {1, 3, 4}) {
      Op op =
          WithSlots("group_norm", {"X", "Scale", "Bias"}, {"Y", "Mean", "Variance"}).Set("groups", groups);
      if (x.rank() > 2 || groups == 1)
        Compare(op, inputs, {"X", "Scale", "Bias"}, StrCat("group_norm ", x, " ", groups));
      op = WithSlots("group_norm", {"X"}, {"Y", "Mean", "Variance"}).Set("groups", groups);
      if (x.rank() > 2 || groups == 1)
        Compare(op, {{"X", inputs.at("X")}}, {"X"}, StrCat("plain group_norm ", x));
    }
    if (x.rank() == 2) continue;
    Compare(WithSlots("instance_norm", {"X", "Scale", "Bias"}, {"Y", "SavedMean", "SavedVariance"}), inputs,
            {"X", "Scale", "Bias"}, StrCat("instance_norm ", x));
  }
}

// Whole numbers have ties in most windows.
Tensor Whole(const Shape& shape) {
  Tensor x = Values(shape, -2, 2);
  for (double& each : x.Span<double>()) each = std::round(each);
  return x;
}

TEST(VectorKernels, MaxPoolingMatchesTheReference) {
  for (const Shape& x : {Shape{2, 3, 8, 34}, Shape{1, 2, 7, 9}, Shape{2, 1, 2, 2}}) {
    Op op = WithSlots("pool2d", {"X"}, {"Out"}).Set("pooling_type", "max").Set("ksize", Ints{2, 2});
    op.Set("strides", Ints{2, 2});
    for (const bool with_nan : {false, true}) {
      Tensors inputs = {{"X", Whole(x)}};
      if (with_nan) inputs["X"].Data<double>()[1] = std::nan("");
      const auto compare = [&](const Op& each) {
        Compare(each, inputs, {"X"}, StrCat("pool2d ", x, with_nan));
      };
      compare(op);
      compare(Op(op).Set("ceil_mode", true));
      compare(Op(op).Set("paddings", Ints{1, 1}));
      compare(Op(op).Set("ksize", Ints{3, 3}).Set("paddings", Ints{1, 1}));
      compare(Op(op).Set("adaptive", true));
      compare(Op(op).Set("global_pooling", true));
      if (x[1] > 2) compare(Op(op).Set("data_format", "NHWC"));
    }
  }
}

TEST(VectorKernels, RowSumsOfGradientsMatchTheReference) {
  struct Pair {
    Shape x, y;
    int axis;
  };
  for (const Pair& p : {Pair{{5, 4, 70}, {70}, -1},
                        {{40, 19}, {19}, -1},
                        {{5, 4, 21}, {4}, 1},
                        {{3, 40}, {3, 40}, -1},
                        {{2, 3, 4, 17}, {3, 1, 17}, 1},
                        {{2, 3, 4, 17}, {2, 1, 4, 1}, -1},
                        {{17}, {6, 17}, -1},
                        {{6, 1}, {1, 17}, -1}}) {
    for (const char* type : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"}) {
      Compare(WithSlots(type, {"X", "Y"}, {"Out"}).Set("axis", p.axis),
              {{"X", Values(p.x)}, {"Y", Values(p.y, 0.5, 2, 3)}}, {"X", "Y"},
              StrCat(type, " ", p.x, " ", p.y));
    }
  }
}

TEST(VectorKernels, ReductionsMatchTheReference) {
  for (const char* type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "frobenius_norm"}) {
    for (const Ints& dims : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 2}, Ints{0, 1}, Ints{0, 1, 2}}) {
      for (const Shape& x : {Shape{3, 1, 19}, Shape{2, 9, 4}, Shape{1, 1, 1}}) {
        Compare(WithSlots(type, {"X"}, {"Out"}).Set("dim", dims), {{"X", Values(x, 0.5, 1.5)}}, {"X"},
                StrCat(type, " ", x, " ", dims.size()));
      }
    }
  }
}

TEST(VectorKernels, ReductionsPropagateNaN) {
  for (const Ints& dims : {Ints{0}, Ints{1}}) {
    Tensors inputs = {{"X", Values({3, 21})}};
    inputs["X"].Data<double>()[21 + 3] = std::nan("");
    for (const char* type : {"reduce_sum", "reduce_max", "reduce_min"})
      Compare(WithSlots(type, {"X"}, {"Out"}).Set("dim", dims), inputs, {}, type);
  }
}

TEST(VectorKernels, DropoutMatchesTheReference) {
  for (const char* how : {"upscale_in_train", "downgrade_in_infer"}) {
    const Op op = WithSlots("dropout", {"X"}, {"Out", "Mask"})
                      .Set("fix_seed", true)
                      .Set("seed", 5)
                      .Set("dropout_prob", 0.3f)
                      .Set("dropout_implementation", how);
    Compare(op, {{"X", Values({37, 1000})}}, {"X"}, how);
  }
}

TEST(VectorKernels, OptimizersMatchTheReference) {
  const Tensors inputs = {{"Param", Values({3, 7})},
                          {"Grad", Values({3, 7}, -1, 1, 2)},
                          {"LearningRate", Values({1}, 0.1, 0.1)},
                          {"Moment", Values({3, 7}, 0.1, 1, 3)},
                          {"Moment1", Values({3, 7}, -1, 1, 3)},
                          {"Moment2", Values({3, 7}, 0.1, 1, 4)},
                          {"MeanSquare", Values({3, 7}, 1, 2, 5)},
                          {"MeanGrad", Values({3, 7}, 0, 0.1, 6)},
                          {"Beta1Pow", Values({1}, 0.9, 0.9)},
                          {"Beta2Pow", Values({1}, 0.99, 0.99)}};
  const auto compare = [&](const Op& op) {
    Tensors given;
    for (const std::string& name : op.InputNames()) given[name] = inputs.at(name);
    Compare(op, given, {}, op.type());
  };
  for (const char* type : {"adam", "lamb"}) {
    Op op = WithSlots(type, {"Param", "Grad", "LearningRate", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow"},
                      {"ParamOut", "Moment1Out", "Moment2Out"});
    if (type == std::string("adam")) op.AddOutput("Beta1PowOut", {"b1"}).AddOutput("Beta2PowOut", {"b2"});
    if (type == std::string("lamb")) op.Set("weight_decay", 0.1f);
    compare(op);
  }
  for (const char* type : {"adagrad", "decayed_adagrad"})
    compare(WithSlots(type, {"Param", "Grad", "LearningRate", "Moment"}, {"ParamOut", "MomentOut"}));
  for (const bool centered : {false, true}) {
    compare(WithSlots("rmsprop", {"Param", "Grad", "LearningRate", "Moment", "MeanSquare", "MeanGrad"},
                      {"ParamOut", "MomentOut", "MeanSquareOut", "MeanGradOut"})
                .Set("centered", centered)
                .Set("momentum", 0.5f));
  }
}

}  // namespace
}  // namespace penstock::test
