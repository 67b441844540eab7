// Sequence ops on invalid sequences, and situations for which the corpus has no case: levels above the
// innermost, padded forms, values out of range. Each error names the violated rule, and none crashes.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

Tensor SequenceRows(const Shape& shape, const LoD& lod) {
  Tensor tensor = Scattered(DType::kFp32, shape, -1, 1);
  tensor.set_lod(lod);
  return tensor;
}

Tensor Tokens(std::initializer_list<std::int64_t> values, const LoD& lod) {
  Tensor tensor = TensorOf<std::int64_t>({static_cast<Dim>(values.size()), 1}, values);
  tensor.set_lod(lod);
  return tensor;
}

Op Reads(Op op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  for (const std::string& slot : inputs) op.AddInput(slot, {slot});
  for (const std::string& slot : outputs) op.AddOutput(slot, {slot});
  return op;
}

std::string ErrorOf(const Op& op, const Tensors& inputs) {
  const Result<Tensors> out = RunOp(AllOps(), op, inputs);
  EXPECT_FALSE(out.ok()) << op.type();
  if (out.ok()) return "";
  EXPECT_EQ(out.status().code(), StatusCode::kInvalidArgument) << op.type();
  return out.status().message();
}

TEST(Sequences, InvalidLoDIsReported) {
  const Op op = Reads(Op("sequence_reverse"), {"X"}, {"Y"});
  const auto error = [&op](const LoD& lod) { return ErrorOf(op, {{"X", SequenceRows({5, 2}, lod)}}); };
  EXPECT_EQ(error({}), "sequence_reverse: X has 0 levels of sequences; it must have at least 1");
  EXPECT_EQ(error({{1, 5}}), "sequence_reverse: X: level 0 of its sequences must start at 0, not at 1");
  EXPECT_EQ(error({{}}), "sequence_reverse: X: level 0 of its sequences must start at 0, but has no offset");
  EXPECT_EQ(error({{0, 3, 2, 5}}),
            "sequence_reverse: X: level 0 of its sequences must not decrease, but has 3 before 2");
  EXPECT_EQ(error({{0, 3, 6}}),
            "sequence_reverse: X: level 0 of its sequences ends at 6; it must end at 5, the number of rows");
  EXPECT_EQ(
      error({{0, 3}, {0, 2, 5}}),
      "sequence_reverse: X: level 0 of its sequences ends at 3; it must end at 2, the number of sequences of "
      "the next level");
  const Op as = Reads(Op("sequence_expand_as"), {"X", "Y"}, {"Out"});
  EXPECT_EQ(
      ErrorOf(as, {{"X", SequenceRows({2, 2}, {})}, {"Y", SequenceRows({5, 1}, {{0, 1, 2}, {0, 3, 5}})}}),
      "sequence_expand_as: Y has 2 levels of sequences; it must have 1");
}

