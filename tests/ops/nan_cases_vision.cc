// Results for NaN of the ops of operators/vision and operators/detection that declare them, and volumes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ops/vision_cases.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

Tensor Of(const Shape& shape, std::initializer_list<double> values) {
  Tensor tensor(DType::kFp32, shape);
  std::ranges::transform(values, tensor.Data<float>(),
                         [](double value) { return static_cast<float>(value); });
  return tensor;
}
Tensor WholeOf(const Shape& shape, std::initializer_list<std::int32_t> values) {
  return TensorOf<std::int32_t>(shape, values);
}
// The rows, as rows of one image.
Tensor OneImage(Tensor tensor) {
  tensor.set_lod({{0, static_cast<std::uint64_t>(tensor.shape()[0])}});
  return tensor;
}

void AddPoolings(std::vector<NanCase>& cases) {
  const Tensor image = Of({1, 1, 2, 2}, {1, kNoNumber, 3, kNoNumber});
  const Tensor volume = Of({1, 1, 1, 2, 2}, {1, kNoNumber, 3, kNoNumber});
  cases.push_back({WithSlots("max_pool2d_with_index", {"X"}, {"Out", "Mask"}).Set("ksize", Ints{2, 2}),
                   {{"X", image}},
                   {{"Out", {kNoNumber}}, {"Mask", {1}}}});
  cases.push_back({WithSlots("max_pool3d_with_index", {"X"}, {"Out", "Mask"}).Set("ksize", Ints{1, 2, 2}),
                   {{"X", volume}},
                   {{"Out", {kNoNumber}}, {"Mask", {1}}}});
  Op pool = WithSlots("pool3d", {"X"}, {"Out"}).Set("pooling_type", "max").Set("ksize", Ints{1, 2, 2});
  cases.push_back({pool, {{"X", volume}}, {{"Out", {kNoNumber}}}});
  const Tensor rois = OneImage(Of({1, 4}, {kNoNumber, 0, 1, 1}));
  for (const char* type : {"roi_align", "psroi_pool", "prroi_pool", "roi_pool"}) {
    Op op = WithSlots(type, {"X", "ROIs"}, {"Out"});
    if (type == std::string("psroi_pool")) op.Set("output_channels", 1);
    if (type == std::string("roi_pool")) op.AddOutput("Argmax", {"Argmax"});
    cases.push_back({op, {{"X", Of({1, 1, 1, 2}, {3, 5})}, {"ROIs", rois}}, {{"Out", {kNoNumber}}}});
  }
  const Tensor corners = OneImage(Of({1, 8}, {0, 0, 1, 0, 1, kNoNumber, 0, 0}));
  cases.push_back({WithSlots("roi_perspective_transform", {"X", "ROIs"},
                             {"Out", "Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights"}),
                   {{"X", Of({1, 1, 1, 2}, {3, 5})}, {"ROIs", corners}},
                   {{"Out", {kNoNumber}}, {"Mask", {0}}}});
  Op shifted = WithSlots("deformable_psroi_pooling", {"Input", "ROIs", "Trans"}, {"Output", "TopCount"});
  shifted.Set("no_trans", true).Set("spatial_scale", 1.0f).Set("output_dim", 1).Set("trans_std", 0.1f);
  shifted.Set("group_size", Ints{1, 1}).Set("part_size", Ints{1, 1}).Set("sample_per_part", 1);
  cases.push_back({shifted.Set("pooled_height", 1).Set("pooled_width", 1),
                   {{"Input", Of({1, 1, 1, 2}, {3, 5})}, {"ROIs", rois}, {"Trans", Of({1, 2, 1, 1}, {0, 0})}},
                   {{"Output", {kNoNumber}}}});
}

void AddPlaces(std::vector<NanCase>& cases) {
  cases.push_back({WithSlots("grid_sampler", {"X", "Grid"}, {"Output"}),
                   {{"X", Of({1, 1, 1, 2}, {3, 5})}, {"Grid", Of({1, 1, 2, 2}, {kNoNumber, 0, 1, 0})}},
                   {{"Output", {kNoNumber, 5}}}});
  const Tensors window = {{"Input", Of({1, 1, 1, 1}, {4})},
                          {"Offset", Of({1, 2, 1, 1}, {kNoNumber, 0})},
                          {"Filter", Of({1, 1, 1, 1}, {2})},
                          {"Mask", Of({1, 1, 1, 1}, {1})}};
  cases.push_back({WithSlots("deformable_conv_v1", {"Input", "Offset", "Filter"}, {"Output"}),
                   window,
                   {{"Output", {0}}}});
  cases.push_back({WithSlots("deformable_conv", {"Input", "Offset", "Mask", "Filter"}, {"Output"}),
                   window,
                   {{"Output", {0}}}});
}

