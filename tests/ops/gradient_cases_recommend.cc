// The differentiable ops of recommender systems and text models.
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

Tensor WithLod(Tensor tensor, const LoD& lod) {
  tensor.set_lod(lod);
  return tensor;
}

void AddRankingLosses(std::vector<GradientCase>& cases) {
  cases.push_back({"bpr_loss",
                   WithSlots("bpr_loss", {"X", "Label"}, {"Y"}),
                   {{"X", Values({3, 4})}, {"Label", TensorOf<std::int64_t>({3, 1}, {0, 3, 1})}},
                   {.of = {"Y"}, .wanted = {"X"}}});
  Op teacher = WithSlots("teacher_student_sigmoid_loss", {"X", "Label"}, {"Y"});
  cases.push_back({"teacher_student_sigmoid_loss",
                   teacher,
                   {{"X", Values({5, 1})}, {"Label", TensorOf<double>({5, 1}, {-2, -1, 0.25, 1.5, 0})}},
                   {.of = {"Y"}, .wanted = {"X"}}});
  for (const bool moves : {false, true}) {
    cases.push_back({"center_loss",
                     WithSlots("center_loss", {"X", "Label", "Centers", "CenterUpdateRate"},
                               {"CentersOut", "SampleCenterDiff", "Loss"})
                         .Set("cluster_num", 3)
                         .Set("need_update", moves),
                     {{"X", Values({4, 2})},
                      {"Label", TensorOf<std::int64_t>({4, 1}, {0, 2, 0, 1})},
                      {"Centers", Values({3, 2}, -1, 1, 4)},
                      {"CenterUpdateRate", Values({1}, 0.5, 0.5)}},
                     {.of = {"Loss"}, .wanted = {"X"}}});
  }
}

void AddDataNorms(std::vector<GradientCase>& cases) {
  for (const int slot : {-1, 2}) {
    for (const bool shifts : {false, true}) {
      GradientCase c{
          "data_norm",
          WithSlots("data_norm", {"X", "BatchSize", "BatchSum", "BatchSquareSum"}, {"Y", "Means", "Scales"})
              .Set("slot_dim", slot)
              .Set("enable_scale_and_shift", shifts),
          {{"X", TensorOf<double>({3, 4}, {0.5, 2, 0, -1, 0, 1.5, -2, 3, 1, 0.25, 4, 0.75})},
           {"BatchSize", Values({4}, 3, 5)},
           {"BatchSum", Values({4}, 1, 2, 5)},
           {"BatchSquareSum", Values({4}, 6, 9, 6)}},
          {.of = {"Y"}, .wanted = {"X"}}};
      // The step of the difference is so small that a show count of 0 still counts as 0.
      c.check.step = 1e-8;
      c.check.tolerance = 1e-5;
      if (shifts) {
        c.op.AddInput("scale_w", {"scale_w"}).AddInput("bias", {"bias"});
        c.inputs["scale_w"] = Values({4}, 0.5, 2, 7);
        c.inputs["bias"] = Values({4}, -1, 1, 8);
        c.check.wanted = {"X", "scale_w", "bias"};
      }
      cases.push_back(c);
    }
  }
}

void AddColumns(std::vector<GradientCase>& cases) {
  for (const char* type : {"partial_concat", "partial_sum"}) {
    cases.push_back(
        {type,
         Op(type).AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"}).Set("start_index", 1).Set("length", 2),
         {{"a", Values({2, 4})}, {"b", Values({2, 4}, -1, 1, 3)}},
         {.of = {"Out"}, .wanted = {"a", "b"}}});
    cases.push_back(cases.back());
    cases.back().op.Set("start_index", -3).Set("length", -1);
  }
  const LoD lod = {{0, 1, 3, 4}};
  for (const bool by_sequence : {false, true}) {
    GradientCase c{
        "filter_by_instag",
        WithSlots("filter_by_instag", {"Ins", "Ins_tag", "Filter_tag"}, {"Out", "LossWeight", "IndexMap"})
            .Set("is_lod", by_sequence),
        {{"Ins", by_sequence ? WithLod(Values({4, 2}), lod) : Values({3, 2})},
         {"Ins_tag", WithLod(TensorOf<std::int64_t>({5, 1}, {1, 2, 1, 3, 2}), {{0, 2, 3, 5}})},
         {"Filter_tag", TensorOf<std::int64_t>({2}, {2, 9})}},
        {.of = {"Out"}, .wanted = {"Ins"}}};
    cases.push_back(c);
  }
  cases.push_back(
      {"shuffle_batch",
       WithSlots("shuffle_batch", {"X", "Seed"}, {"Out", "ShuffleIdx", "SeedOut"}).Set("startup_seed", 7),
       {{"X", Values({2, 3, 2})}, {"Seed", TensorOf<std::int64_t>({1}, {5})}},
       {.of = {"Out"}, .wanted = {"X"}}});
}

