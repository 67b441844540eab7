// Ops that resize, reorder and sample images: each value of each attribute that changes the results.
#include "tests/ops/vision_cases.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

void AddInterpolation(std::vector<GradientCase>& cases) {
  for (const char* type : {"bilinear_interp", "nearest_interp", "trilinear_interp", "bicubic_interp"}) {
    for (const std::string method : {"bilinear", "nearest", "trilinear", "bicubic"}) {
      for (const char* layout : {"NCHW", "NHWC"}) {
        const bool volume = method == "trilinear";
        cases.push_back(Unary(type, volume ? Shape{1, 2, 2, 3, 2} : Shape{2, 3, 4, 2}));
        cases.back().op.Set("interp_method", method).Set("data_layout", layout);
        cases.back().op.Set("out_d", 3).Set("out_h", 5).Set("out_w", 3);
        cases.back().op.Set("align_corners", layout == std::string("NCHW"));
        cases.back().name = StrCat(type, " ", method, " ", layout);
      }
    }
  }
  for (const int mode : {0, 1}) {
    cases.push_back(Unary("bilinear_interp", {2, 2, 4, 3}));
    cases.back().op.Set("align_corners", false).Set("align_mode", mode).Set("scale", 1.5f);
  }
}

void AddRearranging(std::vector<GradientCase>& cases) {
  cases.push_back(Unary("pixel_shuffle", {2, 8, 2, 3}));
  cases.back().op.Set("upscale_factor", 2);
  cases.push_back(Unary("shuffle_channel", {2, 6, 2, 3}));
  cases.back().op.Set("group", 2);
  cases.push_back(Unary("space_to_depth", {2, 4, 2, 4}));
  cases.push_back(Unary("temporal_shift", {6, 4, 2, 2}));
  cases.back().op.Set("seg_num", 3).Set("shift_ratio", 0.25f);
  Op unfold = WithSlots("unfold", {"X"}, {"Y"}).Set("kernel_sizes", Ints{2, 3}).Set("strides", Ints{2, 1});
  unfold.Set("paddings", Ints{1, 0, 0, 1}).Set("dilations", Ints{1, 2});
  cases.push_back({"unfold", unfold, {{"X", Values({2, 2, 4, 5})}}, {.of = {"Y"}, .wanted = {"X"}}});
}

void AddTransforms(std::vector<GradientCase>& cases) {
  for (const char* layout : {"AnyLayout", "NCHW", "NHWC"}) {
    cases.push_back({StrCat("affine_channel ", layout),
                     WithSlots("affine_channel", {"X", "Scale", "Bias"}, {"Out"}).Set("data_layout", layout),
                     {{"X", Values({2, 3, 2, 3})}, {"Scale", Values({3})}, {"Bias", Values({3})}},
                     {.of = {"Out"}, .wanted = {"X", "Scale", "Bias"}}});
  }
  cases.push_back({"affine_grid",
                   WithSlots("affine_grid", {"Theta"}, {"Output"}).Set("output_shape", Ints{2, 1, 3, 4}),
                   {{"Theta", Values({2, 2, 3})}},
                   {.of = {"Output"}, .wanted = {"Theta"}}});
  cases.push_back({"grid_sampler",
                   WithSlots("grid_sampler", {"X", "Grid"}, {"Output"}),
                   {{"X", Values({2, 2, 4, 3})}, {"Grid", Values({2, 3, 2, 2}, -1.3, 1.3, 7)}},
                   {.of = {"Output"}, .wanted = {"X", "Grid"}}});
}

// Two regions of the first image, one of the second.
Tensor Regions() {
  Tensor rois = TensorOf<double>({3, 4}, {0.3, 0.6, 3.2, 4.4, 1.4, 0.2, 4.3, 2.7, -0.7, 1.3, 2.6, 5.8});
  rois.set_lod({{0, 2, 3}});
  return rois;
}

GradientCase Pooled(const std::string& type, Dim channels) {
  Op op = WithSlots(type, {"X", "ROIs"}, {"Out"}).Set("pooled_height", 2).Set("pooled_width", 3);
  return {type,
          op.Set("spatial_scale", 0.75f),
          {{"X", Values({2, channels, 5, 4})}, {"ROIs", Regions()}},
          {.of = {"Out"}, .wanted = {"X"}}};
}

