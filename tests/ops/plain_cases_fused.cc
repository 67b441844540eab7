// Fused ops of inference programs, without a gradient.
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Strings = std::vector<std::string>;

Tensor Some(const Shape& shape) { return Scattered(DType::kFp32, shape, 0.2, 0.9); }
Tensor InTwo(Tensor tensor) {
  tensor.set_lod({{0, 2, 5}});
  return tensor;
}

void AddFusedLayers(std::vector<PlainCase>& cases) {
  for (const char* activation : {"", "relu"}) {
    cases.push_back({WithSlots("fc", {"Input", "W", "Bias"}, {"Out"}).Set("activation_type", activation),
                     {{"Input", Some({2, 3})}, {"W", Some({3, 4})}, {"Bias", Some({4})}}});
  }
  cases.push_back({WithSlots("fc", {"Input", "W"}, {"Out"}).Set("padding_weights", true),
                   {{"Input", Some({2, 3})}, {"W", Some({7, 6})}}});
  cases.push_back({Op("fusion_repeated_fc_relu")
                       .AddInput("X", {"X"})
                       .AddInput("W", {"v", "w"})
                       .AddInput("Bias", {"a", "b"})
                       .AddOutput("ReluOut", {"relu"})
                       .AddOutput("Out", {"Out"}),
                   {{"X", Some({2, 3})},
                    {"v", Some({3, 4})},
                    {"w", Some({4, 2})},
                    {"a", Some({4})},
                    {"b", Some({1, 2})}}});
  cases.push_back(
      {WithSlots("fusion_squared_mat_sub", {"X", "Y"}, {"SquaredX", "SquaredY", "SquaredXY", "Out"}),
       {{"X", Some({2, 3})}, {"Y", Some({3, 2})}}});
}

void AddFusedRecurrences(std::vector<PlainCase>& cases) {
  const Strings made = {"Hidden",        "Cell",        "XX",          "BatchedInput",
                        "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0"};
  const Tensor ids = InTwo(TensorOf<std::int64_t>({5, 1}, {0, 3, 2, 2, 1}));
  for (const bool reversed : {false, true}) {
    cases.push_back({WithSlots("fusion_gru", {"X", "WeightX", "WeightH", "Bias", "H0"},
                               {"ReorderedH0", "XX", "BatchedInput", "BatchedOut", "Hidden"})
                         .Set("is_reverse", reversed)
                         .Set("origin_mode", reversed),
                     {{"X", InTwo(Some({5, 3}))},
                      {"WeightX", Some({3, 6})},
                      {"WeightH", Some({2, 6})},
                      {"Bias", Some({1, 6})},
                      {"H0", Some({2, 2})}}});
    const Tensor bias = Some({1, reversed ? 8 : 14});
    cases.push_back({WithSlots("fusion_lstm", {"X", "WeightX", "WeightH", "Bias", "H0", "C0"}, made)
                         .AddOutput("CheckedCell", {"CheckedCell"})
                         .Set("is_reverse", reversed)
                         .Set("use_peepholes", !reversed),
                     {{"X", InTwo(Some({5, 3}))},
                      {"WeightX", Some({3, 8})},
                      {"WeightH", Some({2, 8})},
                      {"Bias", bias},
                      {"H0", Some({2, 2})},
                      {"C0", Some({2, 2})}}});
    cases.push_back(
        {WithSlots("fused_embedding_fc_lstm", {"Ids", "Embeddings", "WeightH", "Bias"}, made)
             .Set("is_reverse", reversed)
             .Set("use_peepholes", !reversed),
         {{"Ids", ids}, {"Embeddings", Some({4, 8})}, {"WeightH", Some({2, 8})}, {"Bias", bias}}});
  }
  cases.push_back({WithSlots("attention_lstm",
                             {"X", "C0", "H0", "AttentionWeight", "AttentionBias", "AttentionScalar",
                              "AttentionScalarBias", "LSTMWeight", "LSTMBias"},
                             {"Hidden", "Cell", "AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT"}),
                   {{"X", InTwo(Some({5, 3}))},
                    {"C0", Some({2, 2})},
                    {"H0", Some({2, 2})},
                    {"AttentionWeight", Some({5, 1})},
                    {"AttentionBias", Some({1, 1})},
                    {"AttentionScalar", Some({1, 1})},
                    {"AttentionScalarBias", Some({1, 1})},
                    {"LSTMWeight", Some({5, 8})},
                    {"LSTMBias", Some({1, 8})}}});
}

void AddFusedSequences(std::vector<PlainCase>& cases) {
  cases.push_back({WithSlots("fusion_seqconv_eltadd_relu", {"X", "Filter", "Bias"}, {"Out", "ColMat"})
                       .Set("contextLength", 3)
                       .Set("contextStart", -1),
                   {{"X", InTwo(Some({5, 2}))}, {"Filter", Some({6, 3})}, {"Bias", Some({1, 3})}}});
  cases.push_back({Op("fusion_seqexpand_concat_fc")
                       .AddInput("X", {"x", "y"})
                       .AddInput("FCWeight", {"w"})
                       .AddInput("FCBias", {"b"})
                       .AddOutput("Out", {"Out"})
                       .AddOutput("FCOut", {"FCOut"})
                       .Set("fc_activation", "relu"),
                   {{"x", InTwo(Some({5, 2}))}, {"y", Some({2, 1})}, {"w", Some({3, 2})}, {"b", Some({2})}}});
  for (const char* pool : {"SUM", "AVERAGE", "SQRT"}) {
    Op op = Op("fusion_seqpool_concat").AddInput("X", {"x", "y"}).AddOutput("Out", {"Out"});
    Tensors inputs = {{"x", InTwo(Some({5, 2}))}, {"y", InTwo(Some({5, 2}))}};
    cases.push_back({op.Set("pooltype", pool), inputs});
    inputs["CVM"] = Some({2, 2});
    op = Op("fusion_seqpool_cvm_concat").AddInput("X", {"x", "y"}).AddInput("CVM", {"CVM"});
    cases.push_back({op.AddOutput("Out", {"Out"}).Set("pooltype", pool), inputs});
  }
  cases.push_back({WithSlots("lookup_table_dequant", {"W", "Ids"}, {"Out"}),
                   {{"W", Some({3, 4})}, {"Ids", TensorOf<std::int64_t>({2, 1}, {2, 0})}}});
}

}  // namespace

std::vector<PlainCase> FusedPlainCases() {
  std::vector<PlainCase> cases;
  for (auto* add : {AddFusedLayers, AddFusedRecurrences, AddFusedSequences}) add(cases);
  return cases;
}

}  // namespace penstock::test