// Every op that iterates over sequences, with an input without sequences.
TEST(Sequences, EachSequenceOpRefusesAMissingLoD) {
  const Tensor x = SequenceRows({6, 2}, {}), column = SequenceRows({6, 1}, {}),
               tokens = Tokens({1, 2, 3, 4, 5, 6}, {});
  const Tensors inputs = {{"X", x},
                          {"Column", column},
                          {"Tokens", tokens},
                          {"PadValue", TensorOf<float>({1}, {0})},
                          {"One", TensorOf<std::int64_t>({1, 1}, {1})},
                          {"Filter", SequenceRows({6, 3}, {})},
                          {"Weights", SequenceRows({3, 2}, {})},
                          {"Transition", SequenceRows({4, 2}, {})},
                          {"Gates", SequenceRows({6, 8}, {})},
                          {"Weight", SequenceRows({2, 8}, {})},
                          {"Bias", SequenceRows({1, 14}, {})},
                          {"GruGates", SequenceRows({6, 6}, {})},
                          {"GruWeight", SequenceRows({2, 6}, {})}};
  const std::vector<Op> ops = {
      Op("sequence_reverse").AddInput("X", {"X"}).AddOutput("Y", {"y"}),
      Op("sequence_softmax").AddInput("X", {"Column"}).AddOutput("Out", {"y"}),
      Op("sequence_expand").AddInput("X", {"X"}).AddInput("Y", {"Column"}).AddOutput("Out", {"y"}),
      Op("sequence_expand_as").AddInput("X", {"X"}).AddInput("Y", {"Column"}).AddOutput("Out", {"y"}),
      Op("sequence_concat").AddInput("X", {"X", "X"}).AddOutput("Out", {"y"}),
      Op("sequence_reshape").AddInput("X", {"X"}).AddOutput("Out", {"y"}).Set("new_dim", 1),
      Op("sequence_slice")
          .AddInput("X", {"X"})
          .AddInput("Offset", {"One"})
          .AddInput("Length", {"One"})
          .AddOutput("Out", {"y"}),
      Op("sequence_erase")
          .AddInput("X", {"Tokens"})
          .AddOutput("Out", {"y"})
          .Set("tokens", std::vector<std::int32_t>{}),
      Op("sequence_enumerate").AddInput("X", {"Tokens"}).AddOutput("Out", {"y"}).Set("win_size", 2),
      Op("sequence_scatter")
          .AddInput("X", {"X"})
          .AddInput("Ids", {"Tokens"})
          .AddInput("Updates", {"Column"})
          .AddOutput("Out", {"y"}),
      Op("sequence_conv")
          .AddInput("X", {"X"})
          .AddInput("Filter", {"Filter"})
          .AddOutput("Out", {"y"})
          .Set("contextLength", 3),
      Op("row_conv").AddInput("X", {"X"}).AddInput("Filter", {"Weights"}).AddOutput("Out", {"y"}),
      Op("edit_distance").AddInput("Hyps", {"Tokens"}).AddInput("Refs", {"Tokens"}).AddOutput("Out", {"y"}),
      Op("ctc_align").AddInput("Input", {"Tokens"}).AddOutput("Output", {"y"}),
      Op("crf_decoding")
          .AddInput("Emission", {"X"})
          .AddInput("Transition", {"Transition"})
          .AddOutput("ViterbiPath", {"y"}),
      Op("lstm")
          .AddInput("Input", {"Gates"})
          .AddInput("Weight", {"Weight"})
          .AddInput("Bias", {"Bias"})
          .AddOutput("Hidden", {"h"})
          .AddOutput("Cell", {"c"})
          .AddOutput("BatchGate", {"g"})
          .AddOutput("BatchCellPreAct", {"a"}),
      Op("gru")
          .AddInput("Input", {"GruGates"})
          .AddInput("Weight", {"GruWeight"})
          .AddOutput("Hidden", {"h"})
          .AddOutput("BatchGate", {"g"})
          .AddOutput("BatchResetHiddenPrev", {"r"})
          .AddOutput("BatchHidden", {"b"})};
  for (const Op& op : ops) {
    EXPECT_NE(ErrorOf(op, inputs).find(" has 0 levels of sequences; it must have "), std::string::npos)
        << op.type();
  }
}

