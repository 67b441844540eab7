// Cases in which Fluid 1.8.5 does not compute what its documentation says: our values follow the formula or
// central differences, and each case describes Fluid's result. corpus_test.cc and rows_test.cc list such
// cases of the corpus.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "operators/common/convert.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/rows_runner.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Difference {
  std::string fluid;  // Fluid's result
  Op op;
  Tensors inputs;
  std::string out;
  std::vector<double> expected;
};

Op Binary(const std::string& type) { return WithSlots(type, {"X", "Y"}, {"Out"}); }
Op Single(const std::string& type) { return WithSlots(type, {"X"}, {"Out"}); }
Tensor Vector(std::initializer_list<float> values) {
  return TensorOf<float>({static_cast<Dim>(values.size())}, values);
}

std::vector<Difference> Reductions() {
  const std::string unwritten = "has no kernel for as many extents and leaves Out as it was";
  const Tensor box = Ramp(DType::kFp32, {2, 2, 2}, 1, 1);
  const Tensor deep = Ramp(DType::kFp32, {1, 2, 1, 1, 1, 2}, 1, 1);
  return {{unwritten, Single("reduce_sum").Set("dim", Ints{0, 1, 2}), {{"X", box}}, "Out", {36}},
          {unwritten, Single("reduce_mean").Set("dim", Ints{0, 1, 2}), {{"X", box}}, "Out", {4.5}},
          {unwritten, Single("reduce_max").Set("dim", Ints{0, 2, 4}), {{"X", deep}}, "Out", {1, 2, 3, 4}},
          {unwritten, Single("reduce_prod").Set("dim", Ints{-1}), {{"X", deep}}, "Out", {2, 12}},
          {"takes an extent that is named twice for two",
           Single("reduce_sum").Set("dim", Ints{0, 0}),
           {{"X", TensorOf<float>({2, 2}, {1, 2, 3, 4})}},
           "Out",
           {4, 6}}};
}

std::vector<Difference> Broadcasts() {
  const std::string exchanged = "exchanges X and Y where X has the lower rank";
  const std::string as_x = "gives Out the shape of X, though Y has larger extents, and writes beyond its end";
  const Tensor low = Vector({2, 3}), high = TensorOf<float>({1, 2}, {5, 2});
  const Tensor few = TensorOf<std::int32_t>({2}, {7, 9}), many = TensorOf<std::int32_t>({1, 2}, {2, 4});
  return {{exchanged, Binary("elementwise_pow"), {{"X", low}, {"Y", high}}, "Out", {32, 9}},
          {exchanged, Binary("elementwise_mod"), {{"X", few}, {"Y", many}}, "Out", {1, 1}},
          {exchanged, Binary("elementwise_floordiv"), {{"X", few}, {"Y", many}}, "Out", {3, 2}},
          {as_x,
           Binary("less_than"),
           {{"X", TensorOf<float>({2, 1}, {1, 3})}, {"Y", TensorOf<float>({1, 2}, {2, 4})}},
           "Out",
           {1, 1, 0, 1}}};
}

