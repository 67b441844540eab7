// The gradient ops against central differences of the forward kernels, in f64.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "operators/all_ops.h"
#include "operators/common/fluid_attrs.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/vision_cases.h"

namespace penstock::test {
namespace {

GradientCase Binary(const std::string& type, const Shape& x, const Shape& y, int axis, double low = -2) {
  Op op = WithSlots(type, {"X", "Y"}, {"Out"}).Set("axis", axis);
  return {StrCat(type, x, y),
          op,
          {{"X", Values(x, low)}, {"Y", Values(y, low, 2.5, 9)}},
          {.of = {"Out"}, .wanted = {"X", "Y"}}};
}

GradientCase Shaping(const std::string& type, const Shape& x, const std::string& attr, Attr value) {
  GradientCase c = Unary(type, x);
  c.op.AddOutput("XShape", {"XShape"}).Set(attr, std::move(value));
  return c;
}

std::vector<GradientCase> BinaryCases() {
  std::vector<GradientCase> cases;
  for (const char* type :
       {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_max", "elementwise_min"}) {
    cases.push_back(Binary(type, {2, 3}, {2, 3}, -1));
    cases.push_back(Binary(type, {2, 3, 4, 2}, {3, 4}, 1));
    cases.push_back(Binary(type, {4, 3}, {3}, -1));
    cases.push_back(Binary(type, {20, 3}, {20}, 0));
    cases.push_back(Binary(type, {3}, {2, 3}, -1));
    cases.push_back(Binary(type, {2, 1, 3}, {1, 4, 1}, -1));
    cases.push_back(Binary(type, {2, 3}, {1}, -1));
  }
  for (const char* type : {"elementwise_div", "elementwise_pow"}) {
    cases.push_back(Binary(type, {2, 3, 4}, {3, 1}, 1, 0.5));
    cases.push_back(Binary(type, {2, 3}, {2, 3}, -1, 0.5));
  }
  return cases;
}

std::vector<GradientCase> OneOperandCases() {
  std::vector<GradientCase> cases;
  for (const char* type :
       {"relu", "sigmoid", "tanh", "square", "mean", "abs", "exp", "sin", "cos", "softsign", "softplus",
        "floor", "ceil", "round", "sign", "atan", "logsigmoid", "tanh_shrink"}) {
    cases.push_back(Unary(type, {3, 7}));
  }
  cases.push_back(Unary("increment", {1}));
  cases.push_back(Unary("rnn_memory_helper", {3, 7}));
  for (const char* type : {"sqrt", "log", "reciprocal", "rsqrt"}) cases.push_back(Unary(type, {3, 7}, 0.1));
  cases.push_back(Unary("pow", {3, 7}, 0.1));
  cases.back().op.Set("factor", 1.75f);
  cases.push_back(Unary("clip", {3, 7}));
  cases.back().op.Set("min", -1.0f).Set("max", 0.5f);
  for (const bool after : {false, true}) {
    cases.push_back(Unary("scale", {3, 7}));
    cases.back().op.Set("scale", 0.25f).Set("bias", 1.0f).Set("bias_after_scale", after);
  }
  cases.push_back(Unary("assign", {5}));
  cases.push_back(Unary("top_k", {3, 8}));
  cases.back().op.AddOutput("Indices", {"Indices"}).Set("k", 3);
  cases.push_back(Shaping("reshape2", {3, 4}, "shape", std::vector<std::int32_t>{2, -1}));
  cases.push_back(Shaping("squeeze2", {3, 1, 4}, "axes", std::vector<std::int32_t>{1}));
  cases.push_back(Shaping("unsqueeze2", {3, 4}, "axes", std::vector<std::int32_t>{0, 2}));
  // Without XShape.
  const auto old = [&cases](const char* type, const Shape& shape, const char* attr, auto value) {
    cases.push_back(Unary(type, shape));
    cases.back().op.Set(attr, std::move(value));
  };
  old("squeeze", {3, 1, 4}, "axes", std::vector<std::int32_t>{1});
  old("unsqueeze", {3, 4}, "axes", std::vector<std::int32_t>{2});
  old("reshape", {3, 4}, "shape", std::vector<std::int32_t>{2, -1});
  old("flatten", {3, 4, 2}, "axis", 2);
  old("transpose", {3, 4, 2}, "axis", std::vector<std::int32_t>{2, 0, 1});
  cases.push_back(Shaping("flatten2", {3, 4, 2}, "axis", 2));
  cases.push_back(Shaping("transpose2", {3, 4, 2}, "axis", std::vector<std::int32_t>{2, 0, 1}));
  return cases;
}

std::vector<GradientCase> ReduceCases() {
  std::vector<GradientCase> cases;
  for (const char* type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "frobenius_norm"}) {
    for (const std::vector<std::int32_t>& dim : {std::vector<std::int32_t>{0}, {1}, {-1}, {0, 2}}) {
      for (const bool keep : {false, true}) {
        cases.push_back(Unary(type, {3, 4, 2}, 0.5));
        cases.back().op.Set("dim", dim).Set("keep_dim", keep);
      }
    }
    cases.push_back(Unary(type, {3, 4, 2}, 0.5));
    cases.back().op.Set("reduce_all", true);
  }
  return cases;
}

std::vector<GradientCase> PointwiseLossCases() {
  const auto make = [](const std::string& type, const std::string& x, const std::string& y,
                       const std::string& out, double low, double high) {
    const Tensor labels = TensorOf<double>({2, 3}, {0, 1, 1, 0, 1, 0});
    return GradientCase{type,
                        WithSlots(type, {x, y}, {out}),
                        {{x, Values({2, 3}, low, high)}, {y, labels}},
                        {.of = {out}, .wanted = {x}}};
  };
  std::vector<GradientCase> cases;
  cases.push_back(make("log_loss", "Predicted", "Labels", "Loss", 0.1, 0.9));
  cases.back().op.Set("epsilon", 0.01f);
  cases.push_back(make("bce_loss", "X", "Label", "Out", 0.1, 0.9));
  for (const bool normalize : {false, true}) {
    cases.push_back(make("sigmoid_cross_entropy_with_logits", "X", "Label", "Out", -2, 2));
    cases.back().op.Set("normalize", normalize).Set("ignore_index", normalize ? 1 : -100);
  }
  cases.push_back(make("hinge_loss", "Logits", "Labels", "Loss", -2, 2));
  cases.push_back(make("huber_loss", "X", "Y", "Out", -2, 2));
  cases.back().op.AddOutput("Residual", {"Residual"}).Set("delta", 0.75f);
  cases.back().check.wanted = {"X", "Y"};
  cases.push_back(Unary("label_smooth", {2, 3}));
  cases.back().op.Set("epsilon", 0.125f);
  return cases;
}

std::vector<GradientCase> LookupCases() {
  std::vector<GradientCase> cases;
  for (const char* type : {"lookup_table", "lookup_table_v2"}) {
    for (const std::int64_t padding : {-1, 2}) {
      Op op = WithSlots(type, {"W", "Ids"}, {"Out"}).Set("padding_idx", padding);
      const Tensor ids = TensorOf<std::int64_t>({2, 3, 1}, {4, 2, 0, 4, 4, 1});
      cases.push_back({type, op, {{"W", Values({5, 3})}, {"Ids", ids}}, {.of = {"Out"}, .wanted = {"W"}}});
    }
  }
  return cases;
}

std::vector<GradientCase> SeveralOperandsCases() {
  std::vector<GradientCase> cases;
  Op sum = Op("sum").AddInput("X", {"a", "b", "c"}).AddOutput("Out", {"Out"});
  cases.push_back({"sum",
                   sum,
                   {{"a", Values({3, 2})}, {"b", Values({3, 2}, -1, 1, 3)}, {"c", Values({3, 2}, 0, 1, 4)}},
                   {.of = {"Out"}, .wanted = {"a", "c"}}});
  Op concat = Op("concat").AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"}).Set("axis", 1);
  cases.push_back({"concat",
                   concat,
                   {{"a", Values({2, 3, 2})}, {"b", Values({2, 1, 2}, -1, 1, 3)}},
                   {.of = {"Out"}, .wanted = {"a", "b"}}});
  Op split = Op("split").AddInput("X", {"X"}).AddOutput("Out", {"a", "b"}).Set("axis", -1);
  split.Set("sections", std::vector<std::int32_t>{1, 2});
  cases.push_back({"split", split, {{"X", Values({2, 3})}}, {.of = {"a", "b"}, .wanted = {"X"}}});
  Op cast = WithSlots("cast", {"X"}, {"Out"}).Set("in_dtype", 6).Set("out_dtype", 6);
  cases.push_back({"cast", cast, {{"X", Values({4})}}, {.of = {"Out"}, .wanted = {"X"}}});
  return cases;
}

std::vector<GradientCase> LossCases() {
  std::vector<GradientCase> cases;
  const Tensor classes = TensorOf<std::int64_t>({3, 1}, {0, 2, 3});
  Op hard = WithSlots("cross_entropy", {"X", "Label"}, {"Y"}).Set("ignore_index", 2);
  cases.push_back({"cross_entropy",
                   hard,
                   {{"X", Values({3, 4}, 0.1, 0.9)}, {"Label", classes}},
                   {.of = {"Y"}, .wanted = {"X"}, .tolerance = 1e-5}});
  Op soft = WithSlots("cross_entropy", {"X", "Label"}, {"Y"}).Set("soft_label", true);
  cases.push_back({"cross_entropy soft",
                   soft,
                   {{"X", Values({3, 4}, 0.1, 0.9)}, {"Label", Values({3, 4}, 0, 1)}},
                   {.of = {"Y"}, .wanted = {"X"}, .tolerance = 1e-5}});
  Op second = WithSlots("cross_entropy2", {"X", "Label"}, {"Y"});
  second.AddOutput("XShape", {"XShape"}).AddOutput("MatchX", {"MatchX"});
  cases.push_back({"cross_entropy2",
                   second,
                   {{"X", Values({3, 4}, 0.1, 0.9)}, {"Label", classes}},
                   {.of = {"Y"}, .wanted = {"X"}, .tolerance = 1e-5}});
  for (const bool is_soft : {false, true}) {
    Op fused = WithSlots("softmax_with_cross_entropy", {"Logits", "Label"}, {"Loss"});
    fused.AddOutput("Softmax", {"Softmax"}).Set("axis", 1).Set("soft_label", is_soft);
    const Tensor labels = TensorOf<std::int64_t>({2, 1, 2}, {0, 2, 1, 1});
    cases.push_back({"softmax_with_cross_entropy",
                     fused,
                     {{"Logits", Values({2, 3, 2})}, {"Label", is_soft ? Values({2, 3, 2}, 0, 1) : labels}},
                     {.of = {"Loss"}, .wanted = {"Logits"}}});
    // The gradient assumes that a distribution sums to one, as in Fluid.
    if (is_soft) {
      Tensor& share = cases.back().inputs["Label"];
      for (int outer = 0; outer < 2; ++outer) {
        for (int inner = 0; inner < 2; ++inner) {
          double* const at = share.Data<double>() + outer * 6 + inner;
          at[4] = 1 - at[0] - at[2];
        }
      }
    }
  }
  return cases;
}

void ExpectAgreement(const std::vector<GradientCase>& cases) {
  for (const GradientCase& c : cases) {
    const Status status = CheckGradient(AllOps(), c.op, c.inputs, c.check);
    EXPECT_TRUE(status.ok()) << c.name << ": " << status.ToString();
  }
}

// The allowed values of an attribute, if they are few and change the results.
std::vector<Attr> DomainOf(const AttrDef& attr) {
  std::vector<Attr> domain;
  for (const std::string& word : attr.check.domain) {
    domain.push_back(attr.kind == AttrKind::kInt ? Attr(std::int32_t{std::stoi(word)}) : Attr(word));
  }
  if (attr.kind == AttrKind::kBool && attr.doc != kNoEffect) {
    for (const bool truth : {false, true}) {
      if (attr.check.rule == nullptr || !attr.check.rule(Attr(truth))) domain.emplace_back(truth);
    }
  }
  return domain;
}

// Values that a comparison of dense f64 gradients of one op cannot test.
const std::map<std::string, std::string> kElsewhere = {
    {"lookup_table.is_sparse true", "the gradient is selected rows"},
    {"lookup_table_v2.is_sparse true", "the gradient is selected rows"},
    {"hierarchical_sigmoid.is_sparse true", "the gradient is selected rows"},
    {"nce.is_sparse true", "the gradient is selected rows"},
    {"fused_embedding_seq_pool.is_sparse true", "the gradient is selected rows"},
    {"lookup_table.is_distributed true", "says where the table is"},
    {"lookup_table_v2.is_distributed true", "says where the table is"},
    {"lookup_table.remote_prefetch true", "says where the table is"},
    {"lookup_table_v2.remote_prefetch true", "says where the table is"},
    {"nce.remote_prefetch true", "says where the table is"},
    {"softmax_with_cross_entropy.numeric_stable_mode false", "one algorithm serves both"},
    {"warpctc.norm_by_times true", "scales the gradient alone: tests/python/test_sequence_labels.py"},
    {"dropout.is_test true", "has no gradient"},
    {"dropout.fix_seed false", "draws another mask for each difference"},
};

// Ops whose gradient cannot be tested on a single op. tests/executor differentiates programs with blocks and
// arrays.
const std::map<std::string, std::string> kWithoutCase = {
    {"c_allgather", "runs between ranks"},
    {"cvm", "two columns of its gradient are no derivative: recommend_values_test.cc"},
    {"c_allreduce_sum", "runs between ranks"},
    {"c_broadcast", "runs between ranks"},
    {"c_reducescatter", "runs between ranks"},
    {"c_sync_calc_stream", "orders what runs on a device"},
    {"c_sync_comm_stream", "orders what runs between ranks"},
    {"sync_batch_norm", "runs between ranks: tests/executor/sync_batch_norm_test.cc"},
    {"conditional_block", "runs a block"},
    {"recurrent", "runs a block"},
    {"while", "runs a block"},
    {"array_to_lod_tensor", "reads an array"},
    {"lod_tensor_to_array", "makes an array"},
    {"read_from_array", "reads an array"},
    {"tensor_array_to_tensor", "reads an array"},
    {"write_to_array", "makes an array"},
    {"reorder_lod_tensor_by_rank", "reads a rank table"},
    {"shrink_rnn_memory", "reads a rank table"},
    {"select_input", "its gradient knows by its role that it is one"},
    {"select_output", "its gradient knows by its role that it is one"},
    {"print", "all that its attributes change is what is shown"},
    {"py_func", "calls functions of the user's: tests/python/test_py_func.py"}};

TEST(Gradients, CasesCoverEachDeclaredAttributeValue) {
  std::map<std::string, std::set<std::string>> checked;  // by "op.attr": the values in cases
  std::set<std::string> ops;
  for (const GradientCase& c : AllGradientCases()) {
    ops.insert(c.op.type());
    for (const AttrDef& attr : AllOps().Find(c.op.type())->attrs()) {
      const Attr* given = c.op.FindAttr(attr.name);
      if (given == nullptr && !attr.default_value) continue;
      checked[StrCat(c.op.type(), ".", attr.name)].insert(
          AttrToString(given != nullptr ? *given : *attr.default_value));
    }
  }
  std::set<std::string> excused;
  for (const OpDef* def : AllOps().All()) {
    if (!def->has_grad()) continue;
    const bool elsewhere = kWithoutCase.contains(def->type());
    EXPECT_NE(ops.contains(def->type()), elsewhere) << "no gradient case of " << def->type();
    if (elsewhere) continue;
    for (const AttrDef& attr : def->attrs()) {
      const std::string key = StrCat(def->type(), ".", attr.name);
      for (const Attr& value : DomainOf(attr)) {
        const std::string excuse = StrCat(key, " ", AttrToString(value));
        const bool is_checked = checked[key].contains(AttrToString(value));
        if (!is_checked && kElsewhere.contains(excuse)) excused.insert(excuse);
        EXPECT_TRUE(is_checked || kElsewhere.contains(excuse)) << "no gradient case has " << excuse;
      }
    }
  }
  for (const auto& [excuse, reason] : kElsewhere) {
    EXPECT_TRUE(excused.contains(excuse)) << excuse << " (" << reason << ") needs no excuse";
  }
}

TEST(Gradients, ElementwiseOpsAgreeWithCentralDifferences) { ExpectAgreement(BinaryCases()); }
TEST(Gradients, UnaryOpsAgreeWithCentralDifferences) { ExpectAgreement(OneOperandCases()); }
TEST(Gradients, MultiOperandOpsAgreeWithCentralDifferences) { ExpectAgreement(SeveralOperandsCases()); }
TEST(Gradients, ReductionsAgreeWithCentralDifferences) { ExpectAgreement(ReduceCases()); }
TEST(Gradients, PointwiseLossesAgreeWithCentralDifferences) { ExpectAgreement(PointwiseLossCases()); }
TEST(Gradients, LookupsAgreeWithCentralDifferences) { ExpectAgreement(LookupCases()); }
TEST(Gradients, LossesAgreeWithCentralDifferences) { ExpectAgreement(LossCases()); }
TEST(Gradients, MathOpsAgreeWithCentralDifferences) { ExpectAgreement(MathGradientCases()); }
TEST(Gradients, TensorOpsAgreeWithCentralDifferences) { ExpectAgreement(TensorGradientCases()); }
TEST(Gradients, LossOpsAgreeWithCentralDifferences) { ExpectAgreement(LossGradientCases()); }
TEST(Gradients, NnOpsAgreeWithCentralDifferences) { ExpectAgreement(NnGradientCases()); }
TEST(Gradients, DetectionOpsAgreeWithCentralDifferences) { ExpectAgreement(DetectionGradientCases()); }
TEST(Gradients, VisionOpsAgreeWithCentralDifferences) { ExpectAgreement(VisionGradientCases()); }
TEST(Gradients, SequenceOpsAgreeWithCentralDifferences) { ExpectAgreement(SequenceGradientCases()); }
TEST(Gradients, SlicingAndGatheringAgreeWithCentralDifferences) { ExpectAgreement(PartsGradientCases()); }
TEST(Gradients, ProductsAgreeWithCentralDifferences) { ExpectAgreement(ProductsGradientCases()); }
TEST(Gradients, SecondOrderAgreesWithCentralDifferences) { ExpectAgreement(SecondOrderGradientCases()); }
TEST(Gradients, RecommenderOpsAgreeWithCentralDifferences) { ExpectAgreement(RecommendGradientCases()); }
TEST(Gradients, FusedOpsAgreeWithCentralDifferences) { ExpectAgreement(FusedGradientCases()); }

// A program need not be made by append_backward.
TEST(Gradients, RefuseInputsOfDifferentShapes) {
  const Tensor small = Values({2}), x = Values({2, 3});
  const Tensor label = TensorOf<std::int64_t>({2, 1}, {0, 1});
  const Tensors given = {{"X", x},
                         {"Y", x},
                         {"Out", x},
                         {"Softmax", x},
                         {"Label", label},
                         {"Out@GRAD", small},
                         {"Y@GRAD", small},
                         {"Loss@GRAD", small},
                         {"MatchX", small},
                         {"Indices", label},
                         {"XShape", Tensor(DType::kFp64, {0, 2, 3})},
                         {"Kept", Tensor(DType::kFp64, {2, 3, 0})}};
  const auto grad = [](const std::string& type, const std::vector<std::string>& inputs,
                       const std::string& out) {
    Op op(type);
    for (const std::string& slot : inputs) op.AddInput(slot == "Kept" ? "XShape" : slot, {slot});
    return op.AddOutput(out, {out});
  };
  std::vector<Op> ops = {
      grad("relu_grad", {"Out", "Out@GRAD"}, "X@GRAD"),
      grad("square_grad", {"X", "Out@GRAD"}, "X@GRAD"),
      grad("elementwise_add_grad", {"X", "Y", "Out@GRAD"}, "Y@GRAD"),
      grad("top_k_grad", {"X", "Indices", "Out@GRAD"}, "X@GRAD"),
      grad("reshape2_grad", {"XShape", "Out@GRAD"}, "X@GRAD"),
      grad("transpose2_grad", {"XShape", "Out@GRAD"}, "X@GRAD"),
      grad("concat_grad", {"X", "Out@GRAD"}, "X@GRAD"),
      grad("cross_entropy_grad", {"X", "Label", "Y@GRAD"}, "X@GRAD"),
      grad("cross_entropy_grad2", {"Label", "MatchX", "Kept", "Y@GRAD"}, "X@GRAD"),
      grad("softmax_with_cross_entropy_grad", {"Softmax", "Label", "Loss@GRAD"}, "Logits@GRAD")};
  ops[5].Set("axis", std::vector<std::int32_t>{0});
  for (const Op& op : ops) {
    const Result<Tensors> made = RunOp(AllOps(), op, given);
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument)
        << op.type() << ": " << made.status().ToString();
  }
}

TEST(Gradients, AreComputedOnlyForRequestedInputs) {
  const Op op = Op("elementwise_mul").AddInput("X", {"x"}).AddInput("Y", {"y"}).AddOutput("Out", {"o"});
  const Result<std::vector<Op>> grads = MakeGradOps(AllOps(), op, {"y"});
  ASSERT_TRUE(grads.ok());
  const Tensors inputs = {{"x", Values({3})}, {"y", Values({3})}, {"o@GRAD", Values({3})}};
  const Result<Tensors> made = RunOp(AllOps(), grads->at(0), inputs);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(made->size(), 1u);
  EXPECT_TRUE(made->contains("y@GRAD"));
}

}  // namespace

std::vector<GradientCase> AllGradientCases() {
  std::vector<GradientCase> all;
  for (std::vector<GradientCase> (*cases)() :
       {BinaryCases, OneOperandCases, SeveralOperandsCases, ReduceCases, PointwiseLossCases, LookupCases,
        LossCases, MathGradientCases, TensorGradientCases, LossGradientCases, NnGradientCases,
        VisionGradientCases, DetectionGradientCases, SequenceGradientCases, PartsGradientCases,
        ProductsGradientCases, RecommendGradientCases, SecondOrderGradientCases, FusedGradientCases}) {
    for (GradientCase& c : cases()) all.push_back(std::move(c));
  }
  return all;
}

}  // namespace penstock::test
