#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

void AddRanking(std::vector<GradientCase>& cases) {
  const Tensor order = TensorOf<double>({4, 1}, {1, -1, 1, -1}), share = Values({4, 1}, 0, 1, 5);
  const Tensor first = Values({4, 1}), second = Values({4, 1}, -2, 2, 8);
  cases.push_back({"rank_loss",
                   WithSlots("rank_loss", {"Label", "Left", "Right"}, {"Out"}),
                   {{"Label", share}, {"Left", first}, {"Right", second}},
                   {.of = {"Out"}, .wanted = {"Left", "Right"}}});
  cases.push_back({"margin_rank_loss",
                   WithSlots("margin_rank_loss", {"Label", "X1", "X2"}, {"Out", "Activated"}),
                   {{"Label", order}, {"X1", first}, {"X2", second}},
                   {.of = {"Out"}, .wanted = {"X1", "X2"}}});
  cases.back().op.Set("margin", 0.5f);
}

void AddSmoothL1(std::vector<GradientCase>& cases) {
  for (const bool weighted : {false, true}) {
    GradientCase c{"smooth_l1_loss",
                   WithSlots("smooth_l1_loss", {"X", "Y"}, {"Out", "Diff"}).Set("sigma", 1.5f),
                   {{"X", Values({3, 4})}, {"Y", Values({3, 4}, -2, 2, 6)}},
                   {.of = {"Out"}, .wanted = {"X", "Y"}}};
    for (const char* slot : {"InsideWeight", "OutsideWeight"}) {
      if (!weighted) continue;
      c.op.AddInput(slot, {slot});
      c.inputs[slot] = Values({3, 4}, 0.5, 1.5, 9);
    }
    cases.push_back(c);
  }
}

void AddNllLoss(std::vector<GradientCase>& cases) {
  for (const char* reduction : {"none", "sum", "mean"}) {
    for (const bool images : {false, true}) {
      const Tensor labels = images ? TensorOf<std::int64_t>({2, 1, 2}, {0, 1, 2, 0})
                                   : TensorOf<std::int64_t>({3}, {2, -100, 1});
      cases.push_back({StrCat("nll_loss ", reduction, images),
                       WithSlots("nll_loss", {"X", "Label", "Weight"}, {"Out", "Total_weight"})
                           .Set("reduction", reduction),
                       {{"X", Values(images ? Shape{2, 3, 1, 2} : Shape{3, 3})},
                        {"Label", labels},
                        {"Weight", TensorOf<double>({3}, {0.5, 2, 1.5})}},
                       {.of = {"Out"}, .wanted = {"X"}}});
    }
  }
}

// Margins beyond -1, between the corners and beyond 1.
void AddModifiedHuber(std::vector<GradientCase>& cases) {
  cases.push_back(
      {"modified_huber_loss",
       WithSlots("modified_huber_loss", {"X", "Y"}, {"IntermediateVal", "Out"}),
       {{"X", TensorOf<double>({4, 1}, {-2, 2, 0.5, 3})}, {"Y", TensorOf<double>({4, 1}, {1, 0, 1, 1})}},
       {.of = {"Out"}, .wanted = {"X"}}});
}

void AddTrees(std::vector<GradientCase>& cases) {
  const std::vector<std::string> outs = {"Out", "PreOut"};
  Tensors inputs = {{"X", Values({3, 2})},
                    {"W", Values({5, 2}, -1, 1, 3)},
                    {"Bias", Values({5, 1}, -1, 1, 4)},
                    {"Label", TensorOf<std::int64_t>({3, 1}, {0, 3, 5})}};
  const GradientCheck check{.of = {"Out"}, .wanted = {"X", "W", "Bias"}};
  cases.push_back({"hierarchical_sigmoid",
                   WithSlots("hierarchical_sigmoid", {"X", "W", "Bias", "Label"}, outs).Set("num_classes", 6),
                   inputs, check});
  inputs["PathTable"] = TensorOf<std::int64_t>({3, 3}, {0, 2, -1, 0, 1, 4, 3, -1, -1});
  inputs["PathCode"] = TensorOf<std::int64_t>({3, 3}, {1, 0, 0, 0, 1, 1, 1, 0, 0});
  cases.push_back(
      {"hierarchical_sigmoid by a table",
       WithSlots("hierarchical_sigmoid", {"X", "W", "Bias", "Label", "PathTable", "PathCode"}, outs)
           .Set("num_classes", 6),
       inputs, check});
}

