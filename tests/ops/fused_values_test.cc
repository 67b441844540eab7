// Values of the fused ops of inference programs. The expected numbers are NumPy's, by the formulas of the
// single ops.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

const LoD kOneAndTwo = {{0, 1, 3}};

TEST(Fc, EqualsMulAddAndRelu) {
  const Op op = WithSlots("fc", {"Input", "W", "Bias"}, {"Out"});
  Tensors inputs = {{"Input", Mixed({2, 1, 3})}, {"W", Mixed({3, 2}, 2)}, {"Bias", Mixed({2}, 3)}};
  ExpectNear(RunOne(op, inputs, "Out"), {-0.14551710963, 0.556514475426, -0.310268611804, 0.476907918261});
  const Op relu = Op(op).Set("activation_type", "relu");
  ExpectNear(RunOne(relu, inputs, "Out"), {0, 0.556514475426, 0, 0.476907918261});
  EXPECT_EQ(RunOne(Op(op).Set("in_num_col_dims", 2), inputs, "Out").shape(), (Shape{2, 1, 2}));
  inputs["W"] = Mixed({7, 6}, 2);
  const Op padded = Op(op).Set("padding_weights", true);
  ExpectNear(RunOne(padded, inputs, "Out"),
             {-0.307973914398, 0.818329580657, -0.132145636537, 0.495710668525});
}

TEST(FusionRepeatedFcRelu, EqualsSeparateLayers) {
  const Op op = Op("fusion_repeated_fc_relu")
                    .AddInput("X", {"x"})
                    .AddInput("W", {"w0", "w1"})
                    .AddInput("Bias", {"b0", "b1"})
                    .AddOutput("ReluOut", {"relu"})
                    .AddOutput("Out", {"out"});
  const Tensors inputs = {{"x", Mixed({2, 3})},
                          {"w0", Mixed({3, 2}, 2)},
                          {"b0", Mixed({2}, 3)},
                          {"w1", Mixed({2, 2}, 4)},
                          {"b1", Values({1, 2}, 0, 1, 5)}};
  ExpectNear(RunOne(op, inputs, "relu"), {0, 0.556514475426, 0, 0.476907918261});
  ExpectNear(RunOne(op, inputs, "out"), {0.283384674296, 0.589308385136, 0.309797816911, 0.517322411639});
}

TEST(FusionSquaredMatSub, SubtractsProductOfSquaresFromSquaredProduct) {
  const Op op = WithSlots("fusion_squared_mat_sub", {"X", "Y"}, {"SquaredX", "SquaredY", "SquaredXY", "Out"});
  const Tensors inputs = {{"X", Mixed({2, 3})}, {"Y", Mixed({3, 2}, 2)}};
  ExpectNear(RunOne(Op(op).Set("scalar", 0.5f), inputs, "Out"),
             {0.0753690424765, -0.0673619764089, 0.119493287561, 0.0908242839347});
}

Op FusionGru() {
  return WithSlots("fusion_gru", {"X", "WeightX", "WeightH", "Bias", "H0"},
                   {"ReorderedH0", "XX", "BatchedInput", "BatchedOut", "Hidden"});
}

TEST(FusionGru, EqualsMulAndGru) {
  Op op = FusionGru();
  const Tensors inputs = {{"X", InRows(Mixed({3, 2}), kOneAndTwo)},
                          {"WeightX", Mixed({2, 6}, 2)},
                          {"WeightH", Mixed({2, 6}, 3)},
                          {"Bias", Mixed({1, 6}, 4)},
                          {"H0", Mixed({2, 2}, 5)}};
  const Tensor hidden = RunOne(op, inputs, "Hidden");
  ExpectNear(hidden, {0.036557073344, -0.745098211267, 0.178046715821, -0.561015267007, -0.0753353318825,
                      -0.371077641771});
  EXPECT_EQ(hidden.lod(), kOneAndTwo);
  op.RemoveInput("Bias").RemoveInput("H0").Set("is_reverse", true).Set("origin_mode", true);
  ExpectNear(RunOne(op, inputs, "Hidden"), {0.355039011525, -0.0647241217081, -0.110810343828,
                                            -0.041624555222, -0.0373621252987, 0.314675987134});
}

