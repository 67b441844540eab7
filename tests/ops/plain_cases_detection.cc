// Ops of operators/detection without a gradient, each with valid inputs.
#include "tests/ops/vision_cases.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;
using Floats32 = std::vector<float>;

const Floats32 kVariances = {0.1f, 0.1f, 0.2f, 0.2f};

Tensor Scores(const Shape& shape, unsigned seed = 1, double low = 0.2, double high = 0.9) {
  return Scattered(DType::kFp32, shape, low, high, seed);
}
Tensor Divided(Tensor tensor, const LoD& lod) {
  tensor.set_lod(lod);
  return tensor;
}
// Boxes in pixels.
Tensor Boxes() { return TensorOf<float>({4, 4}, {1, 2, 9, 12, 3, 3, 11, 14, 0, 1, 4, 6, 8, 8, 15, 13}); }
Tensor ImageInfo() { return TensorOf<float>({2, 3}, {16, 20, 1, 16, 18, 2}); }
Tensor Marks(std::initializer_list<std::int32_t> values) {
  return TensorOf<std::int32_t>({static_cast<Dim>(values.size()), 1}, values);
}

void AddPriors(std::vector<PlainCase>& cases) {
  for (const bool order : {false, true}) {
    Op prior =
        WithSlots("prior_box", {"Input", "Image"}, {"Boxes", "Variances"}).Set("variances", kVariances);
    prior.Set("min_sizes", Floats32{4}).Set("max_sizes", Floats32{6}).Set("aspect_ratios", Floats32{2});
    cases.push_back({prior.Set("min_max_aspect_ratios_order", order),
                     {{"Input", Scores({1, 2, 2, 3})}, {"Image", Scores({1, 3, 8, 12})}}});
  }
  Op density = WithSlots("density_prior_box", {"Input", "Image"}, {"Boxes", "Variances"});
  density.Set("variances", kVariances).Set("fixed_sizes", Floats32{4}).Set("fixed_ratios", Floats32{1, 2});
  cases.push_back({density.Set("densities", Ints{2}),
                   {{"Input", Scores({1, 2, 2, 3})}, {"Image", Scores({1, 3, 8, 12})}}});
  Op anchors =
      WithSlots("anchor_generator", {"Input"}, {"Anchors", "Variances"}).Set("variances", kVariances);
  cases.push_back({anchors.Set("anchor_sizes", Floats32{32}).Set("aspect_ratios", Floats32{0.5f, 1}),
                   {{"Input", Scores({1, 2, 2, 3})}}});
}

void AddBoxes(std::vector<PlainCase>& cases) {
  for (const char* code : {"encode_center_size", "decode_center_size"}) {
    for (const int axis : {0, 1}) {
      const bool encodes = code == std::string("encode_center_size");
      cases.push_back({WithSlots("box_coder", {"PriorBox", "TargetBox"}, {"OutputBox"})
                           .Set("code_type", code)
                           .Set("axis", axis)
                           .Set("variance", kVariances),
                       {{"PriorBox", Boxes()}, {"TargetBox", encodes ? Boxes() : Scores({4, 4, 4})}}});
    }
  }
  cases.push_back({WithSlots("iou_similarity", {"X", "Y"}, {"Out"}).Set("box_normalized", false),
                   {{"X", Boxes()}, {"Y", Boxes()}}});
  cases.push_back({WithSlots("box_clip", {"Input", "ImInfo"}, {"Output"}),
                   {{"Input", Divided(Boxes(), {{0, 3, 4}})}, {"ImInfo", ImageInfo()}}});
  cases.push_back(
      {WithSlots("polygon_box_transform", {"Input"}, {"Output"}), {{"Input", Scores({2, 4, 2, 3})}}});
  cases.push_back({WithSlots("box_decoder_and_assign", {"PriorBox", "PriorBoxVar", "TargetBox", "BoxScore"},
                             {"DecodeBox", "OutputAssignBox"}),
                   {{"PriorBox", Boxes()},
                    {"PriorBoxVar", TensorOf<float>({4}, {0.1f, 0.1f, 0.2f, 0.2f})},
                    {"TargetBox", Scores({4, 12})},
                    {"BoxScore", Scores({4, 3}, 3)}}});
  Op yolo = WithSlots("yolo_box", {"X", "ImgSize"}, {"Boxes", "Scores"}).Set("class_num", 2);
  cases.push_back(
      {yolo.Set("anchors", Ints{10, 13, 16, 30}),
       {{"X", Scores({2, 14, 2, 2})}, {"ImgSize", TensorOf<std::int32_t>({2, 2}, {40, 50, 60, 30})}}});
}

