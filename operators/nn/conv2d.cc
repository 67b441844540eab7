// conv2d, depthwise_conv2d and conv3d: convolution of images and volumes in groups. The first two have the
// same slots, attributes and kernels; Fluid's programs use the second one if each group has one input
// channel.
#include "operators/nn/conv2d.h"

#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Output[n, o, y, x] = Bias[o] + sum over c, i, j of
    Filter[o, c, i, j] * Input[n, c of o's group, y * stride - padding + i * dilation, the same for x and j]

Input is [images, channels, height, width] and Filter is [filters, channels / groups, height, width]; in
conv3d, both have a depth before the height. Elements outside Input are 0. Channels and filters are divided
into `groups`; a filter reads only the channels of its group. padding_algorithm EXPLICIT uses `paddings`, SAME
pads such that there are ceil(size / stride) windows along each axis, and VALID does not pad.)";

template <typename Context>
Result<ConvGeometry> MakeConvGeometry(const Context& c, const Shape& input, const Shape& filter) {
  PENSTOCK_ASSIGN_OR_RETURN(ConvGeometry g, StartGeometry(c, input, filter));
  const Dim channels = input[g.channels_last ? input.rank() - 1 : 1];
  if (channels != kUnknownDim && filter[1] != kUnknownDim && channels != filter[1] * g.groups) {
    return c.Error("channels of Input (", channels, ") must equal channels of Filter (", filter[1],
                   ") times groups (", g.groups, ")");
  }
  if (filter[0] != kUnknownDim && filter[0] % g.groups != 0) {
    return c.Error("filters (", filter[0], ") must be divisible by groups (", g.groups, ")");
  }
  const auto window =
      MakeWindow(ConvWindowAttrs(c), SpatialExtents(input, g.channels_last), KernelOf(filter));
  if (!window.ok()) return c.Error(window.status().message());
  g.window = *window;
  return g;
}

Status InferConv2d(InferContext& c) {
  const Shape& input = c.ShapeOf("Input");
  const Shape& filter = c.ShapeOf("Filter");
  PENSTOCK_ASSIGN_OR_RETURN(const ConvGeometry g, MakeConvGeometry(c, input, filter));
  if (c.HasInput("Bias") && !Compatible(c.ShapeOf("Bias"), Shape{filter[0]})) {
    return c.Error("shape of Bias (", c.ShapeOf("Bias"), ") must be [", filter[0], "]");
  }
  c.ShareLod("Input", "Output");
  return c.SetShape("Output", ImagesOf(input[0], filter[0], OutsOf(g.window), g.channels_last));
}

template <typename Device, typename T>
class Conv2dKernel;

template <>
class Conv2dKernel<Cpu, float> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const ConvArguments a, ConvArgumentsOf(k, k.Output("Output")));
    if (steps_.NothingToDo(k)) return OkStatus();
    return OnednnTry(k, [&] {
      const ConvDescs descs(a);
      AddConvolution(k, steps_, descs, k.Input("Input"), k.Input("Filter"), k.Input("Bias"),
                     steps_.Tensor(k.Output("Output"), descs.output_plain));
    });
  }
  Status Run(KernelRun& k) override { return steps_.Run(k); }

 private:
  OnednnSequence steps_;
};

// f64 uses plain loops, because oneDNN has no f64; it serves numerical checks of small networks.
template <>
class Conv2dKernel<Cpu, double> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, filter_, bias_, output_);
    PENSTOCK_ASSIGN_OR_RETURN(a_, ConvArgumentsOf(k, k[output_]));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const double* input = k[input_].Data<double>();
    const double* filter = k[filter_].Data<double>();
    const double* bias = bias_ ? k[bias_].Data<double>() : nullptr;
    double* output = k[output_].Data<double>();
    VisitOutputs(a_, [&](Dim n, Dim o, const std::array<Dim, 3>& at, Dim element) {
      double sum = 0.0;
      VisitWindow(a_, n, o, at, [&](Dim in, Dim f) { sum += input[in] * filter[f]; });
      output[element] = bias == nullptr ? sum : sum + bias[o];
    });
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  In<"Filter"> filter_;
  In<"Bias"> bias_;
  Out<"Output"> output_;
  ConvArguments a_;
};