TEST(Sequences, LoDsOfSeveralInputsMustMatch) {
  const Op expand = Reads(Op("sequence_expand"), {"X", "Y"}, {"Out"});
  const Tensor y = SequenceRows({5, 1}, {{0, 2, 5}});
  EXPECT_EQ(ErrorOf(expand, {{"X", SequenceRows({3, 2}, {})}, {"Y", y}}),
            "sequence_expand: X has 3 rows; Y has 2 sequences in level 0; the numbers must be equal");
  Op deep = expand;
  EXPECT_EQ(ErrorOf(deep.Set("ref_level", 1), {{"X", SequenceRows({2, 2}, {})}, {"Y", y}}),
            "sequence_expand: Y has 1 levels of sequences; ref_level (1) must name one of them, or be -1");
  const Op concat = Op("sequence_concat").AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"});
  EXPECT_EQ(ErrorOf(concat, {{"a", SequenceRows({3, 2}, {{0, 2}, {0, 1, 3}})},
                             {"b", SequenceRows({3, 2}, {{0, 1, 2}, {0, 1, 3}})}}),
            "sequence_concat: X[1]: level 0 of its sequences differs from that of X[0]");
  EXPECT_EQ(ErrorOf(concat, {{"a", SequenceRows({3, 2}, {{0, 2}, {0, 1, 3}})},
                             {"b", SequenceRows({3, 2}, {{0, 1, 3}})}}),
            "sequence_concat: X[1] has 1 levels of sequences, X[0] has 2");
  const Op lstm = Reads(Op("lstm"), {"Input", "H0", "C0", "Weight", "Bias"},
                        {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"});
  EXPECT_EQ(ErrorOf(lstm, {{"Input", SequenceRows({3, 8}, {{0, 2, 3}})},
                           {"H0", SequenceRows({3, 2}, {})},
                           {"C0", SequenceRows({3, 2}, {})},
                           {"Weight", SequenceRows({2, 8}, {})},
                           {"Bias", SequenceRows({1, 14}, {})}}),
            "lstm: H0 ([3, 2]) must have 2 rows of 2 elements");
}

TEST(Sequences, ValuesOutOfRangeAreReported) {
  const Op unpad = Reads(Op("sequence_unpad"), {"X", "Length"}, {"Out"});
  const auto lengths = [](std::int64_t a, std::int64_t b) { return TensorOf<std::int64_t>({2}, {a, b}); };
  EXPECT_EQ(ErrorOf(unpad, {{"X", SequenceRows({2, 3}, {})}, {"Length", lengths(3, 4)}}),
            "sequence_unpad: Length: sequence 1 has length 4; it must be in [0, 3], the steps of X");
  EXPECT_EQ(ErrorOf(unpad, {{"X", SequenceRows({2, 3}, {})}, {"Length", lengths(-1, 1)}}),
            "sequence_unpad: Length: sequence 0 has length -1; it must be in [0, 3], the steps of X");
  const Op slice = Reads(Op("sequence_slice"), {"X", "Offset", "Length"}, {"Out"});
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(
      ErrorOf(slice, {{"X", SequenceRows({3, 2}, {{0, 3}})},
                      {"Offset", TensorOf<std::int64_t>({1, 1}, {1})},
                      {"Length", TensorOf<std::int64_t>({1, 1}, {huge})}}),
      StrCat("sequence_slice: X: sequence 0 has 3 rows; offset 1 and length ", huge, " reach beyond it"));
  const Op scatter = Reads(Op("sequence_scatter"), {"X", "Ids", "Updates"}, {"Out"});
  EXPECT_EQ(ErrorOf(scatter, {{"X", SequenceRows({1, 2}, {})},
                              {"Ids", Tokens({2}, {{0, 1}})},
                              {"Updates", SequenceRows({1, 1}, {})}}),
            "sequence_scatter: Ids: id 2 of sequence 0 is outside a row of 2 elements");
  const Op distance = Reads(Op("edit_distance"), {"Hyps", "Refs"}, {"Out"}).Set("normalized", true);
  EXPECT_EQ(ErrorOf(distance, {{"Hyps", Tokens({2}, {{0, 1}})}, {"Refs", Tokens({}, {{0, 0}})}}),
            "edit_distance: reference 0 is empty, so the distance cannot be divided by its length");
  const Op mask = Reads(Op("sequence_mask"), {"X", "MaxLenTensor"}, {"Y"}).Set("out_dtype", 3);
  EXPECT_EQ(ErrorOf(mask, {{"X", lengths(1, 2)}, {"MaxLenTensor", TensorOf<std::int32_t>({1}, {0})}}),
            "sequence_mask: MaxLenTensor holds 0; it must be at least 1");
  const Op reset =
      Reads(Op("lod_reset"), {"X"}, {"Out"}).Set("target_lod", std::vector<std::int32_t>{0, -1, 3});
  EXPECT_EQ(ErrorOf(reset, {{"X", SequenceRows({3, 2}, {})}}),
            "lod_reset: Out: offset -1 must not be negative");
}

// The kernel's output would overwrite its input.
TEST(Sequences, InPlaceOutputsAreRefused) {
  const Op op = Op("sequence_reverse").AddInput("X", {"x"}).AddOutput("Y", {"x"});
  EXPECT_EQ(ErrorOf(op, {{"x", SequenceRows({3, 2}, {{0, 3}})}}),
            "sequence_reverse: Y must be another variable than X (x)");
}

TEST(Sequences, ConcatJoinsTheInnermostLevel) {
  const Op concat = Op("sequence_concat").AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"});
  const Result<Tensors> out = RunOp(
      AllOps(), concat,
      {{"a", Tokens({1, 2, 3}, {{0, 1, 2}, {0, 1, 3}})}, {"b", Tokens({4, 5}, {{0, 1, 2}, {0, 2, 2}})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("Out").lod(), LoD({{0, 1, 2}, {0, 3, 5}}));
  EXPECT_TRUE(Near(out->at("Out"), Tokens({1, 4, 5, 2, 3}, {}), 0, 0).ok());
}

TEST(Sequences, ReverseReversesTheInnermostLevel) {
  const Op op = Reads(Op("sequence_reverse"), {"X"}, {"Y"});
  const Result<Tensors> out = RunOp(AllOps(), op, {{"X", Tokens({1, 2, 3, 4}, {{0, 2}, {0, 3, 4}})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE(Near(out->at("Y"), Tokens({3, 2, 1, 4}, {}), 0, 0).ok());
}

TEST(Sequences, LodResetAppendsALevel) {
  const Op op = Reads(Op("lod_reset"), {"X"}, {"Out"})
                    .Set("append", true)
                    .Set("target_lod", std::vector<std::int32_t>{0, 1, 1, 3});
  const Result<Tensors> out = RunOp(AllOps(), op, {{"X", Tokens({1, 2, 3}, {{0, 2, 3}})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("Out").lod(), LoD({{0, 2, 3}, {0, 1, 1, 3}}));
}

TEST(Sequences, AlignmentAndEditDistanceTakePaddedInput) {
  const Op align =
      Reads(Op("ctc_align"), {"Input", "InputLength"}, {"Output", "OutputLength"}).Set("padding_value", 9);
  const Result<Tensors> aligned = RunOp(AllOps(), align,
                                        {{"Input", TensorOf<std::int64_t>({2, 4}, {0, 1, 1, 2, 3, 0, 3, 7})},
                                         {"InputLength", TensorOf<std::int64_t>({2, 1}, {4, 3})}});
  ASSERT_TRUE(aligned.ok()) << aligned.status().ToString();
  EXPECT_TRUE(
      Near(aligned->at("Output"), TensorOf<std::int64_t>({2, 4}, {1, 2, 9, 9, 3, 3, 9, 9}), 0, 0).ok());
  EXPECT_TRUE(Near(aligned->at("OutputLength"), TensorOf<std::int64_t>({2, 1}, {2, 2}), 0, 0).ok());
  const Op distance =
      Reads(Op("edit_distance"), {"Hyps", "Refs", "HypsLength", "RefsLength"}, {"Out", "SequenceNum"})
          .Set("normalized", true);
  const Result<Tensors> far = RunOp(AllOps(), distance,
                                    {{"Hyps", TensorOf<std::int64_t>({2, 3}, {1, 2, 3, 4, 0, 0})},
                                     {"Refs", TensorOf<std::int64_t>({2, 2}, {1, 3, 5, 6})},
                                     {"HypsLength", TensorOf<std::int64_t>({2}, {3, 0})},
                                     {"RefsLength", TensorOf<std::int64_t>({2}, {2, 2})}});
  ASSERT_TRUE(far.ok()) << far.status().ToString();
  EXPECT_TRUE(Near(far->at("Out"), TensorOf<float>({2, 1}, {0.5f, 1.0f}), 0, 0).ok());
}

TEST(Sequences, CtcAlignOfBlanksOnlyIsMinusOne) {
  const Op align = Reads(Op("ctc_align"), {"Input"}, {"Output"});
  const Result<Tensors> out = RunOp(AllOps(), align, {{"Input", Tokens({0, 0}, {{0, 1, 2}})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE(Near(out->at("Output"), TensorOf<std::int64_t>({1, 1}, {-1}), 0, 0).ok());
  EXPECT_TRUE(out->at("Output").lod().empty());
}

// The best path, by trying all of them.
TEST(Sequences, CrfDecodingFindsTheBestPath) {
  constexpr Dim kTags = 3, kSteps = 4;
  const Tensor emission = Scattered(DType::kFp64, {2, kSteps, kTags}, -1, 1),
               weights = Scattered(DType::kFp64, {kTags + 2, kTags}, -1, 1, 5);
  const auto* const w = weights.Data<double>();
  const Op op = Reads(Op("crf_decoding"), {"Emission", "Transition", "Length"}, {"ViterbiPath"});
  const Result<Tensors> out = RunOp(
      AllOps(), op,
      {{"Emission", emission}, {"Transition", weights}, {"Length", TensorOf<std::int64_t>({2, 1}, {4, 3})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  const auto* const path = out->at("ViterbiPath").Data<std::int64_t>();
  for (Dim s = 0; s < 2; ++s) {
    const Dim length = 4 - s;
    const double* const e = emission.Data<double>() + s * kSteps * kTags;
    const auto score = [&](const std::vector<std::int64_t>& y) {
      double sum = w[y.front()] + w[kTags + y.back()];
      for (Dim i = 0; i < length; ++i) {
        const std::int64_t tag = y[static_cast<std::size_t>(i)];
        sum += e[i * kTags + tag] + (i == 0 ? 0 : w[(2 + y[static_cast<std::size_t>(i) - 1]) * kTags + tag]);
      }
      return sum;
    };
    std::vector<std::int64_t> best, y(static_cast<std::size_t>(length));
    for (Dim code = 0; code < 81; ++code) {
      Dim rest = code;
      for (std::int64_t& tag : y) {
        tag = rest % kTags;
        rest /= kTags;
      }
      if (best.empty() || score(y) > score(best)) best = y;
    }
    EXPECT_EQ(std::vector<std::int64_t>(path + s * kSteps, path + s * kSteps + length), best);
  }
  EXPECT_EQ(path[2 * kSteps - 1], 0) << "beyond the end";
}

// The second window would end one column beyond the image.
TEST(Sequences, Im2sequenceDropsIncompleteWindows) {
  const Op op = Reads(Op("im2sequence"), {"X"}, {"Out"})
                    .Set("kernels", std::vector<std::int32_t>{1, 2})
                    .Set("strides", std::vector<std::int32_t>{1, 3});
  const Result<Tensors> out = RunOp(AllOps(), op, {{"X", Ramp(DType::kFp32, {1, 1, 1, 4}, 0, 1)}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE(Near(out->at("Out"), TensorOf<float>({1, 2}, {0, 1}), 0, 0).ok());
}

TEST(Sequences, MaskTakesFractionalLengths) {
  const Op op = Reads(Op("sequence_mask"), {"X"}, {"Y"}).Set("out_dtype", 2);
  const Result<Tensors> out = RunOp(AllOps(), op, {{"X", TensorOf<float>({3}, {0.5f, 3.0f, -2.0f})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE(Near(out->at("Y"), TensorOf<std::int32_t>({3, 3}, {1, 0, 0, 1, 1, 1, 0, 0, 0}), 0, 0).ok());
  EXPECT_EQ(ErrorOf(op, {{"X", TensorOf<float>({1}, {1e30f})}}),
            StrCat("sequence_mask: masks of ", std::numeric_limits<Dim>::max(), " steps are too large"));
}

// Images of different sizes in one batch.
TEST(Sequences, Im2sequenceTakesImageSizes) {
  const Op op = Reads(Op("im2sequence"), {"X", "Y"}, {"Out"})
                    .Set("kernels", std::vector<std::int32_t>{2, 2})
                    .Set("out_stride", std::vector<std::int32_t>{2, 2});
  const Result<Tensors> out =
      RunOp(AllOps(), op,
            {{"X", Ramp(DType::kFp32, {2, 1, 3, 3}, 0, 1)}, {"Y", TensorOf<float>({2, 2}, {4, 6, 5, 4})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(out->at("Out").lod(), LoD({{0, 2, 4}}));
  EXPECT_TRUE(Near(out->at("Out"),
                   TensorOf<float>({4, 4}, {0, 1, 3, 4, 1, 2, 4, 5, 9, 10, 12, 13, 12, 13, 15, 16}), 0, 0)
                  .ok());
  const Tensor pair = Ramp(DType::kFp32, {2, 1, 3, 3}, 0, 1);
  EXPECT_EQ(ErrorOf(op, {{"X", pair}, {"Y", TensorOf<float>({2, 2}, {2, 6, 6, 6})}}),
            "im2sequence: a window does not fit into image 0 of 1 x 3 elements");
  EXPECT_EQ(ErrorOf(op, {{"X", pair}, {"Y", TensorOf<float>({2, 2}, {1e9f, 1e9f, 6, 6})}}),
            "im2sequence: image 0 of 500000000 x 500000000 elements has too many windows");
}

// As in Fluid: the part of an image's size beyond X is zero, and a single image is whole whatever its size
// is.
TEST(Sequences, Im2sequencePadsBeyondTheImageWithZeros) {
  const Op op = Reads(Op("im2sequence"), {"X", "Y"}, {"Out"}).Set("kernels", std::vector<std::int32_t>{1, 2});
  const Result<Tensors> pair =
      RunOp(AllOps(), op,
            {{"X", Ramp(DType::kFp32, {2, 1, 1, 2}, 1, 1)}, {"Y", TensorOf<float>({2, 2}, {1, 3, 2, 2})}});
  ASSERT_TRUE(pair.ok()) << pair.status().ToString();
  EXPECT_EQ(pair->at("Out").lod(), LoD({{0, 2, 4}}));
  EXPECT_TRUE(Near(pair->at("Out"), TensorOf<float>({4, 2}, {1, 2, 2, 0, 3, 4, 0, 0}), 0, 0).ok());
  const Result<Tensors> single =
      RunOp(AllOps(), op,
            {{"X", Ramp(DType::kFp32, {1, 1, 1, 2}, 1, 1)}, {"Y", TensorOf<float>({2, 2}, {1, 3, 2, 2})}});
  ASSERT_TRUE(single.ok()) << single.status().ToString();
  EXPECT_TRUE(Near(single->at("Out"), TensorOf<float>({1, 2}, {1, 2}), 0, 0).ok());
}

// Two sources: one branch of the first has ended and continues unchanged; all branches of the second have
// ended.
TEST(Sequences, BeamSearchKeepsTheBestTokens) {
  const Op op = Reads(Op("beam_search"), {"pre_ids", "pre_scores", "ids", "scores"},
                      {"selected_ids", "selected_scores", "parent_idx"})
                    .Set("level", 0)
                    .Set("beam_size", 2)
                    .Set("end_id", 9);
  Tensor scores = TensorOf<float>({4, 2}, {0.5f, 0.3f, 0.9f, 0.8f, 0.7f, 0.6f, 0.2f, 0.1f});
  scores.set_lod({{0, 2, 4}, {0, 1, 2, 3, 4}});
  const Tensors inputs = {{"pre_ids", TensorOf<std::int64_t>({4, 1}, {1, 9, 9, 9})},
                          {"pre_scores", TensorOf<float>({4, 1}, {0.1f, 0.4f, 0.2f, 0.3f})},
                          {"ids", TensorOf<std::int64_t>({4, 2}, {5, 6, 7, 8, 5, 6, 7, 8})},
                          {"scores", scores}};
  const Result<Tensors> out = RunOp(AllOps(), op, inputs);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE(Near(out->at("selected_ids"), TensorOf<std::int64_t>({2, 1}, {5, 9}), 0, 0).ok());
  EXPECT_TRUE(Near(out->at("selected_scores"), TensorOf<float>({2, 1}, {0.5f, 0.4f}), 0, 0).ok());
  EXPECT_TRUE(Near(out->at("parent_idx"), TensorOf<std::int32_t>({2}, {0, 1}), 0, 0).ok());
  EXPECT_EQ(out->at("selected_ids").lod(), LoD({{0, 2, 4}, {0, 1, 2, 2, 2}}));
  Op deep = op;
  EXPECT_EQ(ErrorOf(deep.Set("level", 2), inputs),
            "beam_search: scores has 2 levels of sequences; level (2) must name one of them");
}

// A program need not be made by append_backward: all inputs of a gradient op are the same tensor, with
// unexpected ranks. The op may accept it, but must not crash.
TEST(Sequences, GradientsRefuseMismatchedInputs) {
  int refused = 0;
  for (const OpDef* def : AllOps().All()) {
    if (!def->type().ends_with("_grad")) continue;
    const OpDef* const forward = AllOps().Find(def->type().substr(0, def->type().size() - 5));
    if (forward == nullptr || forward->doc().find("sequence") == std::string::npos) continue;
    for (const Tensor& tensor : {SequenceRows({}, {}), SequenceRows({2}, {{0, 2}}),
                                 SequenceRows({2, 2}, {{0, 1, 2}}), SequenceRows({1, 1, 4}, {{0, 1}})}) {
      Op op(def->type());
      for (const SlotDef& slot : def->inputs()) op.AddInput(slot.name, {"given"});
      for (const SlotDef& slot : def->outputs()) op.AddOutput(slot.name, {StrCat(slot.name, " made")});
      for (const AttrDef& attr : def->attrs()) {
        if (attr.kind == AttrKind::kInt && !attr.default_value) op.Set(attr.name, 2);
        if (attr.kind == AttrKind::kInts && !attr.default_value)
          op.Set(attr.name, std::vector<std::int32_t>{1, 1});
      }
      const Result<Tensors> out = RunOp(AllOps(), op, {{"given", tensor}});
      if (out.ok()) continue;
      // The rank table of reorder_lod_tensor_by_rank is not one yet.
      const StatusCode code = out.status().code();
      EXPECT_TRUE(code == StatusCode::kInvalidArgument || code == StatusCode::kFailedPrecondition)
          << def->type() << ": " << out.status().ToString();
      ++refused;
    }
  }
  EXPECT_GE(refused, 40);
}

}  // namespace
}  // namespace penstock::test