void AddNoise(std::vector<GradientCase>& cases) {
  for (const int sampler : {0, 1, 2}) {
    Op op = WithSlots("nce", {"Input", "Label", "Weight", "Bias", "SampleWeight"},
                      {"Cost", "SampleLogits", "SampleLabels"});
    op.Set("num_total_classes", 5).Set("num_neg_samples", 3).Set("seed", 11).Set("sampler", sampler);
    Tensors inputs = {{"Input", Values({3, 2})},
                      {"Label", TensorOf<std::int64_t>({3, 2}, {0, 4, 2, 1, 3, 3})},
                      {"Weight", Values({5, 2}, -1, 1, 3)},
                      {"Bias", Values({5, 1}, -1, 1, 4)},
                      {"SampleWeight", Values({3}, 0.5, 1.5, 5)}};
    if (sampler == 2) {
      inputs["CustomDistProbs"] = TensorOf<float>({5}, {0.2f, 0.2f, 0.1f, 0.3f, 0.2f});
      inputs["CustomDistAlias"] = TensorOf<std::int32_t>({5}, {-1, -1, 3, -1, -1});
      inputs["CustomDistAliasProbs"] = TensorOf<float>({5}, {1, 1, 0.5f, 1, 1});
      for (const char* slot : {"CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"})
        op.AddInput(slot, {slot});
    }
    cases.push_back(
        {StrCat("nce ", sampler), op, inputs, {.of = {"Cost"}, .wanted = {"Input", "Weight", "Bias"}}});
  }
}

// The third label has equal neighbours, and the last one has no valid alignment.
void AddCtc(std::vector<GradientCase>& cases) {
  const std::vector<std::string> outs = {"WarpCTCGrad", "Loss"};
  Tensor logits = Values({12, 3});
  logits.set_lod({{0, 4, 6, 10, 12}});
  for (const int blank : {0, 2}) {
    Tensor labels = TensorOf<std::int32_t>({6, 1}, {1, 2 - blank, 2 - blank, 2 - blank, 1, 1});
    labels.set_lod({{0, 2, 2, 4, 6}});
    cases.push_back({"warpctc",
                     WithSlots("warpctc", {"Logits", "Label"}, outs).Set("blank", blank),
                     {{"Logits", logits}, {"Label", labels}},
                     {.of = {"Loss"}, .wanted = {"Logits"}}});
  }
  cases.push_back({"warpctc of padded sequences",
                   WithSlots("warpctc", {"Logits", "Label", "LogitsLength", "LabelLength"}, outs),
                   {{"Logits", Values({5, 3, 3})},
                    {"Label", TensorOf<std::int32_t>({3, 2}, {1, 2, 2, 9, 1, 1})},
                    {"LogitsLength", TensorOf<std::int64_t>({3}, {5, 0, 4})},
                    {"LabelLength", TensorOf<std::int64_t>({3}, {2, 1, 2})}},
                   {.of = {"Loss"}, .wanted = {"Logits"}}});
}

void AddSamples(std::vector<GradientCase>& cases) {
  const std::vector<std::string> outs = {"Samples",   "Probabilities", "LogitsDim",
                                         "LabelsDim", "SampledLogits", "SampledLabels"};
  // Labels that are not sampled: the removed values are so large that they do not change the result.
  const Tensors inputs = {{"Logits", Values({3, 30})},
                          {"Labels", TensorOf<std::int64_t>({3, 2}, {20, 28, 22, 21, 23, 23})}};
  for (const bool removes : {false, true}) {
    for (const bool unique : {false, true}) {
      cases.push_back({"sample_logits",
                       WithSlots("sample_logits", {"Logits", "Labels"}, outs)
                           .Set("num_samples", 4)
                           .Set("seed", 5)
                           .Set("uniq", unique)
                           .Set("remove_accidental_hits", removes),
                       inputs,
                       {.of = {"SampledLogits"}, .wanted = {"Logits"}}});
    }
  }
  Op given = cases.back().op;
  Tensors more = inputs;
  for (const char* slot : {"CustomizedSamples", "CustomizedProbabilities"}) given.AddInput(slot, {slot});
  more["CustomizedSamples"] =
      TensorOf<std::int64_t>({3, 6}, {0, 8, 1, 2, 3, 4, 2, 1, 2, 2, 3, 4, 3, 3, 1, 2, 5, 4});
  more["CustomizedProbabilities"] = Values({3, 6}, 0.1, 0.9, 3);
  cases.push_back({"sample_logits of given samples",
                   given.Set("use_customized_samples", true).Set("remove_accidental_hits", false),
                   more,
                   {.of = {"SampledLogits"}, .wanted = {"Logits"}}});
}

}  // namespace

std::vector<GradientCase> LossGradientCases() {
  std::vector<GradientCase> cases;
  for (const char* reduction : {"none", "mean", "batchmean", "sum"}) {
    cases.push_back({StrCat("kldiv_loss ", reduction),
                     WithSlots("kldiv_loss", {"X", "Target"}, {"Loss"}).Set("reduction", reduction),
                     {{"X", Values({3, 4})}, {"Target", Values({3, 4}, -0.2, 0.9, 3)}},
                     {.of = {"Loss"}, .wanted = {"X"}}});
  }
  AddRanking(cases);
  AddSmoothL1(cases);
  AddModifiedHuber(cases);
  AddNllLoss(cases);
  AddTrees(cases);
  AddNoise(cases);
  AddCtc(cases);
  AddSamples(cases);
  return cases;
}

}  // namespace penstock::test
