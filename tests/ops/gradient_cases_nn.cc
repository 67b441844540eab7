// Convolutions, pooling, normalisation, dropout: each value of each attribute that changes the results.
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

GradientCase Convolution(const std::string& type, const std::string& format, const std::string& padding) {
  const bool last = format == "NHWC";
  const bool depthwise = StartsWith(type, "depthwise"), transposed = EndsWith(type, "transpose");
  const int groups = depthwise ? 4 : 2;
  Op op = WithSlots(type, {"Input", "Filter"}, {"Output"}).Set("groups", groups).Set("strides", Ints{2, 1});
  op.Set("data_format", format).Set("padding_algorithm", padding).Set("paddings", Ints{1, 0});
  if (padding == "EXPLICIT") op.Set("dilations", Ints{1, 2});
  if (transposed && padding == "EXPLICIT") op.Set("output_size", Ints{8, 10});
  const Shape filter = transposed ? Shape{4, 1, 3, 3} : Shape{4, 4 / groups, 3, 3};
  return {
      StrCat(type, " ", format, " ", padding),
      op,
      {{"Input", Values(last ? Shape{2, 4, 6, 4} : Shape{2, 4, 4, 6})}, {"Filter", Values(filter, -1, 1, 5)}},
      {.of = {"Output"}, .wanted = {"Input", "Filter"}}};
}

GradientCase Pooling(const std::string& kind, const std::string& format, const std::string& padding) {
  GradientCase c = Unary("pool2d", {2, 4, 5, 4});
  c.op.Set("pooling_type", kind).Set("ksize", Ints{3, 2}).Set("strides", Ints{2, 2});
  c.op.Set("data_format", format).Set("padding_algorithm", padding);
  if (padding == "EXPLICIT") c.op.Set("paddings", Ints{1, 1});
  c.name = StrCat("pool2d ", kind, " ", format, " ", padding);
  return c;
}

void AddPooling(std::vector<GradientCase>& cases) {
  for (const char* kind : {"max", "avg"}) {
    for (const char* padding : {"EXPLICIT", "SAME", "VALID"}) {
      cases.push_back(Pooling(kind, padding == std::string("SAME") ? "NHWC" : "NCHW", padding));
    }
    for (const char* flag : {"global_pooling", "adaptive", "ceil_mode"}) {
      cases.push_back(Pooling(kind, "NCHW", "EXPLICIT"));
      cases.back().op.Set(flag, true);
      cases.back().name += StrCat(" ", flag);
    }
  }
  cases.push_back(Pooling("avg", "AnyLayout", "EXPLICIT"));
  cases.back().op.Set("exclusive", false);
}