void AddMatching(std::vector<PlainCase>& cases) {
  for (const char* type : {"bipartite", "per_prediction"})
    cases.push_back({WithSlots("bipartite_match", {"DistMat"}, {"ColToRowMatchIndices", "ColToRowMatchDist"})
                         .Set("match_type", type),
                     {{"DistMat", Divided(Scores({5, 4}), {{0, 2, 5}})}}});
  const Tensor match = TensorOf<std::int32_t>({2, 4}, {0, -1, 1, -1, -1, 2, -1, -1});
  cases.push_back({WithSlots("target_assign", {"X", "MatchIndices", "NegIndices"}, {"Out", "OutWeight"}),
                   {{"X", Divided(Scores({5, 2, 3}), {{0, 2, 5}})},
                    {"MatchIndices", match},
                    {"NegIndices", Divided(Marks({1, 3, 0}), {{0, 2, 3}})}}});
  for (const char* type : {"max_negative", "hard_example"})
    cases.push_back({WithSlots("mine_hard_examples", {"ClsLoss", "LocLoss", "MatchIndices", "MatchDist"},
                               {"NegIndices", "UpdatedMatchIndices"})
                         .Set("mining_type", type)
                         .Set("sample_size", 3),
                     {{"ClsLoss", Scores({2, 4})},
                      {"LocLoss", Scores({2, 4}, 3)},
                      {"MatchIndices", match},
                      {"MatchDist", Scores({2, 4}, 5)}}});
}

Op Nms(const std::string& type) {
  Op op = WithSlots(type, {"BBoxes", "Scores"}, {"Out"}).Set("score_threshold", 0.3f);
  return op.Set("nms_top_k", 3).Set("keep_top_k", 4).Set("normalized", false);
}

void AddDetections(std::vector<PlainCase>& cases) {
  Tensor boxes(DType::kFp32, {1, 4, 4});
  std::ranges::copy(Boxes().Span<float>(), boxes.Data<float>());
  const Tensors found = {{"BBoxes", boxes}, {"Scores", Scores({1, 2, 4})}};
  for (const char* type : {"multiclass_nms", "multiclass_nms2", "locality_aware_nms", "matrix_nms"}) {
    cases.push_back({Nms(type), found});
    if (EndsWith(type, "2") || type == std::string("matrix_nms"))
      cases.back().op.AddOutput("Index", {"Index"});
  }
  Op propose = WithSlots("generate_proposals", {"Scores", "BboxDeltas", "ImInfo", "Anchors", "Variances"},
                         {"RpnRois", "RpnRoiProbs", "RpnRoisLod"});
  propose.Set("pre_nms_topN", 5).Set("post_nms_topN", 3).Set("nms_thresh", 0.7f).Set("min_size", 1.0f);
  Tensor anchors(DType::kFp32, {2, 1, 2, 4});
  std::ranges::copy(Boxes().Span<float>(), anchors.Data<float>());
  cases.push_back({propose.Set("eta", 1.0f),
                   {{"Scores", Scores({2, 2, 2, 1})},
                    {"BboxDeltas", Scores({2, 8, 2, 1}, 3, -0.3, 0.3)},
                    {"ImInfo", ImageInfo()},
                    {"Anchors", anchors},
                    {"Variances", Scores({2, 1, 2, 4}, 5)}}});
  Op distribute = Op("distribute_fpn_proposals").AddInput("FpnRois", {"FpnRois"});
  distribute.AddOutput("MultiFpnRois", {"a", "b"}).AddOutput("RestoreIndex", {"RestoreIndex"});
  distribute.Set("min_level", 2).Set("max_level", 3).Set("refer_level", 3).Set("refer_scale", 9);
  cases.push_back({distribute, {{"FpnRois", Divided(Boxes(), {{0, 1, 4}})}}});
  Op collect = Op("collect_fpn_proposals").AddInput("MultiLevelRois", {"a", "b"});
  collect.AddInput("MultiLevelScores", {"of_a", "of_b"})
      .AddOutput("FpnRois", {"FpnRois"})
      .Set("post_nms_topN", 5);
  cases.push_back({collect,
                   {{"a", Divided(Boxes(), {{0, 1, 4}})},
                    {"b", Divided(Boxes(), {{0, 3, 4}})},
                    {"of_a", Divided(Scores({4, 1}), {{0, 1, 4}})},
                    {"of_b", Divided(Scores({4, 1}, 3), {{0, 3, 4}})}}});
}