void AddTexts(std::vector<GradientCase>& cases) {
  cases.push_back({"match_matrix_tensor",
                   WithSlots("match_matrix_tensor", {"X", "Y", "W"}, {"Out", "Tmp"}).Set("dim_t", 2),
                   {{"X", WithLod(Values({5, 2}), {{0, 2, 5}})},
                    {"Y", WithLod(Values({4, 3}, -1, 1, 3), {{0, 3, 4}})},
                    {"W", Values({2, 2, 3}, -1, 1, 4)}},
                   {.of = {"Out"}, .wanted = {"X", "Y", "W"}}});
  cases.push_back({"sequence_topk_avg_pooling",
                   WithSlots("sequence_topk_avg_pooling", {"X", "ROW", "COLUMN"}, {"Out", "pos"})
                       .Set("topks", std::vector<std::int32_t>{1, 2, 4})
                       .Set("channel_num", 2),
                   {{"X", WithLod(Values({18, 1}), {{0, 12, 18}})},
                    {"ROW", WithLod(Values({5, 1}), {{0, 2, 5}})},
                    {"COLUMN", WithLod(Values({4, 1}), {{0, 3, 4}})}},
                   {.of = {"Out"}, .wanted = {"X"}}});
  for (const std::int64_t padding : {-1, 3}) {
    cases.push_back(
        {"fused_embedding_seq_pool",
         WithSlots("fused_embedding_seq_pool", {"W", "Ids"}, {"Out"}).Set("padding_idx", padding),
         {{"W", Values({5, 2})}, {"Ids", WithLod(TensorOf<std::int64_t>({4, 1}, {1, 3, 1, 4}), {{0, 3, 4}})}},
         {.of = {"Out"}, .wanted = {"W"}}});
  }
  cases.push_back({"fused_embedding_seq_pool of two columns",
                   WithSlots("fused_embedding_seq_pool", {"W", "Ids"}, {"Out"}),
                   {{"W", Values({5, 2})},
                    {"Ids", WithLod(TensorOf<std::int64_t>({3, 1, 2}, {1, 3, 1, 4, 0, 3}), {{0, 2, 3}})}},
                   {.of = {"Out"}, .wanted = {"W"}}});
  for (const bool in_sequences : {false, true}) {
    GradientCase c = Unary("add_position_encoding", in_sequences ? Shape{5, 4} : Shape{2, 3, 4});
    if (in_sequences) c.inputs["X"].set_lod({{0, 2, 5}});
    c.op.Set("alpha", 0.5f).Set("beta", 2.0f);
    cases.push_back(c);
  }
  for (const bool has_bias : {false, true}) {
    GradientCase c{
        "bilinear_tensor_product",
        WithSlots("bilinear_tensor_product", {"X", "Y", "Weight"}, {"Out"}),
        {{"X", Values({3, 2})}, {"Y", Values({3, 4}, -1, 1, 3)}, {"Weight", Values({2, 2, 4}, -1, 1, 4)}},
        {.of = {"Out"}, .wanted = {"X", "Y", "Weight"}}};
    if (has_bias) {
      c.op.AddInput("Bias", {"Bias"});
      c.inputs["Bias"] = Values({1, 2}, -1, 1, 5);
      c.check.wanted.insert("Bias");
    }
    cases.push_back(c);
  }
  cases.push_back({"fsp",
                   WithSlots("fsp", {"X", "Y"}, {"Out"}),
                   {{"X", Values({2, 2, 2, 3})}, {"Y", Values({2, 3, 2, 3}, -1, 1, 3)}},
                   {.of = {"Out"}, .wanted = {"X", "Y"}}});
}

void AddImagesOfSizes(std::vector<GradientCase>& cases) {
  const auto in_rows = [](Dim count, const LoD& lod) { return WithLod(Values({count, 1}), lod); };
  cases.push_back({"var_conv_2d",
                   WithSlots("var_conv_2d", {"X", "ROW", "COLUMN", "W"}, {"Out", "Col"})
                       .Set("InputChannel", 2)
                       .Set("OutputChannel", 2)
                       .Set("KernelH", 2)
                       .Set("KernelW", 3)
                       .Set("StrideH", 2),
                   {{"X", in_rows(18, {{0, 12, 18}})},
                    {"ROW", in_rows(5, {{0, 2, 5}})},
                    {"COLUMN", in_rows(4, {{0, 3, 4}})},
                    {"W", Values({2, 12}, -1, 1, 3)}},
                   {.of = {"Out"}, .wanted = {"X", "W"}}});
}

}  // namespace

std::vector<GradientCase> RecommendGradientCases() {
  std::vector<GradientCase> cases;
  for (auto* add : {AddRankingLosses, AddDataNorms, AddColumns, AddTexts, AddImagesOfSizes}) add(cases);
  return cases;
}

}  // namespace penstock::test