std::vector<Difference> Elements() {
  return {{"compares |X - Y| with 1e-8: infinities differ, small numbers are alike",
           Binary("equal"),
           {{"X", Vector({kInf, 0, 1})}, {"Y", Vector({kInf, 1e-9f, 1})}},
           "Out",
           {1, 0, 1}},
          {"compares |X - Y| with 1e-8",
           Binary("not_equal"),
           {{"X", Vector({kInf, 0})}, {"Y", Vector({kInf, 1e-9f})}},
           "Out",
           {0, 1}},
          {"divides by the norm 0",
           Single("clip_by_norm").Set("max_norm", 1.0f),
           {{"X", Vector({0, 0})}},
           "Out",
           {0, 0}},
          {"takes the larger of X and alpha * X, whatever alpha is",
           Single("leaky_relu").Set("alpha", 1.5f),
           {{"X", Vector({-2, 2})}},
           "Out",
           {-3, 2}},
          {"reads inf and nan as 0",
           Op("fill_constant")
               .AddOutput("Out", {"Out"})
               .Set("shape", std::vector<std::int64_t>{1})
               .Set("str_value", "inf"),
           {},
           "Out",
           {static_cast<double>(kInf)}},
          {"rounds halves up in what is left over of its vectors, and to the even number elsewhere",
           Single("round"),
           {{"X", Vector({-2.5f, -1.5f, -0.4f, 0.5f, 1.5f, 2.6f})}},
           "Out",
           {-2, -2, 0, 0, 2, 3}},
          {"orders equal elements as its sort happens to leave them",
           WithSlots("top_k", {"X"}, {"Out", "Indices"}).Set("k", 3),
           {{"X", Vector({1, 3, 3, 3, 2})}},
           "Indices",
           {1, 2, 3}},
          {"passes attribute curve over, and gives the area under the ROC curve",
           [] {
             Op op = WithSlots("auc", {"Predict", "Label", "StatPos", "StatNeg"},
                               {"AUC", "StatPosOut", "StatNegOut"});
             return op.Set("curve", "PR").Set("num_thresholds", 10).Set("slide_steps", 0);
           }(),
           {{"Predict", TensorOf<float>({3, 1}, {0.9f, 0.5f, 0.1f})},
            {"Label", TensorOf<std::int64_t>({3, 1}, {0, 1, 0})},
            {"StatPos", Ramp(DType::kInt64, {11}, 0, 0)},
            {"StatNeg", Ramp(DType::kInt64, {11}, 0, 0)}},
           "AUC",
           {0.5}}};
}

std::vector<Difference> Losses() {
  const Op sigmoid =
      WithSlots("sigmoid_cross_entropy_with_logits", {"X", "Label"}, {"Out"}).Set("ignore_index", 0);
  const double half = std::log(2.0);  // for X = 0
  return {{"takes a label's whole part for it: 0.75 counts as 0",
           sigmoid,
           {{"X", Vector({0, 0})}, {"Label", Vector({0.75f, 0})}},
           "Out",
           {half, 0}},
          {"divides by 0 where every label is ignored",
           Op(sigmoid).Set("normalize", true),
           {{"X", Vector({0, 1})}, {"Label", Vector({0, 0})}},
           "Out",
           {0, 0}}};
}

std::vector<Difference> Images() {
  const Tensor image = Ramp(DType::kFp32, {1, 1, 2, 2}, 1, 1);
  return {{"takes the first elements instead of the largest ones",
           Single("pool2d").Set("pooling_type", "max").Set("ksize", Ints{1, 1}).Set("adaptive", true),
           {{"X", image}},
           "Out",
           {4}},
          {"leaves Bias out unless its fused backend is used",
           WithSlots("conv2d", {"Input", "Filter", "Bias"}, {"Output"}),
           {{"Input", image}, {"Filter", TensorOf<float>({1, 1, 1, 1}, {2})}, {"Bias", Vector({10})}},
           "Output",
           {12, 14, 16, 18}},
          {"copies the whole of X where a negative axis is cut",
           Op("split").AddInput("X", {"X"}).AddOutput("Out", {"a", "b"}).Set("axis", -2).Set("num", 2),
           {{"X", TensorOf<float>({2, 2}, {1, 2, 3, 4})}},
           "b",
           {3, 4}},
          {"takes the groups of the forward op for those of the gradient, and does not go back",
           WithSlots("shuffle_channel_grad", {"Out@GRAD"}, {"X@GRAD"}).Set("group", 3),
           {{"Out@GRAD", Ramp(DType::kFp32, {1, 6, 1, 1}, 0, 1)}},
           "X@GRAD",
           {0, 3, 1, 4, 2, 5}},
          {"leaves out most of what goes through sigma",
           WithSlots("spectral_norm_grad", {"Weight", "U", "V", "Out@GRAD"}, {"Weight@GRAD"})
               .Set("power_iters", 0),
           {{"Weight", TensorOf<float>({2, 2}, {1, 0, 0, 2})},
            {"U", Vector({0, 1})},
            {"V", Vector({0, 1})},
            {"Out@GRAD", TensorOf<float>({2, 2}, {1, 1, 1, 1})}},
           "Weight@GRAD",
           {0.5, 0.5, 0.5, -0.25}}};
}