void AddTargets(std::vector<PlainCase>& cases) {
  const Tensor truth = Divided(TensorOf<float>({3, 4}, {1, 2, 9, 11, 8, 8, 15, 13, 0, 1, 5, 6}), {{0, 2, 3}});
  const Tensors common = {
      {"Anchor", Boxes()}, {"GtBoxes", truth}, {"IsCrowd", Marks({0, 0, 0})}, {"ImInfo", ImageInfo()}};
  const std::vector<std::string> outputs = {"LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel",
                                            "BBoxInsideWeight"};
  Op rpn = WithSlots("rpn_target_assign", {"Anchor", "GtBoxes", "IsCrowd", "ImInfo"}, outputs);
  cases.push_back(
      {rpn.Set("rpn_straddle_thresh", 0.0f).Set("rpn_batch_size_per_im", 3).Set("use_random", false),
       common});
  Op retina =
      WithSlots("retinanet_target_assign", {"Anchor", "GtBoxes", "IsCrowd", "ImInfo", "GtLabels"}, outputs);
  cases.push_back({retina.AddOutput("ForegroundNumber", {"ForegroundNumber"}), common});
  cases.back().inputs["GtLabels"] = Marks({1, 2, 1});
  Op labels = WithSlots("generate_proposal_labels", {"RpnRois", "GtClasses", "IsCrowd", "GtBoxes", "ImInfo"},
                        {"Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"});
  labels.Set("batch_size_per_im", 4)
      .Set("fg_fraction", 0.5f)
      .Set("fg_thresh", 0.5f)
      .Set("bg_thresh_hi", 0.5f);
  labels.Set("bg_thresh_lo", 0.0f)
      .Set("bbox_reg_weights", kVariances)
      .Set("class_nums", 3)
      .Set("use_random", false);
  cases.push_back({labels,
                   {{"RpnRois", Divided(Boxes(), {{0, 2, 4}})},
                    {"GtClasses", Marks({1, 2, 1})},
                    {"IsCrowd", Marks({0, 0, 0})},
                    {"GtBoxes", truth},
                    {"ImInfo", ImageInfo()}}});
}

void AddResults(std::vector<PlainCase>& cases) {
  Op retina =
      Op("retinanet_detection_output").AddInput("BBoxes", {"a", "b"}).AddInput("Scores", {"of_a", "of_b"});
  retina.AddInput("Anchors", {"at_a", "at_b"}).AddInput("ImInfo", {"ImInfo"}).AddOutput("Out", {"Out"});
  retina.Set("score_threshold", 0.3f).Set("nms_top_k", 4).Set("nms_threshold", 0.3f).Set("nms_eta", 1.0f);
  cases.push_back({retina.Set("keep_top_k", 5),
                   {{"a", Scores({2, 4, 4})},
                    {"b", Scores({2, 4, 4}, 3)},
                    {"of_a", Scores({2, 4, 2}, 5)},
                    {"of_b", Scores({2, 4, 2}, 7)},
                    {"at_a", Boxes()},
                    {"at_b", Boxes()},
                    {"ImInfo", ImageInfo()}}});
  const Tensor found = TensorOf<float>({3, 6}, {1, 0.9f, 0.1f, 0.1f, 0.5f, 0.5f, 0, 0.8f, 0.6f, 0.6f, 0.9f,
                                                0.9f, 1, 0.7f, 0.5f, 0.5f, 0.9f, 0.8f});
  const Tensor truth = TensorOf<float>({2, 6}, {1, 0, 0.1f, 0.2f, 0.5f, 0.5f, 1, 1, 0.5f, 0.5f, 0.8f, 0.8f});
  for (const char* kind : {"integral", "11point"}) {
    Op map = WithSlots("detection_map", {"DetectRes", "Label"},
                       {"AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP"});
    cases.push_back({map.Set("class_num", 2).Set("ap_type", kind).Set("background_label", -1),
                     {{"DetectRes", Divided(found, {{0, 2, 3}})}, {"Label", Divided(truth, {{0, 1, 2}})}}});
  }
  Op masks =
      WithSlots("generate_mask_labels", {"ImInfo", "GtClasses", "IsCrowd", "GtSegms", "Rois", "LabelsInt32"},
                {"MaskRois", "RoiHasMaskInt32", "MaskInt32"});
  const Tensor points = TensorOf<float>({7, 2}, {1, 1, 9, 2, 8, 9, 2, 8, 10, 10, 15, 11, 12, 16});
  cases.push_back({masks.Set("num_classes", 3).Set("resolution", 4),
                   {{"ImInfo", ImageInfo()},
                    {"GtClasses", Divided(Marks({1, 2}), {{0, 1, 2}})},
                    {"IsCrowd", Marks({0, 0})},
                    {"GtSegms", Divided(points, {{0, 1, 2}, {0, 1, 2}, {0, 4, 7}})},
                    {"Rois", Divided(Boxes(), {{0, 2, 4}})},
                    {"LabelsInt32", Marks({1, 0, 2, 0})}}});
}

}  // namespace

std::vector<PlainCase> DetectionPlainCases() {
  std::vector<PlainCase> cases;
  AddPriors(cases);
  AddBoxes(cases);
  AddMatching(cases);
  AddDetections(cases);
  AddTargets(cases);
  AddResults(cases);
  return cases;
}

}  // namespace penstock::test