GradientCase BatchNorm(const std::string& layout, const std::string& flag) {
  Op op = WithSlots("batch_norm", {"X", "Scale", "Bias", "Mean", "Variance"},
                    {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"});
  op.Set("data_layout", layout);
  if (!flag.empty()) op.Set(flag, true);
  if (flag == "trainable_statistics") op.Set("is_test", true);
  return {StrCat("batch_norm ", layout, " ", flag),
          op,
          {{"X", Values({3, 2, 2, 2})},
           {"Scale", Values({2}, 0.5, 1.5, 2)},
           {"Bias", Values({2}, -1, 1, 3)},
           {"Mean", Values({2}, -1, 1, 4)},
           {"Variance", Values({2}, 0.5, 1.5, 5)}},
          {.of = {"Y"}, .wanted = {"X", "Scale", "Bias"}, .tolerance = 1e-5}};
}

GradientCase InplaceAbn(const std::string& activation, const std::string& layout, const std::string& flag) {
  GradientCase c = BatchNorm(layout, flag);
  c.op.SetType("inplace_abn");
  c.op.Set("activation", activation).Set("alpha", 0.3f);
  c.name = StrCat("inplace_abn ", activation, " ", layout, " ", flag);
  return c;
}

GradientCase BatchNormRelu(const std::string& layout, const std::string& flag, bool adds) {
  GradientCase c = BatchNorm(layout, flag);
  c.op.SetType("batch_norm_relu");
  c.name = StrCat("batch_norm_relu ", layout, " ", flag, adds ? " with Addend" : "");
  if (!adds) return c;
  c.op.AddInput("Addend", {"Addend"});
  c.inputs["Addend"] = Values({3, 2, 2, 2}, -1, 1, 6);
  c.check.wanted.insert("Addend");
  return c;
}

GradientCase Dropout(const std::string& implementation) {
  GradientCase c = Unary("dropout", {4, 5});
  c.op.AddOutput("Mask", {"Mask"}).Set("dropout_prob", 0.4f).Set("seed", 7).Set("fix_seed", true);
  c.op.Set("dropout_implementation", implementation);
  c.name = StrCat("dropout ", implementation);
  return c;
}

void AddMatmul(std::vector<GradientCase>& cases) {
  for (const bool x : {false, true}) {
    for (const bool y : {false, true}) {
      Op op = WithSlots("matmul", {"X", "Y"}, {"Out"}).Set("transpose_X", x).Set("transpose_Y", y);
      cases.push_back({StrCat("matmul ", x, y),
                       op.Set("alpha", 0.5f),
                       {{"X", Values(x ? Shape{2, 4, 3} : Shape{2, 3, 4})},
                        {"Y", Values(y ? Shape{2, 5, 4} : Shape{2, 4, 5}, -1, 1, 3)}},
                       {.of = {"Out"}, .wanted = {"X", "Y"}}});
    }
  }
}

void AddPadding(std::vector<GradientCase>& cases) {
  for (const char* mode : {"constant", "reflect", "edge"}) {
    for (const char* format : {"NCHW", "NHWC"}) {
      cases.push_back(Unary("pad2d", {1, 3, 3, 3}));
      cases.back().op.Set("paddings", Ints{1, 2, 2, 0}).Set("mode", mode).Set("data_format", format);
      cases.back().op.Set("pad_value", 0.5f);
    }
  }
}

void AddChannels(std::vector<GradientCase>& cases) {
  for (const char* format : {"AnyLayout", "NCHW", "NHWC"}) {
    cases.push_back(Unary("lrn", {2, 3, 2, 4}));
    cases.back().op.AddOutput("MidOut", {"MidOut"}).Set("n", 3).Set("k", 1.0f).Set("alpha", 0.5f);
    cases.back().op.Set("data_format", format);
  }
  for (const int axis : {1, -1}) {
    cases.push_back(Unary("maxout", {2, 4, 3, 4}));
    cases.back().op.Set("groups", 2).Set("axis", axis);
  }
  for (const char* mode : {"all", "channel", "element"}) {
    const Shape slopes = mode == std::string("all")       ? Shape{1}
                         : mode == std::string("channel") ? Shape{1, 3, 1, 1}
                                                          : Shape{1, 3, 2, 2};
    cases.push_back({StrCat("prelu ", mode),
                     WithSlots("prelu", {"X", "Alpha"}, {"Out"}).Set("mode", mode),
                     {{"X", Values({2, 3, 2, 2})}, {"Alpha", Values(slopes, 0.1, 0.9, 2)}},
                     {.of = {"Out"}, .wanted = {"X", "Alpha"}}});
  }
}

void AddSoftmax(std::vector<GradientCase>& cases) {
  for (const int axis : {-1, 0}) {
    cases.push_back(Unary("softmax", {3, 4}));
    cases.back().op.Set("axis", axis);
  }
}

void AddLayerNorm(std::vector<GradientCase>& cases) {
  for (const int axis : {1, 2}) {
    const Dim width = axis == 1 ? 12 : 4;
    cases.push_back(
        {StrCat("layer_norm ", axis),
         WithSlots("layer_norm", {"X", "Scale", "Bias"}, {"Y", "Mean", "Variance"})
             .Set("begin_norm_axis", axis)
             .Set("epsilon", 0.001f),
         {{"X", Values({2, 3, 4})}, {"Scale", Values({width}, 0.5, 1.5, 3)}, {"Bias", Values({width})}},
         {.of = {"Y"}, .wanted = {"X", "Scale", "Bias"}}});
  }
}

GradientCase Volumes(const std::string& type, const std::string& format, const std::string& padding) {
  const bool last = EndsWith(format, "C");
  Op op = WithSlots(type, {"Input", "Filter"}, {"Output"}).Set("groups", 2).Set("strides", Ints{2, 1, 1});
  op.Set("data_format", format).Set("padding_algorithm", padding).Set("paddings", Ints{1, 0, 1});
  if (padding == "EXPLICIT") op.Set("dilations", Ints{1, 2, 1});
  return {StrCat(type, " ", format, " ", padding),
          op,
          {{"Input", Values(last ? Shape{1, 3, 3, 4, 2} : Shape{1, 2, 3, 3, 4})},
           {"Filter", Values({2, 1, 2, 2, 2}, -1, 1, 5)}},
          {.of = {"Output"}, .wanted = {"Input", "Filter"}}};
}

void AddVolumes(std::vector<GradientCase>& cases) {
  for (const char* padding : {"EXPLICIT", "SAME", "VALID"}) {
    for (const char* format : {"AnyLayout", "NCDHW", "NDHWC"}) {
      cases.push_back(Volumes("conv3d", format, padding));
      for (const char* kind : {"max", "avg"}) {
        cases.push_back(Unary("pool3d", EndsWith(format, "C") ? Shape{1, 4, 3, 4, 2} : Shape{1, 2, 4, 3, 4}));
        Op& op = cases.back().op.Set("pooling_type", kind).Set("ksize", Ints{3, 2, 2});
        op.Set("strides", Ints{2, 1, 2}).Set("data_format", format).Set("padding_algorithm", padding);
        if (padding == std::string("EXPLICIT")) op.Set("paddings", Ints{1, 0, 0});
        cases.back().name = StrCat("pool3d ", kind, " ", format, " ", padding);
      }
    }
    for (const char* format : {"AnyLayout", "NCHW", "NHWC", "NCDHW", "NDHWC"})
      cases.push_back(Volumes("conv3d_transpose", format, padding));
  }
  for (const char* flag : {"global_pooling", "adaptive", "ceil_mode", "exclusive"}) {
    cases.push_back(Unary("pool3d", {1, 2, 4, 3, 5}));
    cases.back().op.Set("pooling_type", "avg").Set("ksize", Ints{3, 2, 2}).Set("strides", Ints{2, 2, 2});
    cases.back().op.Set("paddings", Ints{1, 1, 0}).Set(flag, flag != std::string("exclusive"));
  }
  for (const char* flag : {"global_pooling", "adaptive", ""}) {
    for (const bool volume : {false, true}) {
      const std::string type = volume ? "max_pool3d_with_index" : "max_pool2d_with_index";
      cases.push_back(Unary(type, volume ? Shape{1, 2, 3, 4, 3} : Shape{2, 2, 5, 4}));
      Op& op = cases.back().op.AddOutput("Mask", {"Mask"});
      op.Set("ksize", volume ? Ints{2, 2, 2} : Ints{3, 2}).Set("strides", Ints(volume ? 3 : 2, 2));
      op.Set("paddings", volume ? Ints{1, 0, 0} : Ints{1, 0});
      if (flag[0] != 0) op.Set(flag, true);
      cases.back().name = StrCat(type, " ", flag);
    }
  }
}

void AddGroupNorms(std::vector<GradientCase>& cases) {
  for (const char* layout : {"NCHW", "NHWC"}) {
    Op op = WithSlots("group_norm", {"X", "Scale", "Bias"}, {"Y", "Mean", "Variance"}).Set("groups", 2);
    cases.push_back(
        {StrCat("group_norm ", layout),
         op.Set("data_layout", layout),
         {{"X", Values({2, 4, 3, 4})}, {"Scale", Values({4}, 0.5, 1.5, 3)}, {"Bias", Values({4}, -1, 1, 5)}},
         {.of = {"Y"}, .wanted = {"X", "Scale", "Bias"}}});
  }
  cases.push_back({"group_norm without Scale and Bias",
                   WithSlots("group_norm", {"X"}, {"Y", "Mean", "Variance"}).Set("groups", 3),
                   {{"X", Values({2, 5, 3})}},
                   {.of = {"Y"}, .wanted = {"X"}}});
  cases.push_back(
      {"instance_norm",
       WithSlots("instance_norm", {"X", "Scale", "Bias"}, {"Y", "SavedMean", "SavedVariance"}),
       {{"X", Values({2, 3, 2, 4})}, {"Scale", Values({3}, 0.5, 1.5, 3)}, {"Bias", Values({3}, -1, 1, 5)}},
       {.of = {"Y"}, .wanted = {"X", "Scale", "Bias"}}});
  for (const int dim : {0, 1}) {
    Op op = WithSlots("spectral_norm", {"Weight", "U", "V"}, {"Out"}).Set("dim", dim).Set("power_iters", 0);
    cases.push_back({StrCat("spectral_norm ", dim),
                     op,
                     {{"Weight", Values({3, 2, 4})},
                      {"U", Values({dim == 0 ? 3 : 2}, 0.2, 1, 3)},
                      {"V", Values({dim == 0 ? 8 : 12}, 0.2, 1, 5)}},
                     {.of = {"Out"}, .wanted = {"Weight"}}});
  }
}

void AddPyramids(std::vector<GradientCase>& cases) {
  for (const char* type : {"max", "avg"}) {
    cases.push_back(Unary("spp", {2, 2, 5, 3}));
    cases.back().op.Set("pooling_type", type).Set("pyramid_height", 3);
  }
  cases.push_back(
      {"unpool",
       WithSlots("unpool", {"X", "Indices"}, {"Out"})
           .Set("ksize", std::vector<std::int32_t>{2, 2})
           .Set("strides", std::vector<std::int32_t>{2, 2})
           .Set("unpooling_type", "max"),
       {{"X", Values({1, 2, 1, 2})}, {"Indices", TensorOf<std::int32_t>({1, 2, 1, 2}, {1, 6, 4, 3})}},
       {.of = {"Out"}, .wanted = {"X"}}});
}

void AddTreeConvolutions(std::vector<GradientCase>& cases) {
  const Tensor edges = TensorOf<std::int32_t>({2, 4, 2}, {1, 2, 1, 3, 2, 4, 0, 0, 1, 2, 2, 3, 2, 4, 2, 5});
  for (const int depth : {2, 3}) {
    cases.push_back(
        {StrCat("tree_conv ", depth),
         WithSlots("tree_conv", {"NodesVector", "EdgeSet", "Filter"}, {"Out"}).Set("max_depth", depth),
         {{"NodesVector", Values({2, 5, 2})}, {"EdgeSet", edges}, {"Filter", Values({2, 3, 2, 2}, -1, 1, 3)}},
         {.of = {"Out"}, .wanted = {"NodesVector", "Filter"}}});
  }
}

}  // namespace

std::vector<GradientCase> NnGradientCases() {
  std::vector<GradientCase> cases;
  AddPyramids(cases);
  AddSoftmax(cases);
  AddLayerNorm(cases);
  for (const char* type : {"conv2d", "depthwise_conv2d", "conv2d_transpose", "depthwise_conv2d_transpose"}) {
    for (const char* format : {"AnyLayout", "NCHW", "NHWC"}) {
      for (const char* padding : {"EXPLICIT", "SAME", "VALID"})
        cases.push_back(Convolution(type, format, padding));
    }
  }
  AddPooling(cases);
  for (const char* layout : {"NCHW", "NHWC", "AnyLayout"}) cases.push_back(BatchNorm(layout, ""));
  for (const char* flag : {"use_global_stats", "trainable_statistics"})
    cases.push_back(BatchNorm("NCHW", flag));
  for (const char* activation : {"", "identity", "leaky_relu", "elu"}) {
    cases.push_back(InplaceAbn(activation, "NCHW", ""));
    cases.push_back(InplaceAbn(activation, "NHWC", "use_global_stats"));
    cases.push_back(InplaceAbn(activation, "AnyLayout", "trainable_statistics"));
  }
  for (const bool adds : {false, true}) {
    cases.push_back(BatchNormRelu("NCHW", "", adds));
    cases.push_back(BatchNormRelu("NHWC", "", adds));
    cases.push_back(BatchNormRelu("AnyLayout", "trainable_statistics", adds));
    cases.push_back(BatchNormRelu("NHWC", "use_global_stats", adds));
  }
  for (const char* implementation : {"downgrade_in_infer", "upscale_in_train"})
    cases.push_back(Dropout(implementation));
  AddMatmul(cases);
  AddPadding(cases);
  AddChannels(cases);
  AddVolumes(cases);
  AddGroupNorms(cases);
  AddTreeConvolutions(cases);
  return cases;
}

}  // namespace penstock::test