Tensor InSequences(Tensor tensor, const LoD& lod) {
  tensor.set_lod(lod);
  return tensor;
}

std::vector<Difference> Steps() {
  const Op lstmp = WithSlots("lstmp", {"Input", "Weight", "ProjWeight", "Bias"},
                             {"Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"});
  const auto zeros = [](const Shape& shape) { return Ramp(DType::kFp32, shape, 0, 0); };
  const Tensor one = TensorOf<float>({1, 1}, {1});
  return {{"applies cell_activation to the projection too, unless proj_activation is identity",
           Op(lstmp).Set("use_peepholes", false).Set("proj_activation", "sigmoid"),
           {{"Input", InSequences(zeros({1, 4}), {{0, 1}})},
            {"Weight", zeros({1, 4})},
            {"ProjWeight", one},
            {"Bias", zeros({1, 4})}},
           "Projection",
           {0.5}},
          {"begins beside the start where a stride is below -1",
           WithSlots("strided_slice", {"Input"}, {"Out"})
               .Set("axes", Ints{0})
               .Set("starts", Ints{-1})
               .Set("ends", Ints{0})
               .Set("strides", Ints{-2}),
           {{"Input", Ramp(DType::kFp32, {5}, 0, 1)}},
           "Out",
           {4, 2}}};
}

// Fluid hides NaN in three ways. Here it propagates (kNanRule); nan_test.cc tests all ops.
std::vector<Difference> HiddenNans() {
  const std::string first = "sees a NaN only if it is the first element";
  const Tensor second = Vector({1, kNan, 3, 2}), row = TensorOf<float>({1, 4}, {1, kNan, 3, 2});
  const Op rank = WithSlots("margin_rank_loss", {"X1", "X2", "Label"}, {"Out", "Activated"});
  const double nan = kNan;
  return {
      {"passes over NaN", Single("reduce_max").Set("reduce_all", true), {{"X", second}}, "Out", {nan}},
      {"passes over NaN", Single("reduce_min").Set("reduce_all", true), {{"X", second}}, "Out", {nan}},
      {"takes Y where X is NaN",
       Binary("elementwise_max"),
       {{"X", Vector({kNan, 1})}, {"Y", Vector({1, kNan})}},
       "Out",
       {nan, nan}},
      {"takes Y where X is NaN",
       Binary("elementwise_min"),
       {{"X", Vector({kNan, 1})}, {"Y", Vector({1, kNan})}},
       "Out",
       {nan, nan}},
      {first, Single("maxout").Set("groups", 4), {{"X", row.Reshaped({1, 4, 1, 1})}}, "Out", {nan}},
      {first,
       Single("pool2d").Set("pooling_type", "max").Set("ksize", Ints{2, 2}),
       {{"X", row.Reshaped({1, 1, 2, 2})}},
       "Out",
       {nan}},
      {first,
       WithSlots("sequence_pool", {"X"}, {"Out", "MaxIndex"}).Set("pooltype", "MAX"),
       {{"X", InSequences(row.Reshaped({4, 1}), {{0, 4}})}},
       "Out",
       {nan}},
      {"gives 0", Single("sign"), {{"X", Vector({kNan, -2})}}, "Out", {nan, -1}},
      {"gives 0", rank, {{"X1", Vector({kNan})}, {"X2", Vector({1})}, {"Label", Vector({1})}}, "Out", {nan}}};
}

