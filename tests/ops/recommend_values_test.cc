// Values of the ops of recommender systems, gradients of theirs that are not derivatives, and the inputs that
// they reject.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"

namespace penstock::test {
namespace {

Tensor Rising(const Shape& shape) { return Ramp(DType::kFp32, shape, 1, 1); }
Tensor InTexts(Tensor tensor, const LoD& lod) {
  tensor.set_lod(lod);
  return tensor;
}

TEST(Cvm, LogTransformsOrDropsShowsAndClicks) {
  const Op op = WithSlots("cvm", {"X", "CVM"}, {"Y"});
  const Tensors inputs = {{"X", TensorOf<float>({2, 3}, {1, 2, 7, 3, 0, 8})}, {"CVM", Rising({2, 2})}};
  ExpectValues(RunOne(op, inputs, "Y"),
               {std::log(2.0), std::log(3.0) - std::log(2.0), 7, std::log(4.0), -std::log(4.0), 8});
  ExpectValues(RunOne(Op(op).Set("use_cvm", false), inputs, "Y"), {7, 8});
}

TEST(Cvm, GradientContainsShowsAndClicks) {
  const Op op = WithSlots("cvm_grad", {"X", "CVM", "Y@GRAD"}, {"X@GRAD"}).Set("use_cvm", false);
  Tensors inputs = {{"X", Rising({3, 3})},
                    {"CVM", TensorOf<float>({3, 2}, {5, 6, 7, 8, 9, 10})},
                    {"Y@GRAD", Rising({3, 1})}};
  ExpectValues(RunOne(op, inputs, "X@GRAD"), {5, 6, 1, 7, 8, 2, 9, 10, 3});
  inputs["X"].set_lod({{0, 2, 3}});
  ExpectError(op, inputs, "cvm_grad: CVM has 3 rows; X has 2 instances");
  inputs["CVM"] = TensorOf<float>({2, 2}, {5, 6, 7, 8});
  ExpectValues(RunOne(op, inputs, "X@GRAD"), {5, 6, 1, 5, 6, 2, 7, 8, 3});
}

// By the formulas of the sums; mean 0.5 and scale sqrt(0.5).
TEST(DataNorm, GradientsOfStatisticsAreBatchSums) {
  Op op("data_norm_grad");
  for (const char* slot : {"X", "Means", "Scales", "Y@GRAD"}) op.AddInput(slot, {slot});
  for (const char* slot : {"BatchSize@GRAD", "BatchSum@GRAD", "BatchSquareSum@GRAD"})
    op.AddOutput(slot, {slot});
  const float scale = std::sqrt(0.5f);
  const Tensors inputs = {{"X", TensorOf<float>({3, 4}, {2, 2, 3, 4, 1, 2, 5, 3, 0, 1, 7, 8})},
                          {"Means", Ramp(DType::kFp32, {4}, 0.5, 0)},
                          {"Scales", Ramp(DType::kFp32, {4}, scale, 0)},
                          {"Y@GRAD", Rising({3, 4})}};
  ExpectValues(RunOne(op, inputs, "BatchSize@GRAD"), {3, 3, 3, 3});
  ExpectValues(RunOne(op, inputs, "BatchSum@GRAD"), {3, 5, 15, 15});
  ExpectValues(RunOne(op, inputs, "BatchSquareSum@GRAD"),
               {2.25 + 0.25 + 0.25 + 3e-4, 2.25 + 2.25 + 0.25 + 3e-4, 6.25 + 20.25 + 42.25 + 3e-4,
                12.25 + 6.25 + 56.25 + 3e-4});
  // The first slot of the last row was not shown.
  op.Set("slot_dim", 2);
  ExpectValues(RunOne(op, inputs, "BatchSize@GRAD"), {1, 1, 1, 1});
  ExpectValues(RunOne(op, inputs, "BatchSum@GRAD"), {1.5, 2, 5, 5});
  ExpectValues(RunOne(op, inputs, "BatchSquareSum@GRAD"),
               {2.5 / 2 + 2e-4, 4.5 / 2 + 2e-4, 68.75 / 3 + 3e-4, 74.75 / 3 + 3e-4});
  ExpectValues(RunOne(Op(op).AddOutput("X@GRAD", {"dx"}), inputs, "dx"),
               {scale, 2 * scale, 3 * scale, 4 * scale, 5 * scale, 6 * scale, 7 * scale, 8 * scale, 0, 0,
                11 * scale, 12 * scale});
}

TEST(DataNorm, IsZeroForSlotsNotShown) {
  const Op op =
      WithSlots("data_norm", {"X", "BatchSize", "BatchSum", "BatchSquareSum"}, {"Y", "Means", "Scales"});
  const Tensors inputs = {{"X", TensorOf<float>({1, 4}, {0, 2, 3, 4})},
                          {"BatchSize", Ramp(DType::kFp32, {4}, 4, 0)},
                          {"BatchSum", Ramp(DType::kFp32, {4}, 2, 0)},
                          {"BatchSquareSum", Ramp(DType::kFp32, {4}, 1, 0)}};
  ExpectValues(RunOne(op, inputs, "Y"), {-1, 3, 5, 7});
  ExpectValues(RunOne(Op(op).Set("slot_dim", 2), inputs, "Y"), {0, 0, 5, 7});
  ExpectError(Op(op).Set("slot_dim", 3), inputs,
              "data_norm: slot_dim (3) must divide the columns of X ([1, 4])");
}

TEST(FilterByInstag, KeepsInstancesWithOneOfTheTags) {
  const Op op =
      WithSlots("filter_by_instag", {"Ins", "Ins_tag", "Filter_tag"}, {"Out", "LossWeight", "IndexMap"})
          .Set("is_lod", true)
          .Set("out_val_if_empty", std::int64_t{7});
  Tensors inputs = {{"Ins", InTexts(Rising({4, 2}), {{0, 1, 3, 4}})},
                    {"Ins_tag", InTexts(TensorOf<std::int64_t>({5, 1}, {1, 2, 1, 3, 2}), {{0, 2, 3, 5}})},
                    {"Filter_tag", TensorOf<std::int64_t>({1}, {1})}};
  const Tensor kept = RunOne(op, inputs, "Out");
  ExpectValues(kept, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(kept.lod(), (LoD{{0, 1, 3}}));
  const Tensor weight = RunOne(op, inputs, "LossWeight");  // one of each instance
  ExpectValues(weight, {1, 1});
  EXPECT_EQ(weight.lod(), (LoD{{0, 1, 2}}));
  ExpectValues(RunOne(op, inputs, "IndexMap"), {0, 0, 1, 1, 1, 2});
  inputs["Filter_tag"] = TensorOf<std::int64_t>({1}, {9});
  ExpectValues(RunOne(op, inputs, "Out"), {7, 7});
  ExpectValues(RunOne(op, inputs, "LossWeight"), {0});
  ExpectValues(RunOne(op, inputs, "IndexMap"), {0, 1, 1});
  inputs["Ins_tag"].set_lod({{0, 5}});
  ExpectError(op, inputs, "filter_by_instag: Ins_tag has 1 sequences; Ins has 3 instances");
}

TEST(Partial, ConcatAndSumTakeAColumnRange) {
  const Tensors inputs = {{"a", Rising({2, 4})}, {"b", Ramp(DType::kFp32, {2, 4}, 10, 10)}};
  const auto run = [&](const char* type, int start, int length) {
    Op op = Op(type).AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"});
    return RunOne(op.Set("start_index", start).Set("length", length), inputs, "Out");
  };
  ExpectValues(run("partial_concat", 1, 2), {2, 3, 20, 30, 6, 7, 60, 70});
  ExpectValues(run("partial_sum", -1, -1), {44, 88});
}

TEST(FusedEmbeddingSeqPool, SumsRowsExceptPadding) {
  const Op op =
      WithSlots("fused_embedding_seq_pool", {"W", "Ids"}, {"Out"}).Set("padding_idx", std::int64_t{3});
  Tensors inputs = {{"W", Rising({5, 2})},
                    {"Ids", InTexts(TensorOf<std::int64_t>({3, 1}, {1, 3, 4}), {{0, 1, 3}})}};
  ExpectValues(RunOne(op, inputs, "Out"), {3, 4, 9, 10});
  inputs["Ids"] = InTexts(TensorOf<std::int64_t>({2, 2}, {1, 3, 4, 0}), {{0, 2}});
  ExpectValues(RunOne(op, inputs, "Out"), {3 + 9, 4 + 10, 1, 2});
  inputs["Ids"] = InTexts(TensorOf<std::int64_t>({1, 1}, {5}), {{0, 1}});
  ExpectError(op, inputs, "fused_embedding_seq_pool: id 5 is outside the table of 5 rows");
}

TEST(TdmChild, ReturnsChildrenAndLeafMask) {
  const Op op = WithSlots("tdm_child", {"X", "TreeInfo"}, {"Child", "LeafMask"}).Set("child_nums", 2);
  Tensors inputs = {{"X", TensorOf<std::int32_t>({3, 1}, {1, 3, 0})},
                    {"TreeInfo", TensorOf<std::int32_t>({5, 5}, {0, 0, 0, 1, 2, 0, 1, 0, 3, 4, 7, 1, 0,
                                                                 0, 0, 1, 2, 1, 0, 0, 0, 2, 1, 0, 0})}};
  ExpectValues(RunOne(op, inputs, "Child"), {3, 4, 0, 0, 0, 0});
  ExpectValues(RunOne(op, inputs, "LeafMask"), {1, 0, 0, 0, 0, 0});
  inputs["X"] = TensorOf<std::int32_t>({1, 1}, {5});
  ExpectError(op, inputs, "tdm_child: node 5 must be in [0, 5)");
}

TEST(TdmSampler, DrawsDistinctNegativesOfEachLayer) {
  const Op op = WithSlots("tdm_sampler", {"X", "Travel", "Layer"}, {"Out", "Labels", "Mask"})
                    .Set("neg_samples_num_list", std::vector<std::int32_t>{1, 3})
                    .Set("layer_offset_lod", std::vector<std::int32_t>{0, 2, 6})
                    .Set("dtype", static_cast<std::int32_t>(DType::kInt64))
                    .Set("seed", 4);
  const Tensors inputs = {{"X", TensorOf<std::int64_t>({2, 1}, {1, 2})},
                          {"Travel", TensorOf<std::int64_t>({3, 2}, {0, 0, 1, 4, 2, 0})},
                          {"Layer", TensorOf<std::int64_t>({6}, {1, 2, 3, 4, 5, 6})}};
  const Tensor nodes = RunOne(op, inputs, "Out");
  const std::int64_t* const out = nodes.Data<std::int64_t>();
  EXPECT_EQ(nodes.shape(), (Shape{2, 6}));
  EXPECT_EQ((std::vector<std::int64_t>(out, out + 3)), (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ((std::set<std::int64_t>(out + 3, out + 6)), (std::set<std::int64_t>{3, 5, 6}));
  EXPECT_EQ((std::vector<std::int64_t>(out + 6, out + 12)), (std::vector<std::int64_t>{2, 1, 0, 0, 0, 0}));
  ExpectValues(RunOne(op, inputs, "Labels"), {1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0});
  ExpectValues(RunOne(op, inputs, "Mask"), {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
}

TEST(MatchMatrixTensor, MultipliesEachPairOfTexts) {
  const Op op = WithSlots("match_matrix_tensor", {"X", "Y", "W"}, {"Out", "Tmp"});
  const Tensors inputs = {{"X", InTexts(TensorOf<float>({3, 1}, {1, 2, 3}), {{0, 2, 3}})},
                          {"Y", InTexts(TensorOf<float>({3, 1}, {4, 5, 6}), {{0, 1, 3}})},
                          {"W", TensorOf<float>({1, 1, 1}, {2})}};
  const Tensor out = RunOne(op, inputs, "Out");
  ExpectValues(out, {8, 16, 30, 36});
  EXPECT_EQ(out.lod(), (LoD{{0, 2, 4}}));
}

TEST(SequenceTopkAvgPooling, AveragesTheTopK) {
  const Op op = WithSlots("sequence_topk_avg_pooling", {"X", "ROW", "COLUMN"}, {"Out", "pos"})
                    .Set("topks", std::vector<std::int32_t>{1, 2, 4})
                    .Set("channel_num", 1);
  Tensors inputs = {{"X", InTexts(TensorOf<float>({6, 1}, {3, 9, 6, 1, 1, 2}), {{0, 6}})},
                    {"ROW", InTexts(Rising({2, 1}), {{0, 2}})},
                    {"COLUMN", InTexts(Rising({3, 1}), {{0, 3}})}};
  ExpectValues(RunOne(op, inputs, "Out"), {9, 7.5, 4.5, 2, 1.5, 1});
  ExpectValues(RunOne(op, inputs, "pos"), {1, 2, 0, -1, 2, 0, 1, -1});
  inputs["COLUMN"].set_lod({{0, 2}});
  inputs["COLUMN"] = InTexts(Rising({2, 1}), {{0, 2}});
  ExpectError(
      op, inputs,
      "sequence_topk_avg_pooling: X: sequence 0 has 6 elements; there must be 2 * 2 in each of 1 channels");
}

TEST(CenterLoss, MovesTheCentres) {
  const Op op = Op("center_loss")
                    .AddInput("X", {"x"})
                    .AddInput("Label", {"label"})
                    .AddInput("Centers", {"c"})
                    .AddInput("CenterUpdateRate", {"rate"})
                    .AddOutput("CentersOut", {"c"})
                    .AddOutput("SampleCenterDiff", {"difference"})
                    .AddOutput("Loss", {"loss"})
                    .Set("cluster_num", 2)
                    .Set("need_update", true);
  Tensors inputs = {{"x", TensorOf<float>({3, 1}, {1, 2, 6})},
                    {"label", TensorOf<std::int64_t>({3, 1}, {0, 1, 0})},
                    {"c", TensorOf<float>({2, 1}, {0, 1})},
                    {"rate", TensorOf<float>({1}, {0.5f})}};
  ExpectValues(RunOne(op, inputs, "loss"), {0.5, 0.5, 18});
  ExpectValues(RunOne(op, inputs, "c"), {0.5 * 7 / 3, 1 + 0.5 * 1 / 2});
  ExpectValues(RunOne(Op(op).Set("need_update", false), inputs, "c"), {0, 1});
  inputs["label"] = TensorOf<std::int64_t>({3, 1}, {0, 2, 0});
  ExpectError(op, inputs, "center_loss: label 2 must be in [0, 2)");
}

TEST(MeanIou, CountsTheClassesThatOccur) {
  const Op op = WithSlots("mean_iou", {"Predictions", "Labels"}, {"OutMeanIou", "OutWrong", "OutCorrect"})
                    .Set("num_classes", 4);
  Tensors inputs = {{"Predictions", TensorOf<std::int64_t>({4}, {0, 1, 2, 1})},
                    {"Labels", TensorOf<std::int64_t>({4}, {0, 1, 1, 2})}};
  ExpectValues(RunOne(op, inputs, "OutMeanIou"), {(1.0 + 1.0 / 3 + 0) / 3});
  ExpectValues(RunOne(op, inputs, "OutWrong"), {0, 2, 2, 0});
  ExpectValues(RunOne(op, inputs, "OutCorrect"), {1, 1, 0, 0});
  inputs["w"] = TensorOf<std::int32_t>({4}, {1, 0, 0, 5});
  inputs["m"] = TensorOf<float>({1}, {0.25f});
  const Op more = Op(op).AddInput("InWrongs", {"w"}).AddInput("InMeanIou", {"m"});
  ExpectValues(RunOne(more, inputs, "OutWrong"), {1, 2, 2, 5});
  ExpectValues(RunOne(more, inputs, "OutMeanIou"), {0.25 + (0.5 + 1.0 / 3 + 0 + 0) / 4});
  inputs["w"] = TensorOf<std::int32_t>({4}, {0, 0, 2147483646, 0});
  ExpectError(more, inputs, "mean_iou: the count of class 2, 2147483648, must be in [0, 2147483647]");
  inputs["w"] = TensorOf<std::int32_t>({4}, {0, -1, 0, 0});
  ExpectError(more, inputs, "mean_iou: the count of class 1, -1, must be in [0, 2147483647]");
}

TEST(ShuffleBatch, PermutesRowsAndReturnsTheNextSeed) {
  const Op op = WithSlots("shuffle_batch", {"X", "Seed"}, {"Out", "ShuffleIdx", "SeedOut"});
  const Tensors inputs = {{"X", Rising({10, 1})}, {"Seed", TensorOf<std::int64_t>({1}, {5})}};
  const Tensor order = RunOne(op, inputs, "ShuffleIdx"), out = RunOne(op, inputs, "Out");
  std::set<std::int64_t> rows;
  for (Dim i = 0; i < 10; ++i) {
    rows.insert(order.Data<std::int64_t>()[i]);
    EXPECT_EQ(out.Data<float>()[i], static_cast<float>(order.Data<std::int64_t>()[i] + 1));
  }
  EXPECT_EQ(rows.size(), 10u);
  EXPECT_FALSE(std::ranges::is_sorted(order.Span<std::int64_t>()));
}

}  // namespace
}  // namespace penstock::test