void AddRegions(std::vector<GradientCase>& cases) {
  for (const int ratio : {-1, 2}) {
    cases.push_back(Pooled("roi_align", 2));
    cases.back().op.Set("sampling_ratio", ratio);
  }
  cases.push_back(Pooled("roi_align", 2));
  cases.back().op.AddInput("RoisLod", {"RoisLod"});
  cases.back().inputs["RoisLod"] = TensorOf<std::int64_t>({3}, {0, 1, 3});
  cases.push_back(Pooled("psroi_pool", 12));
  cases.back().op.Set("output_channels", 2);
  cases.push_back(Pooled("prroi_pool", 2));
  cases.back().check.wanted = {"X", "ROIs"};
  cases.push_back(Pooled("prroi_pool", 2));
  cases.back().op.AddInput("BatchRoINums", {"BatchRoINums"});
  cases.back().inputs["BatchRoINums"] = TensorOf<std::int64_t>({2}, {1, 2});
  cases.push_back(Pooled("roi_pool", 2));
  cases.back().op.AddOutput("Argmax", {"Argmax"});
  for (const bool no_trans : {false, true}) {
    Op op = WithSlots("deformable_psroi_pooling", {"Input", "ROIs", "Trans"}, {"Output", "TopCount"});
    op.Set("no_trans", no_trans).Set("spatial_scale", 0.75f).Set("output_dim", 4).Set("trans_std", 0.2f);
    op.Set("group_size", Ints{2, 1}).Set("part_size", Ints{2, 2}).Set("sample_per_part", 2);
    cases.push_back({StrCat("deformable_psroi_pooling ", no_trans),
                     op.Set("pooled_height", 3).Set("pooled_width", 2),
                     {{"Input", Values({2, 8, 5, 4})},
                      {"ROIs", Regions()},
                      {"Trans", Values({3, 4, 2, 2}, -0.5, 0.5, 3)}},
                     {.of = {"Output"}, .wanted = {"Input", "Trans"}}});
    if (no_trans) cases.back().check.wanted = {"Input"};
  }
}

void AddQuadrilaterals(std::vector<GradientCase>& cases) {
  Tensor rois = TensorOf<double>({2, 8}, {1, 0.5, 9, 2, 8.5, 7.5, 2, 6, 0, 0, 6, 1, 7, 9, -1, 7});
  rois.set_lod({{0, 1, 2}});
  cases.push_back({"roi_perspective_transform",
                   WithSlots("roi_perspective_transform", {"X", "ROIs"},
                             {"Out", "Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights"})
                       .Set("spatial_scale", 0.5f)
                       .Set("transformed_height", 3)
                       .Set("transformed_width", 4),
                   {{"X", Values({2, 2, 5, 6})}, {"ROIs", rois}},
                   {.of = {"Out"}, .wanted = {"X"}}});
}

void AddDeformable(std::vector<GradientCase>& cases) {
  for (const bool masked : {true, false}) {
    const char* const type = masked ? "deformable_conv" : "deformable_conv_v1";
    Op op = WithSlots(type, {"Input", "Offset", "Filter"}, {"Output"}).Set("strides", Ints{2, 1});
    op.Set("paddings", Ints{1, 0}).Set("dilations", Ints{1, 2}).Set("groups", 2).Set("deformable_groups", 2);
    cases.push_back({type,
                     op,
                     {{"Input", Values({2, 4, 5, 4})},
                      {"Offset", Values({2, 16, 3, 2}, -1.2, 1.2, 3)},
                      {"Filter", Values({2, 2, 2, 2}, -1, 1, 5)}},
                     {.of = {"Output"}, .wanted = {"Input", "Offset", "Filter"}}});
    if (!masked) continue;
    cases.back().op.AddInput("Mask", {"Mask"});
    cases.back().inputs["Mask"] = Values({2, 8, 3, 2}, 0.1, 0.9, 7);
    cases.back().check.wanted.insert("Mask");
  }
}

}  // namespace

std::vector<GradientCase> VisionGradientCases() {
  std::vector<GradientCase> cases;
  AddInterpolation(cases);
  AddRearranging(cases);
  AddTransforms(cases);
  AddRegions(cases);
  AddQuadrilaterals(cases);
  AddDeformable(cases);
  return cases;
}

std::vector<GradientCase> DetectionGradientCases() {
  std::vector<GradientCase> cases;
  cases.push_back({"sigmoid_focal_loss",
                   WithSlots("sigmoid_focal_loss", {"X", "Label", "FgNum"}, {"Out"}).Set("gamma", 1.5f),
                   {{"X", Values({4, 3})},
                    {"Label", TensorOf<std::int32_t>({4, 1}, {0, 2, -1, 3})},
                    {"FgNum", TensorOf<std::int32_t>({1}, {2})}},
                   {.of = {"Out"}, .wanted = {"X"}}});
  for (const bool smooth : {false, true}) {
    Op yolo = WithSlots("yolov3_loss", {"X", "GTBox", "GTLabel", "GTScore"}, {"Loss"}).Set("class_num", 2);
    yolo.AddOutput("ObjectnessMask", {"ObjectnessMask"}).AddOutput("GTMatchMask", {"GTMatchMask"});
    yolo.Set("anchors", Ints{10, 13, 16, 30, 33, 23})
        .Set("anchor_mask", Ints{0, 2})
        .Set("ignore_thresh", 0.3f);
    cases.push_back({StrCat("yolov3_loss ", smooth),
                     yolo.Set("use_label_smooth", smooth).Set("downsample_ratio", 16),
                     {{"X", Values({2, 14, 2, 2}, -1, 1)},
                      {"GTBox", TensorOf<double>({2, 2, 4}, {0.3, 0.6, 0.4, 0.5, 0.8, 0.2, 0.9, 0.7, 0.6, 0.7,
                                                             0.3, 0.4, 0.5, 0.5, 0.0, 0.0})},
                      {"GTLabel", TensorOf<std::int32_t>({2, 2}, {0, 1, 1, 0})},
                      {"GTScore", Values({2, 2}, 0.3, 1, 3)}},
                     {.of = {"Loss"}, .wanted = {"X"}}});
  }
  return cases;
}

}  // namespace penstock::test