std::vector<Difference> OtherNans() {
  const std::string vectors = "gives another number for NaN where it takes eight elements at once";
  const std::string gate = "gives no gradient where what is compared is NaN";
  const std::string sorts = "orders NaN as its comparisons happen to leave it";
  const Tensor eight = Vector({kNan, 0, 0, 0, 0, 0, 0, 0}), second = Vector({1, kNan, 3, 2});
  const Tensor ones = Vector({1, 1, 1, 1});
  const Op relu = WithSlots("relu_grad", {"Out", "Out@GRAD"}, {"X@GRAD"});
  Op ftrl = WithSlots("ftrl", {"Param", "Grad", "SquaredAccumulator", "LinearAccumulator", "LearningRate"},
                      {"ParamOut", "SquaredAccumOut", "LinearAccumOut"});
  const Op dpsgd = WithSlots("dpsgd", {"Param", "Grad", "LearningRate"}, {"ParamOut"}).Set("sigma", 0.0f);
  const double nan = kNan;
  return {{vectors, Single("exp"), {{"X", eight}}, "Out", {nan, 1, 1, 1, 1, 1, 1, 1}},
          {vectors, Single("tanh"), {{"X", eight}}, "Out", {nan, 0, 0, 0, 0, 0, 0, 0}},
          {vectors, Single("sigmoid"), {{"X", eight}}, "Out", {nan, .5, .5, .5, .5, .5, .5, .5}},
          {gate, relu, {{"Out", second}, {"Out@GRAD", ones}}, "X@GRAD", {1, nan, 1, 1}},
          {gate,
           WithSlots("leaky_relu_grad", {"Out", "Out@GRAD"}, {"X@GRAD"}).Set("alpha", 0.5f),
           {{"Out", second}, {"Out@GRAD", ones}},
           "X@GRAD",
           {1, nan, 1, 1}},
          {gate,
           WithSlots("clip_grad", {"X", "Out@GRAD"}, {"X@GRAD"}).Set("min", 0.0f).Set("max", 2.5f),
           {{"X", second}, {"Out@GRAD", ones}},
           "X@GRAD",
           {1, nan, 0, 1}},
          {sorts, Single("arg_max").Set("axis", std::int64_t{0}), {{"X", second}}, "Out", {1}},
          {sorts, WithSlots("argsort", {"X"}, {"Out", "Indices"}), {{"X", second}}, "Indices", {0, 3, 2, 1}},
          {sorts, WithSlots("top_k", {"X"}, {"Out", "Indices"}).Set("k", 1), {{"X", second}}, "Out", {nan}},
          {"makes the parameter 0",
           ftrl.Set("l1", 0.1f),
           {{"Param", Vector({1})},
            {"Grad", Vector({kNan})},
            {"SquaredAccumulator", Vector({1})},
            {"LinearAccumulator", Vector({1})},
            {"LearningRate", Vector({0.1f})}},
           "ParamOut",
           {nan}},
          {"leaves the norm out that is NaN, and moves the other elements",
           dpsgd,
           {{"Param", Vector({1, 1})}, {"Grad", Vector({kNan, 1})}, {"LearningRate", Vector({0.1f})}},
           "ParamOut",
           {nan, nan}}};
}

TEST(WhereFluidDiffers, ValuesAreThoseOfTheFormula) {
  for (const auto& group :
       {Reductions(), Broadcasts(), Elements(), Losses(), Images(), Steps(), HiddenNans(), OtherNans()}) {
    for (const Difference& row : group) {
      SCOPED_TRACE(StrCat(PrintOp(row.op), "; Fluid ", row.fluid));
      const Tensor made = RunOne(row.op, row.inputs, row.out);
      ASSERT_EQ(static_cast<std::size_t>(made.count()), row.expected.size());
      for (std::size_t i = 0; i < row.expected.size(); ++i) {
        const auto value = static_cast<float>(ElementAt(made, static_cast<std::int64_t>(i)));
        if (std::isnan(row.expected[i])) {
          EXPECT_TRUE(std::isnan(value)) << "element " << i << " is " << value;
        } else {
          EXPECT_FLOAT_EQ(value, static_cast<float>(row.expected[i]));
        }
      }
    }
  }
}

// Fluid gives it a shape without extents, which no other op accepts.
TEST(WhereFluidDiffers, ArgMaxOfAVectorHasOneElement) {
  const Op op = Single("arg_max").Set("axis", std::int64_t{0});
  const Tensor place = RunOne(op, {{"X", Vector({1, 9, 3})}}, "Out");
  EXPECT_EQ(place.shape(), Shape{1});
  ExpectValues(place, {1});
}