TEST(FusionGru, OptionalOutputsMayBeOmitted) {
  const Op op = WithSlots("fusion_gru", {"X", "WeightX", "WeightH"}, {"Hidden"});
  const Tensors inputs = {
      {"X", InRows(Mixed({3, 2}), kOneAndTwo)}, {"WeightX", Mixed({2, 6}, 2)}, {"WeightH", Mixed({2, 6}, 3)}};
  Op whole = FusionGru();
  whole.RemoveInput("Bias").RemoveInput("H0");
  const Tensor expected = RunOne(whole, inputs, "Hidden");
  EXPECT_TRUE(Near(RunOne(op, inputs, "Hidden"), expected, 0, 0).ok());
}

Op WithSteps(const std::string& type, const std::vector<std::string>& inputs) {
  return WithSlots(
      type, inputs,
      {"Hidden", "Cell", "XX", "BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0"});
}

TEST(FusionLstm, EqualsMulAndLstm) {
  Op op = WithSteps("fusion_lstm", {"X", "WeightX", "WeightH", "Bias", "H0", "C0"});
  op.AddOutput("CheckedCell", {"CheckedCell"}).Set("is_reverse", true);
  Tensors inputs = {{"X", InRows(Mixed({3, 2}), kOneAndTwo)},
                    {"WeightX", Mixed({2, 8}, 2)},
                    {"WeightH", Mixed({2, 8}, 3)},
                    {"Bias", Mixed({1, 14}, 4)},
                    {"H0", Mixed({2, 2}, 5)},
                    {"C0", Mixed({2, 2}, 6)}};
  ExpectNear(RunOne(op, inputs, "Hidden"), {0.151923095903, 0.134019333802, -0.407543097854, 0.164319538734,
                                            -0.470528177076, -0.0211659390608});
  ExpectNear(RunOne(op, inputs, "Cell"), {0.356702643546, 0.487082162734, -0.799908971385, 0.348158004166,
                                          -0.652392401824, -0.0821911765147});
  Tensor bias(DType::kFp64, {1, 8});
  std::memcpy(bias.raw(), inputs["Bias"].raw(), bias.bytes());
  inputs["Bias"] = bias;
  op.RemoveInput("H0").RemoveInput("C0").Set("is_reverse", false).Set("use_peepholes", false);
  ExpectNear(RunOne(op, inputs, "Hidden"), {-0.143360408972, 0.261566075164, -0.172481109948, 0.134467539193,
                                            -0.232619992378, -0.0763971120105});
}

TEST(FusedEmbeddingFcLstm, EqualsLookupAndLstm) {
  const Op op = WithSteps("fused_embedding_fc_lstm", {"Ids", "Embeddings", "WeightH", "Bias", "H0", "C0"});
  Tensors inputs = {{"Ids", InRows(TensorOf<std::int64_t>({3, 1}, {3, 0, 2}), kOneAndTwo)},
                    {"Embeddings", Mixed({4, 8}, 2)},
                    {"WeightH", Mixed({2, 8}, 3)},
                    {"Bias", Mixed({1, 14}, 4)},
                    {"H0", Mixed({2, 2}, 5)},
                    {"C0", Mixed({2, 2}, 6)}};
  ExpectNear(RunOne(op, inputs, "Hidden"), {0.221234577002, 0.0527706827031, -0.196336127601, 0.154932975072,
                                            -0.494221092991, 0.235570794264});
  ExpectNear(RunOne(op, inputs, "Cell"),
             {0.311238685166, 0.180251633438, -0.79124800155, 0.518994747878, -0.86879760392, 0.47657444123});
  inputs["Ids"] = InRows(TensorOf<std::int64_t>({3, 1}, {3, 4, 2}), kOneAndTwo);
  ExpectError(op, inputs, "fused_embedding_fc_lstm: id 4 is outside the table of 4 rows");
}

TEST(AttentionLstm, TakesAMeanOfTheSequenceAtEachStep) {
  Op op = WithSlots("attention_lstm",
                    {"X", "C0", "H0", "AttentionWeight", "AttentionBias", "AttentionScalar",
                     "AttentionScalarBias", "LSTMWeight", "LSTMBias"},
                    {"Hidden", "Cell", "AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT"});
  const Tensors inputs = {{"X", InRows(Mixed({3, 2}), kOneAndTwo)},
                          {"C0", Mixed({2, 2}, 6)},
                          {"H0", Mixed({2, 2}, 5)},
                          {"AttentionWeight", Mixed({4, 1}, 2)},
                          {"AttentionBias", TensorOf<double>({1, 1}, {0.5})},
                          {"AttentionScalar", TensorOf<double>({1, 1}, {2})},
                          {"AttentionScalarBias", TensorOf<double>({1, 1}, {-0.25})},
                          {"LSTMWeight", Mixed({4, 8}, 3)},
                          {"LSTMBias", Mixed({1, 8}, 4)}};
  ExpectNear(RunOne(op, inputs, "Hidden"), {0.151859078715, 0.00924338335665, -0.0186025590736,
                                            -0.100960538351, 0.0961260857568, -0.107226199194});
  ExpectNear(RunOne(op, inputs, "Cell"), {0.358266741604, 0.0266258911477, -0.0348328325727, -0.296393974636,
                                          0.18485199456, -0.341719760304});
  EXPECT_EQ(RunOne(op, inputs, "AttentionFCOut").shape(), (Shape{2, 1}));
  for (const char* slot : {"H0", "AttentionBias", "AttentionScalar", "AttentionScalarBias"})
    op.RemoveInput(slot);
  ExpectNear(RunOne(op, inputs, "Hidden"), {0.100720107561, 0.194166292161, -0.0158196656913,
                                            -0.0105057805239, 0.117542975077, -0.0798246612953});
}