void AddSuppressions(std::vector<NanCase>& cases) {
  const Tensors found = {{"BBoxes", Of({1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3})},
                         {"Scores", Of({1, 1, 2}, {kNoNumber, 0.5})}};
  for (const char* type : {"multiclass_nms", "multiclass_nms2", "locality_aware_nms", "matrix_nms"}) {
    Op op = WithSlots(type, {"BBoxes", "Scores"}, {"Out"})
                .Set("background_label", -1)
                .Set("score_threshold", 0.1f);
    cases.push_back({op.Set("nms_top_k", -1).Set("keep_top_k", -1), found, {{"Out", {0, 0.5, 2, 2, 3, 3}}}});
    if (EndsWith(type, "2") || type == std::string("matrix_nms"))
      cases.back().op.AddOutput("Index", {"Index"});
  }
  Op retina = WithSlots("retinanet_detection_output", {"BBoxes", "Scores", "Anchors", "ImInfo"}, {"Out"});
  retina.Set("score_threshold", 0.1f).Set("nms_top_k", -1).Set("nms_threshold", 0.3f).Set("nms_eta", 1.0f);
  cases.push_back({retina.Set("keep_top_k", -1),
                   {{"BBoxes", Of({1, 2, 4}, {0, 0, 0, 0, 0, 0, 0, 0})},
                    {"Scores", Of({1, 2, 1}, {kNoNumber, 0.5})},
                    {"Anchors", Of({2, 4}, {0, 0, 4, 4, 1, 1, 5, 5})},
                    {"ImInfo", Of({1, 3}, {10, 10, 1})}},
                   {{"Out", {1, 0.5, 1, 1, 5, 5}}}});
  Op propose = WithSlots("generate_proposals", {"Scores", "BboxDeltas", "ImInfo", "Anchors", "Variances"},
                         {"RpnRois", "RpnRoiProbs"});
  propose.Set("pre_nms_topN", 0).Set("post_nms_topN", 0).Set("nms_thresh", 0.5f).Set("min_size", 1.0f);
  cases.push_back({propose.Set("eta", 1.0f),
                   {{"Scores", Of({1, 2, 1, 1}, {kNoNumber, 0.5})},
                    {"BboxDeltas", Of({1, 8, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0})},
                    {"ImInfo", Of({1, 3}, {10, 10, 1})},
                    {"Anchors", Of({1, 1, 2, 4}, {0, 0, 4, 4, 1, 1, 5, 5})},
                    {"Variances", Of({1, 1, 2, 4}, {1, 1, 1, 1, 1, 1, 1, 1})}},
                   {{"RpnRois", {1, 1, 5, 5}}, {"RpnRoiProbs", {0.5}}}});
}

void AddNanRegions(std::vector<NanCase>& cases) {
  Op distribute = Op("distribute_fpn_proposals").AddInput("FpnRois", {"FpnRois"});
  distribute.AddOutput("MultiFpnRois", {"a", "b"}).AddOutput("RestoreIndex", {"RestoreIndex"});
  cases.push_back(
      {distribute.Set("min_level", 2).Set("max_level", 3).Set("refer_level", 3).Set("refer_scale", 9),
       {{"FpnRois", OneImage(Of({1, 4}, {kNoNumber, 0, 1, 1}))}},
       {{"a", {kNoNumber, 0, 1, 1}}}});
  cases.push_back({WithSlots("collect_fpn_proposals", {"MultiLevelRois", "MultiLevelScores"}, {"FpnRois"})
                       .Set("post_nms_topN", 1),
                   {{"MultiLevelRois", OneImage(Of({2, 4}, {0, 0, 1, 1, 2, 2, 3, 3}))},
                    {"MultiLevelScores", OneImage(Of({2, 1}, {kNoNumber, 0.5}))}},
                   {{"FpnRois", {2, 2, 3, 3}}}});
  cases.push_back({WithSlots("box_decoder_and_assign", {"PriorBox", "TargetBox", "BoxScore"},
                             {"DecodeBox", "OutputAssignBox"}),
                   {{"PriorBox", Of({1, 4}, {0, 0, 1, 1})},
                    {"TargetBox", Of({1, 12}, {0, 0, 0, 0, 0, 0, 0, 0, 0.5, 0, 0, 0})},
                    {"BoxScore", Of({1, 3}, {0, kNoNumber, 0.5})}},
                   {{"OutputAssignBox", {1, 0, 2, 1}}}});
  Op found = WithSlots("detection_map", {"DetectRes", "Label"},
                       {"AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP"});
  cases.push_back({found.Set("class_num", 1).Set("background_label", -1),
                   {{"DetectRes", OneImage(Of({1, 6}, {0, 0.5, kNoNumber, 0, 1, 1}))},
                    {"Label", OneImage(Of({1, 5}, {0, 0, 0, 1, 1}))}},
                   {{"MAP", {0}}, {"AccumFalsePos", {0.5, 1}}}});
}