// Fluid truncates to half precision instead of rounding.
TEST(WhereFluidDiffers, HalfPrecisionIsRounded) {
  const Op op = Single("cast").Set("in_dtype", 5).Set("out_dtype", 4);
  const Tensor half = RunOne(op, {{"X", Vector({-35.18f, 35.18f})}}, "Out");
  Tensor made(DType::kFp32, half.shape());
  ConverterOf(half.dtype(), made.dtype())(half, made);
  ExpectValues(made, {-35.1875, 35.1875});
}

struct GradientDifference {
  std::string fluid;
  GradientCase c;
};

std::vector<GradientDifference> Gradients() {
  GradientCase swish = Unary("hard_swish", {3, 5}, -4);
  swish.op.Set("threshold", 3.0f).Set("scale", 4.0f).Set("offset", 1.0f);
  GradientCase elu = Unary("elu", {2});
  elu.inputs["X"] = TensorOf<double>({2}, {1000, -1});
  GradientCase sigmoid_swish = Unary("swish", {2});
  sigmoid_swish.inputs["X"] = TensorOf<double>({2}, {-1000, 1000});
  GradientCase pad = Unary("pad", {2, 3});
  pad.op.Set("paddings", Ints{1, 0, 2, 1});
  GradientCase pool = Unary("pool2d", {1, 2, 5, 4});
  pool.op.Set("pooling_type", "max").Set("ksize", Ints{3, 2}).Set("adaptive", true);
  GradientCase entropy{"softmax_with_cross_entropy",
                       WithSlots("softmax_with_cross_entropy", {"Logits", "Label"}, {"Softmax", "Loss"}),
                       {{"Logits", Values({3, 4})}, {"Label", TensorOf<std::int64_t>({3, 1}, {1, 3, -1})}},
                       {.of = {"Loss"}, .wanted = {"Logits"}}};
  GradientCase other = entropy;
  entropy.op.Set("ignore_index", -1);
  other.op.Set("ignore_index", 3);
  other.inputs["Label"] = TensorOf<std::int64_t>({3, 1}, {1, 3, 3});
  GradientCase transposed{"conv2d_transpose",
                          WithSlots("conv2d_transpose", {"Input", "Filter"}, {"Output"}),
                          {{"Input", Values({1, 3, 4, 2})}, {"Filter", Values({2, 1, 3, 3}, -1, 1, 5)}},
                          {.of = {"Output"}, .wanted = {"Input", "Filter"}}};
  transposed.op.Set("data_format", "NHWC").Set("paddings", Ints{1, 1});
  GradientCase context{
      "sequence_conv",
      WithSlots("sequence_conv", {"X", "Filter"}, {"Out"}),
      {{"X", InSequences(Values({5, 2}), {{0, 3, 5}})}, {"Filter", Values({4, 3}, -1, 1, 5)}},
      {.of = {"Out"}, .wanted = {"X", "Filter"}}};
  context.op.Set("contextLength", 2).Set("contextStart", 1).Set("contextStride", 1);
  GradientCase all = Unary("reduce_sum", {2, 3, 1, 2});
  all.op.Set("dim", Ints{-4}).Set("keep_dim", true).Set("reduce_all", true);
  return {{"tests X against the bounds of other parameters", swish},
          {"multiplies exp(X), which is infinite, by 0", elu},
          {"multiplies exp(-X), which is infinite, by 0", sigmoid_swish},
          {"takes elements beside those that X became, of f64", pad},
          {"finds the largest elements in windows of its other pooling", pool},
          {"gives rows that do not count a gradient, from memory before theirs", entropy},
          {"gives rows that do not count a gradient", other},
          {"pads along the channels where they are last", transposed},
          {"adds up rows beside those that the filter met, where the context begins after its row", context},
          {"reads beyond Out@GRAD where reduce_all keeps the extents", all}};
}