TEST(FusionSeqconvEltaddRelu, EqualsConvolutionBiasAndRelu) {
  const Op op = WithSlots("fusion_seqconv_eltadd_relu", {"X", "Filter", "Bias"}, {"Out", "ColMat"})
                    .Set("contextLength", 3)
                    .Set("contextStart", -1);
  const Tensors inputs = {
      {"X", InRows(Mixed({4, 2}), {{0, 1, 4}})}, {"Filter", Mixed({6, 2}, 2)}, {"Bias", Mixed({1, 2}, 3)}};
  ExpectNear(RunOne(op, inputs, "Out"),
             {0.916571530317, 0, 0, 0.514216471363, 1.23706827692, 0, 0.901333340408, 0});
}

TEST(FusionSeqexpandConcatFc, ExpandsRowsOverTheirSequences) {
  const Op op = Op("fusion_seqexpand_concat_fc")
                    .AddInput("X", {"x0", "x1", "x2"})
                    .AddInput("FCWeight", {"w"})
                    .AddInput("FCBias", {"b"})
                    .AddOutput("Out", {"out"})
                    .AddOutput("FCOut", {"shared"})
                    .Set("fc_activation", "tanh");
  Tensors inputs = {{"x0", InRows(Mixed({3, 2}), kOneAndTwo)},
                    {"x1", Mixed({2, 1}, 2)},
                    {"x2", Mixed({2, 2}, 3)},
                    {"w", Mixed({5, 2}, 4)},
                    {"b", Mixed({2}, 5)}};
  ExpectNear(RunOne(op, inputs, "out"), {-0.377989094473, -0.202160126268, 0.607145849036, -0.810743618754,
                                         0.681421204968, -0.980361553357});
  ExpectNear(RunOne(op, inputs, "shared"),
             {0.521298745429, 0.00925768973224, 0.551752569961, -0.681648035732});
  inputs["x0"].set_lod({{0, 3}});
  ExpectError(op, inputs, "fusion_seqexpand_concat_fc: X[1] has 2 rows; X[0] has 1 sequences");
}

// The second input has an empty sequence.
TEST(FusionSeqpool, ConcatenatesPooledRows) {
  const auto op = [](const char* type) {
    return Op(type).AddInput("X", {"a", "b"}).AddOutput("Out", {"out"});
  };
  Tensors inputs = {{"a", InRows(Values({3, 2}, 0, 1), kOneAndTwo)},
                    {"b", InRows(Values({4, 2}, 0, 1, 2), {{0, 4, 4}})},
                    {"cvm", Mixed({1, 2})}};
  const Op pooled = op("fusion_seqpool_concat");
  const Tensor sums = RunOne(pooled, inputs, "out");
  ExpectNear(sums,
             {0.98803398875, 0.6060679775, 1.84854382, 2.320679775, 0.684271909999, 0.920339887499, 0, 0});
  EXPECT_EQ(sums.lod(), (LoD{{0, 1, 2}}));
  ExpectNear(RunOne(Op(pooled).Set("pooltype", "AVERAGE"), inputs, "out"),
             {0.98803398875, 0.6060679775, 0.462135955, 0.580169943749, 0.342135955, 0.460169943749, 0, 0});
  ExpectNear(
      RunOne(Op(pooled).Set("pooltype", "SQRT"), inputs, "out"),
      {0.98803398875, 0.6060679775, 0.924271909999, 1.1603398875, 0.483853307736, 0.650778575447, 0, 0});
  ExpectNear(
      RunOne(op("fusion_seqpool_cvm_concat").AddInput("CVM", {"cvm"}), inputs, "out"),
      {0.687146205045, -0.213357263206, 1.04680792335, 0.15336159012, 0.521333369531, 0.131168825581, 0, 0});
  inputs["b"].set_lod({{0, 1, 2, 4}});
  ExpectError(pooled, inputs, "fusion_seqpool_concat: X[1] has 3 sequences; X[0] has 2");
}