// Attributes of convolutions of images or volumes.
OpDef& AddAttrs(OpDef& op, int axes) {
  const std::vector<std::int32_t> ones(static_cast<std::size_t>(axes), 1);
  if (axes == 2) {
    op.Attr("fuse_relu_before_depthwise_conv", false, kNoEffect, OnlyValue(false))
        .Attr("use_quantizer", false, kNoEffect)
        .Attr("fuse_brelu", false, kNoEffect, OnlyValue(false))
        .Attr("fuse_brelu_threshold", 6.0f, kNoEffect)
        .Attr("Scale_in", 1.0f, kNoEffect)
        .Attr("Scale_out", 1.0f, kNoEffect)
        .Attr("Scale_in_eltwise", 1.0f, kNoEffect)
        .Attr("Scale_weights", std::vector<float>{1.0f}, kNoEffect)
        .Attr("data_format", "NCHW", "the memory layout; AnyLayout is NCHW",
              OneOf({"AnyLayout", "NCHW", "NHWC"}));
  } else {
    op.Attr("data_format", "NCDHW", "the memory layout; AnyLayout is NCDHW",
            OneOf({"AnyLayout", "NCDHW", "NDHWC"}));
  }
  return op.Attr("is_test", false, kNoEffect)
      .Attr("strides", ones, "the distance between adjacent windows along each axis")
      .Attr("paddings", std::vector<std::int32_t>(ones.size(), 0),
            "zeros around Input: one value per axis, or two (before and after)")
      .Attr("padding_algorithm", "EXPLICIT", "how padding is determined",
            OneOf({"EXPLICIT", "SAME", "VALID"}))
      .Attr("groups", 1, "the number of groups of channels and filters", AtLeast(1))
      .Attr("dilations", ones, "the distance between adjacent elements of a window")
      .Attr("use_cudnn", false, kNoEffect)
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("fuse_relu", false, kNoEffect, OnlyValue(false))
      .Attr("fuse_activation", "", kNoEffect, OnlyValue(std::string()))
      .Attr("fuse_alpha", 0.0f, kNoEffect)
      .Attr("fuse_beta", 0.0f, kNoEffect)
      .Attr("fuse_residual_connection", false, kNoEffect, OnlyValue(false))
      .Attr("force_fp32_output", false, kNoEffect)
      .Attr("workspace_size_MB", 512, kNoEffect)
      .Attr("exhaustive_search", false, kNoEffect);
}

OpDef& AddConvolution(OpRegistry& ops, const char* type, const char* summary, int axes) {
  OpDef& op = ops.Add(type).Doc(summary, kDoc);
  op.Input("Input", "the images", Floats()).Input("Filter", "the filters", SameTypeAs("Input"));
  if (axes == 2) op.Input("Bias", "one value per filter", SameTypeAs("Input"), Optional());
  op.Input("ResidualData", "used by a fused backend; not read", SameTypeAs("Input"), Optional())
      .Output("Output", "one channel per filter", SameTypeAs("Input"), Apart())
      .InferShape(InferConv2d)
      .Kernel<Cpu, Conv2dKernel, float, double>()
      .ChannelsLast(ByAttr("data_format", axes == 2 ? "NHWC" : "NDHWC", {"Input", "Output"}, ConvLayoutCost));
  AddConv2dGrad(AddAttrs(op, axes));
  return op;
}

}  // namespace

Result<ConvArguments> ConvArgumentsOf(const KernelSetup& k, const Argument& output) {
  const Shape& input = k.Input("Input").shape;
  const Shape& filter = k.Input("Filter").shape;
  ConvArguments a;
  PENSTOCK_ASSIGN_OR_RETURN(a.geometry, MakeConvGeometry(k, input, filter));
  if (output.shape.rank() != input.rank())
    return k.Error("rank of ", output.name, " (", output.shape.rank(), ") must be ", input.rank());
  a.input = MakeImageShape(input, a.geometry.channels_last);
  a.output = MakeImageShape(output.shape, a.geometry.channels_last);
  a.filters = filter[0];
  a.group_channels = filter[1];
  a.kernel = KernelOf(filter);
  const Window& w = a.geometry.window;
  if (a.output.images != a.input.images || a.output.extents != w.outs() || a.output.channels != a.filters) {
    return k.Error("shape of ", output.name, " (", output.shape, ") must be ", a.input.images, " images of ",
                   a.filters, " channels of ", SidesText(w.outs(), w.axes()));
  }
  return a;
}

void RegisterConv2d(OpRegistry& ops) {
  OpDef& conv2d = AddConvolution(ops, "conv2d", "Two-dimensional convolution in groups.", 2);
  AddAttrs(AddConvSecondOrder(ops, conv2d), 2);
  AddConvolution(ops, "depthwise_conv2d", "Two-dimensional convolution of each channel with its own filters.",
                 2);
  OpDef& conv3d = AddConvolution(ops, "conv3d", "Three-dimensional convolution in groups.", 3);
  AddAttrs(AddConvSecondOrder(ops, conv3d), 3);
}

}  // namespace penstock