std::vector<GradientDifference> GradientsOfParts() {
  GradientCase scatter{"scatter",
                       WithSlots("scatter", {"X", "Ids", "Updates"}, {"Out"}),
                       {{"X", Values({3, 2})},
                        {"Ids", TensorOf<std::int64_t>({2}, {1, 1})},
                        {"Updates", Values({2, 2}, -1, 1, 5)}},
                       {.of = {"Out"}, .wanted = {"X", "Updates"}}};
  GradientCase soft = Unary("soft_relu", {2, 5});
  soft.op.Set("threshold", 1.0f);
  GradientCase slots{
      "data_norm",
      WithSlots("data_norm", {"X", "BatchSize", "BatchSum", "BatchSquareSum"}, {"Y", "Means", "Scales"}),
      {{"X", TensorOf<double>({1, 4}, {0, 2, 3, 4})},
       {"BatchSize", Values({4}, 3, 5)},
       {"BatchSum", Values({4}, 1, 2)},
       {"BatchSquareSum", Values({4}, 6, 9)}},
      {.of = {"Y"}, .wanted = {"X"}, .step = 1e-8, .tolerance = 1e-5}};
  slots.op.Set("slot_dim", 2);
  GradientCase fused{"fused_elemwise_activation",
                     WithSlots("fused_elemwise_activation", {"X", "Y"}, {"Out"})
                         .Set("functor_list", std::vector<std::string>{"elementwise_mul", "tanh"}),
                     {{"X", Values({2, 3})}, {"Y", Values({2, 3}, -1, 1, 5)}},
                     {.of = {"Out"}, .wanted = {"X", "Y"}}};
  return {
      {"takes the inner tanh or sigmoid for its own argument unless its result is kept", fused},
      {"gives rows of X that were replaced, and updates that were, the gradient of those that stay", scatter},
      {"takes Out, which is positive, for X where it tests the lower threshold", soft},
      {"gives slots that were not shown a gradient, unless scale_w is used", slots}};
}

TEST(WhereFluidDiffers, GradientsAreThoseOfCentralDifferences) {
  for (const auto& group : {Gradients(), GradientsOfParts()}) {
    for (const GradientDifference& row : group) {
      const Status status = CheckGradient(AllOps(), row.c.op, row.c.inputs, row.c.check);
      EXPECT_TRUE(status.ok()) << PrintOp(row.c.op) << "; Fluid " << row.fluid << ": " << status.ToString();
    }
  }
}

// Fluid uses the second extent of the values as the width of a row.
TEST(WhereFluidDiffers, SelectedRowsMayHaveAnyRank) {
  Variables variables;
  for (const char* name : {"a", "b"}) {
    variables[name] = std::make_unique<Variable>();
    variables[name]->As<SelectedRows>() = {{1, 0}, 3, TensorOf<float>({2, 1, 2}, {1, 2, 3, 4})};
  }
  const Op sum = Op("sum").AddInput("X", {"a", "b"}).AddOutput("Out", {"sum"});
  const Op merge = Op("merge_selected_rows").AddInput("X", {"a"}).AddOutput("Out", {"merged"});
  ASSERT_TRUE(RunTwice(sum, variables).ok());
  EXPECT_EQ(variables["sum"]->If<SelectedRows>()->value.shape(), (Shape{2, 1, 2}));
  ExpectValues(variables["sum"]->If<SelectedRows>()->value, {6, 8, 2, 4});
  ASSERT_TRUE(RunTwice(merge, variables).ok());
  ExpectValues(variables["merged"]->If<SelectedRows>()->value, {1, 2, 3, 4});
}

// Selected rows of height 6 whose row i has the value i + 1 in its only column.
void PutRows(Variables& variables, const std::string& name, std::vector<std::int64_t> rows) {
  const auto count = static_cast<Dim>(rows.size());
  variables[name] = std::make_unique<Variable>();
  variables[name]->As<SelectedRows>() = {std::move(rows), 6, Ramp(DType::kFp32, {count, 1}, 1, 1)};
}