// Bytes 0, 64, 128 and 255 of a range from 1 to 3.
TEST(LookupTableDequant, ConvertsBytesToFloats) {
  const Op op = WithSlots("lookup_table_dequant", {"W", "Ids"}, {"Out"}).Set("padding_idx", std::int64_t{0});
  Tensor table = TensorOf<float>({2, 3}, {5, 6, 7, 1, 3, 0});
  const unsigned char bytes[] = {0, 64, 128, 255};
  std::memcpy(table.Data<float>() + 5, bytes, sizeof bytes);
  Tensors inputs = {{"W", table}, {"Ids", TensorOf<std::int64_t>({2, 1}, {1, 0})}};
  ExpectValues(RunOne(op, inputs, "Out"), {1, 1.5, 2, 1 + 2 * 255 / 256.0, 0, 0, 0, 0});
  inputs["Ids"] = TensorOf<std::int64_t>({1, 1}, {2});
  ExpectError(op, inputs, "lookup_table_dequant: id 2 is outside the table of 2 rows");
}

Op Composed(const char* outer, const char* inner) {
  return WithSlots("fused_elemwise_activation", {"X", "Y"}, {"Out", "IntermediateOut"})
      .Set("functor_list", std::vector<std::string>{outer, inner})
      .Set("scale", 0.5f)
      .Set("save_intermediate_out", true);
}

TEST(FusedElemwiseActivation, ComposesTwoFunctionsInEitherOrder) {
  const Tensors inputs = {{"X", Mixed({2, 3})}, {"Y", Mixed({3}, 2)}};
  ExpectNear(
      RunOne(Composed("elementwise_add", "scale"), inputs, "Out"),
      {0.83410196625, 0.688203932499, -0.457694101251, 0.542305898749, 0.396407864999, -0.749490168752});
  const Op relu = Composed("relu", "elementwise_add");
  ExpectNear(RunOne(relu, inputs, "Out"), {0.692135955, 1.16427191, 0, 0.400339887499, 0.872475842499, 0});
  ExpectNear(RunOne(relu, inputs, "IntermediateOut"),
             {0.692135955, 1.16427191, -0.363592135001, 0.400339887499, 0.872475842499, -0.655388202502});
  const Op tanh = Composed("elementwise_mul", "tanh");
  ExpectNear(RunOne(tanh, inputs, "Out"), {-0.269922167909, 0.157139393855, -0.102641167231, -0.189228784925,
                                           -0.0590081101192, -0.156918989647});
  ExpectNear(RunOne(tanh, inputs, "IntermediateOut"), {-0.276540337488, 0.740748515996, 0.186012864673});
  ExpectNear(
      RunOne(Composed("sigmoid", "elementwise_mul"), inputs, "Out"),
      {0.431155829008, 0.550324593391, 0.474060760943, 0.451580536197, 0.481047270755, 0.460391327319});
}

TEST(FusedElemwiseActivation, BroadcastsYAlongAnAxis) {
  const Tensors inputs = {{"X", Mixed({2, 3})}, {"Y", Mixed({2, 1}, 2)}};
  ExpectNear(RunOne(Composed("elementwise_add", "relu").Set("axis", 0), inputs, "Out"),
             {0.9760679775, 0.212135955, -0.551796067501, 1.636407865, 0.872475842499, 0.108543819998});
}