void AddMatches(std::vector<NanCase>& cases) {
  cases.push_back({WithSlots("bipartite_match", {"DistMat"}, {"ColToRowMatchIndices", "ColToRowMatchDist"}),
                   {{"DistMat", Of({1, 2}, {kNoNumber, 0.5})}},
                   {{"ColToRowMatchIndices", {-1, 0}}}});
  cases.push_back({WithSlots("mine_hard_examples", {"ClsLoss", "MatchIndices", "MatchDist"},
                             {"NegIndices", "UpdatedMatchIndices"}),
                   {{"ClsLoss", Of({1, 3}, {0, kNoNumber, 0.5})},
                    {"MatchIndices", WholeOf({1, 3}, {0, -1, -1})},
                    {"MatchDist", Of({1, 3}, {0.9, 0, 0})}},
                   {{"NegIndices", {2}}}});
  Op yolo = WithSlots("yolo_box", {"X", "ImgSize"}, {"Boxes", "Scores"}).Set("class_num", 1);
  cases.push_back(
      {yolo.Set("anchors", Ints{1, 1}).Set("downsample_ratio", 1),
       {{"X", Of({1, 6, 1, 1}, {0, 0, 0, 0, 0, kNoNumber})}, {"ImgSize", WholeOf({1, 2}, {2, 2})}},
       {{"Boxes", {0, 0, 1, 1}}, {"Scores", {kNoNumber}}}});
  Op loss = WithSlots("yolov3_loss", {"X", "GTBox", "GTLabel"}, {"Loss", "ObjectnessMask", "GTMatchMask"});
  cases.push_back({loss.Set("class_num", 1).Set("anchors", Ints{1, 1}).Set("anchor_mask", Ints{0}),
                   {{"X", Of({1, 6, 1, 1}, {0, 0, 0, 0, 0, 0})},
                    {"GTBox", Of({1, 1, 4}, {0.5, 0.5, kNoNumber, 1})},
                    {"GTLabel", WholeOf({1, 1}, {0})}},
                   {{"Loss", {std::log(2.0)}}, {"GTMatchMask", {-1}}}});
}

void AddNanTargets(std::vector<NanCase>& cases) {
  const Tensors common = {{"Anchor", Of({2, 4}, {0, 0, 9, 9, kNoNumber, 0, 9, 9})},
                          {"GtBoxes", OneImage(Of({1, 4}, {0, 0, 9, 9}))},
                          {"GtLabels", WholeOf({1, 1}, {2})},
                          {"GtClasses", WholeOf({1, 1}, {2})},
                          {"IsCrowd", WholeOf({1, 1}, {0})},
                          {"ImInfo", Of({1, 3}, {50, 50, 1})},
                          {"RpnRois", OneImage(Of({1, 4}, {kNoNumber, 0, 9, 9}))}};
  const std::vector<std::string> outputs = {"LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel",
                                            "BBoxInsideWeight"};
  Op rpn = WithSlots("rpn_target_assign", {"Anchor", "GtBoxes", "IsCrowd", "ImInfo"}, outputs);
  cases.push_back({rpn.Set("rpn_straddle_thresh", -1.0f).Set("use_random", false),
                   common,
                   {{"LocationIndex", {0}}, {"ScoreIndex", {0, 1}}, {"TargetLabel", {1, 0}}}});
  Op retina =
      WithSlots("retinanet_target_assign", {"Anchor", "GtBoxes", "GtLabels", "IsCrowd", "ImInfo"}, outputs);
  cases.push_back(
      {retina.AddOutput("ForegroundNumber", {"ForegroundNumber"}), common, {{"TargetLabel", {2, 0}}}});
  Op labels = WithSlots("generate_proposal_labels", {"RpnRois", "GtClasses", "IsCrowd", "GtBoxes", "ImInfo"},
                        {"Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"});
  labels.Set("batch_size_per_im", 4)
      .Set("fg_fraction", 0.5f)
      .Set("fg_thresh", 0.5f)
      .Set("bg_thresh_hi", 0.5f);
  labels.Set("bg_thresh_lo", 0.0f)
      .Set("bbox_reg_weights", std::vector<float>{1, 1, 1, 1})
      .Set("class_nums", 3);
  cases.push_back({labels.Set("use_random", false), common, {{"LabelsInt32", {2, 0}}}});
  Tensor outline = Of({4, 2}, {kNoNumber, 0, 1, 0, 1, 1, 0, 1});
  outline.set_lod({{0, 1}, {0, 1}, {0, 4}});
  Op masks =
      WithSlots("generate_mask_labels", {"ImInfo", "GtClasses", "IsCrowd", "GtSegms", "Rois", "LabelsInt32"},
                {"MaskRois", "RoiHasMaskInt32", "MaskInt32"});
  cases.push_back({masks.Set("num_classes", 2).Set("resolution", 1),
                   {{"ImInfo", common.at("ImInfo")},
                    {"GtClasses", OneImage(WholeOf({1, 1}, {1}))},
                    {"IsCrowd", WholeOf({1, 1}, {0})},
                    {"GtSegms", outline},
                    {"Rois", OneImage(Of({1, 4}, {0, 0, 2, 2}))},
                    {"LabelsInt32", WholeOf({1, 1}, {1})}},
                   {{"MaskInt32", {-1, 0}}}});
}

}  // namespace

std::vector<NanCase> VisionNanCases() {
  std::vector<NanCase> cases;
  for (auto* add : {AddPoolings, AddPlaces, AddSuppressions, AddNanRegions, AddMatches, AddNanTargets})
    add(cases);
  return cases;
}

}  // namespace penstock::test