void PutTensor(Variables& variables, const std::string& name, Tensor tensor) {
  variables[name] = std::make_unique<Variable>();
  variables[name]->As<Tensor>() = std::move(tensor);
}

const SelectedRows& RowsOf(const Variables& variables, const std::string& name) {
  return *variables.at(name)->If<SelectedRows>();
}

// Fluid gives each of equal ids the values of the last one, so that a gradient is lost and another is added
// twice.
TEST(WhereFluidDiffers, EqualIdsKeepTheirOwnRowsWhenTheyAreSplit) {
  Variables variables;
  PutRows(variables, "g", {4, 1, 4, 5, 1});
  const Op split = Op("split_ids").AddInput("Ids", {"g"}).AddOutput("Out", {"even", "odd"});
  ASSERT_TRUE(RunTwice(split, variables).ok());
  EXPECT_EQ(RowsOf(variables, "even").rows, (std::vector<std::int64_t>{4, 4}));
  ExpectValues(RowsOf(variables, "even").value, {1, 3});
  EXPECT_EQ(RowsOf(variables, "odd").rows, (std::vector<std::int64_t>{1, 5, 1}));
  ExpectValues(RowsOf(variables, "odd").value, {2, 4, 5});
}

// Fluid lists the rows of padding_idx, also a negative one, with the gradient of their zeros: an update then
// changes the row of padding_idx, or writes before the table.
TEST(WhereFluidDiffers, SparseGradientsOmitPaddingRows) {
  for (const char* type : {"lookup_table_grad", "lookup_table_v2_grad"}) {
    for (const std::int64_t padding : {4, -2}) {
      SCOPED_TRACE(StrCat(type, " with padding_idx ", padding));
      Variables variables;
      PutTensor(variables, "w", Ramp(DType::kFp32, {6, 1}, 1, 1));
      PutTensor(variables, "ids", TensorOf<std::int64_t>({4, 1}, {5, padding, 0, padding}));
      const bool v2 = std::string_view(type) == "lookup_table_v2_grad";
      PutTensor(variables, "dout", Ramp(DType::kFp32, v2 ? Shape{4, 1, 1} : Shape{4, 1}, 1, 1));
      Op op = Op(type).AddInput("W", {"w"}).AddInput("Ids", {"ids"}).AddInput("Out@GRAD", {"dout"});
      op.AddOutput("W@GRAD", {"dw"}).Set("padding_idx", padding).Set("is_sparse", true);
      const Status status = RunTwice(op, variables);
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(RowsOf(variables, "dw").rows, (std::vector<std::int64_t>{5, 0}));
      ExpectValues(RowsOf(variables, "dw").value, {1, 3});
    }
  }
}

// Fluid looks up the row of padding_idx like any other, and adds rows without auto_grown_table, too. In test
// mode both give zeros for a row that is not there, and add none.
TEST(WhereFluidDiffers, GrowingTablesApplyPaddingAndCanBeFixed) {
  Variables variables;
  PutRows(variables, "w", {3, 5});
  PutTensor(variables, "ids", TensorOf<std::int64_t>({3, 1}, {5, 2, 3}));
  Op op = Op("lookup_sparse_table").AddInput("W", {"w"}).AddInput("Ids", {"ids"}).AddOutput("Out", {"out"});
  op.Set("is_test", true);
  ASSERT_TRUE(RunTwice(op, variables).ok());
  ExpectValues(*variables["out"]->If<Tensor>(), {2, 0, 1});
  op.Set("padding_idx", std::int64_t{5});
  ASSERT_TRUE(RunTwice(op, variables).ok());
  ExpectValues(*variables["out"]->If<Tensor>(), {0, 0, 1});
  EXPECT_EQ(RowsOf(variables, "w").rows, (std::vector<std::int64_t>{3, 5})) << "test mode adds no rows";
  op.Set("is_test", false).Set("auto_grown_table", false);
  EXPECT_EQ(RunTwice(op, variables).id(), "E-op-index");
}

}  // namespace
}  // namespace penstock::test