// As in Fluid's programs, in which the gradients of sums do not have X.
TEST(FusedElemwiseActivation, ComputesTheGradientOfASumWithoutX) {
  const Op op = WithSlots("fused_elemwise_activation_grad", {"Y", "Out", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"})
                    .Set("functor_list", std::vector<std::string>{"relu_grad", "elementwise_add_grad"});
  const Tensors inputs = {{"Y", TensorOf<double>({2}, {1, 2})},
                          {"Out", TensorOf<double>({2, 2}, {0, 1, 1, 0})},
                          {"Out@GRAD", TensorOf<double>({2, 2}, {3, 4, 5, 6})}};
  ExpectNear(RunOne(op, inputs, "X@GRAD"), {0, 4, 5, 0});
  ExpectNear(RunOne(op, inputs, "Y@GRAD"), {5, 4});
}

// A bias inside a convolution or a product gives the bytes of a sum after it.

using Ints = std::vector<std::int32_t>;

Tensor Normal(DType type, const Shape& shape, unsigned seed) { return Scattered(type, shape, -1, 1, seed); }

Tensor Added(const Tensor& x, const Tensor& bias, int axis) {
  return RunOne(WithSlots("elementwise_add", {"X", "Y"}, {"Out"}).Set("axis", axis), {{"X", x}, {"Y", bias}},
                "Out");
}

bool AreSame(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

struct Convolution {
  Shape input, filter;  // of plain images
  int stride = 1, padding = 0, groups = 1;
};

void ExpectSameConvolution(const Convolution& c, DType type, bool last) {
  const Shape& in = c.input;
  const Op alone = WithSlots("conv2d", {"Input", "Filter"}, {"Output"})
                       .Set("strides", Ints{c.stride, c.stride})
                       .Set("paddings", Ints{c.padding, c.padding})
                       .Set("groups", c.groups)
                       .Set("data_format", last ? "NHWC" : "NCHW");
  const Tensor bias = Normal(type, {c.filter[0]}, 3);
  Tensors inputs = {{"Input", Normal(type, last ? Shape{in[0], in[2], in[3], in[1]} : in, 1)},
                    {"Filter", Normal(type, c.filter, 2)}};
  const Tensor apart = Added(RunOne(alone, inputs, "Output"), bias, last ? 3 : 1);
  inputs["Bias"] = bias;
  EXPECT_TRUE(AreSame(RunOne(Op(alone).AddInput("Bias", {"Bias"}), inputs, "Output"), apart))
      << StrCat(c.input, " ", c.filter, last ? " channels last" : " plain");
}

TEST(Bias, OfAConvolutionHasTheBytesOfASum) {
  const Convolution all[] = {{{2, 1, 12, 12}, {20, 1, 5, 5}},        {{2, 20, 12, 12}, {50, 20, 5, 5}},
                             {{2, 16, 9, 9}, {32, 16, 3, 3}, 2, 1},  {{1, 64, 8, 8}, {64, 64, 3, 3}, 1, 1},
                             {{2, 64, 7, 7}, {128, 64, 1, 1}},       {{1, 520, 4, 4}, {40, 520, 3, 3}, 1, 1},
                             {{2, 3, 15, 15}, {24, 3, 7, 7}, 2, 3},  {{2, 8, 9, 9}, {8, 1, 3, 3}, 1, 1, 8},
                             {{2, 32, 6, 6}, {32, 8, 3, 3}, 1, 1, 4}};
  for (const Convolution& c : all) {
    for (const bool last : {false, true}) {
      ExpectSameConvolution(c, DType::kFp32, last);
      if (c.input[1] < 100) ExpectSameConvolution(c, DType::kFp64, last);
    }
  }
}

TEST(Bias, OfAProductHasTheBytesOfASum) {
  for (const DType type : {DType::kFp32, DType::kFp64}) {
    for (const auto& [rows, width, columns] : {std::tuple<Dim, Dim, Dim>{100, 128, 256},
                                               {64, 800, 50},
                                               {7, 13, 5},
                                               {33, 2000, 65},
                                               {1, 300, 70},
                                               {128, 600, 1},
                                               {3, 5, 2073}}) {
      const Tensor x = Normal(type, {rows, width}, 1), w = Normal(type, {width, columns}, 2),
                   bias = Normal(type, {columns}, 3);
      const Tensor product = RunOne(WithSlots("mul", {"X", "Y"}, {"Out"}), {{"X", x}, {"Y", w}}, "Out");
      const Tensor layer = RunOne(WithSlots("fc", {"Input", "W", "Bias"}, {"Out"}),
                                  {{"Input", x}, {"W", w}, {"Bias", bias}}, "Out");
      EXPECT_TRUE(AreSame(layer, Added(product, bias, -1))) << rows << " " << width << " " << columns;
    }
  }
}

TEST(Bias, OfAProductWithoutTermsIsTheResult) {
  const Tensors inputs = {{"Input", Tensor(DType::kFp32, {2, 0})},
                          {"W", Tensor(DType::kFp32, {0, 3})},
                          {"Bias", TensorOf<float>({3}, {1, 2, 3})}};
  ExpectValues(RunOne(WithSlots("fc", {"Input", "W", "Bias"}, {"Out"}), inputs, "Out"), {1, 2, 3, 1, 2, 3});
}

}  // namespace
}  // namespace penstock::test
