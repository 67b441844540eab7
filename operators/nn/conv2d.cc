// conv2d and depthwise_conv2d: two-dimensional convolution in groups. Both have the same slots, attributes
// and kernels; Fluid's programs name the second one where each group has one input channel.
#include "operators/nn/conv2d.h"

#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Output[n, o, y, x] = Bias[o] + sum over c, i, j of
    Filter[o, c, i, j] * Input[n, c of o's group, y * stride - padding + i * dilation, the same for x and j]

Input is [images, channels, height, width], Filter [filters, channels / groups, height, width]; outside of
Input is 0. Filters and channels are divided into `groups` that do not see each other. padding_algorithm
EXPLICIT takes `paddings`; SAME pads so that ceil(extent / stride) windows fit; VALID does not pad.)";

template <typename Context>
Result<ConvGeometry> MakeConvGeometry(const Context& c, const Shape& input, const Shape& filter) {
  PENSTOCK_ASSIGN_OR_RETURN(ConvGeometry g, StartGeometry(c, input, filter));
  const Dim channels = input[g.channels_last ? 3 : 1];
  if (channels != kUnknownDim && filter[1] != kUnknownDim && channels != filter[1] * g.groups) {
    return c.Error("channels of Input (", channels, ") must equal channels of Filter (", filter[1],
                   ") times groups (", g.groups, ")");
  }
  if (filter[0] != kUnknownDim && filter[0] % g.groups != 0) {
    return c.Error("filters (", filter[0], ") must be divisible by groups (", g.groups, ")");
  }
  const int first = g.channels_last ? 1 : 2;
  const auto window =
      MakeWindow(ConvWindowAttrs(c), {input[first], input[first + 1]}, {filter[2], filter[3]});
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
  if (g.channels_last) return c.SetShape("Output", {input[0], g.window[0].out, g.window[1].out, filter[0]});
  return c.SetShape("Output", {input[0], filter[0], g.window[0].out, g.window[1].out});
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
      AddConvolution(k, steps_, ConvDescs(a), k.Input("Input"), k.Input("Filter"), k.Input("Bias"),
                     k.Output("Output"));
    });
  }
  Status Run(KernelRun& k) override { return steps_.Run(k); }

 private:
  OnednnSequence steps_;
};

// f64 by plain loops: oneDNN has no f64, and what runs in f64 are checks of small networks.
template <>
class Conv2dKernel<Cpu, double> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_ = k.Input("Input");
    filter_ = k.Input("Filter");
    bias_ = k.Input("Bias");
    output_ = k.Output("Output");
    PENSTOCK_ASSIGN_OR_RETURN(a_, ConvArgumentsOf(k, output_));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const double* input = k[input_].Data<double>();
    const double* filter = k[filter_].Data<double>();
    const double* bias = bias_ ? k[bias_].Data<double>() : nullptr;
    double* output = k[output_].Data<double>();
    VisitOutputs(a_, [&](Dim n, Dim o, Dim y, Dim x) {
      double sum = bias == nullptr ? 0.0 : bias[o];
      VisitWindow(a_, n, o, y, x, [&](Dim in, Dim f) { sum += input[in] * filter[f]; });
      output[a_.output.At(n, o, y, x)] = sum;
    });
    return OkStatus();
  }

 private:
  Operand input_, filter_, bias_, output_;
  ConvArguments a_;
};

void AddConv2d(OpRegistry& ops, const char* type, const char* summary) {
  const std::vector<std::int32_t> ones = {1, 1};
  OpDef& conv2d =
      ops.Add(type)
          .Doc(summary, kDoc)
          .Input("Input", "the images", Floats())
          .Input("Filter", "the filters", SameTypeAs("Input"))
          .Input("Bias", "one value for each filter", SameTypeAs("Input"), Optional())
          .Input("ResidualData", "of a fused backend; not read", SameTypeAs("Input"), Optional())
          .Output("Output", "one channel for each filter", SameTypeAs("Input"), Apart())
          .Attr("is_test", false, kNoEffect)
          .Attr("strides", ones, "distance of neighbouring windows: height, width")
          .Attr("paddings", std::vector<std::int32_t>{0, 0},
                "zeros around Input: height, width; or top, bottom, left, right")
          .Attr("padding_algorithm", "EXPLICIT", "what pads", OneOf({"EXPLICIT", "SAME", "VALID"}))
          .Attr("groups", 1, "parts that do not see each other", AtLeast(1))
          .Attr("dilations", ones, "distance of neighbouring elements of a window")
          .Attr("use_cudnn", false, kNoEffect)
          .Attr("fuse_relu_before_depthwise_conv", false, kNoEffect, OnlyValue(false))
          .Attr("use_mkldnn", false, kNoEffect)
          .Attr("use_quantizer", false, kNoEffect)
          .Attr("fuse_relu", false, kNoEffect, OnlyValue(false))
          .Attr("fuse_brelu", false, kNoEffect, OnlyValue(false))
          .Attr("fuse_brelu_threshold", 6.0f, kNoEffect)
          .Attr("fuse_activation", "", kNoEffect, OnlyValue(std::string()))
          .Attr("fuse_alpha", 0.0f, kNoEffect)
          .Attr("fuse_beta", 0.0f, kNoEffect)
          .Attr("fuse_residual_connection", false, kNoEffect, OnlyValue(false))
          .Attr("Scale_in", 1.0f, kNoEffect)
          .Attr("Scale_out", 1.0f, kNoEffect)
          .Attr("Scale_in_eltwise", 1.0f, kNoEffect)
          .Attr("Scale_weights", std::vector<float>{1.0f}, kNoEffect)
          .Attr("force_fp32_output", false, kNoEffect)
          .Attr("data_format", "NCHW", "the order of Input's and Output's extents; AnyLayout is NCHW",
                OneOf({"AnyLayout", "NCHW", "NHWC"}))
          .Attr("workspace_size_MB", 512, kNoEffect)
          .Attr("exhaustive_search", false, kNoEffect)
          .InferShape(InferConv2d)
          .Kernel<Cpu, Conv2dKernel, float, double>();
  AddConv2dGrad(conv2d);
}

}  // namespace

Result<ConvArguments> ConvArgumentsOf(const KernelSetup& k, const Operand& output) {
  const Shape& input = k.Input("Input").shape;
  const Shape& filter = k.Input("Filter").shape;
  ConvArguments a;
  PENSTOCK_ASSIGN_OR_RETURN(a.geometry, MakeConvGeometry(k, input, filter));
  if (output.shape.rank() != 4)
    return k.Error("rank of ", output.name, " (", output.shape.rank(), ") must be 4");
  a.input = MakeImageShape(input, a.geometry.channels_last);
  a.output = MakeImageShape(output.shape, a.geometry.channels_last);
  a.filters = filter[0];
  a.group_channels = filter[1];
  a.kernel_height = filter[2];
  a.kernel_width = filter[3];
  const Window& w = a.geometry.window;
  if (a.output.images != a.input.images || a.output.height != w[0].out || a.output.width != w[1].out ||
      a.output.channels != a.filters) {
    return k.Error("shape of ", output.name, " (", output.shape, ") must be ", a.input.images, " images of ",
                   a.filters, " channels of ", w[0].out, " x ", w[1].out);
  }
  return a;
}

void RegisterConv2d(OpRegistry& ops) {
  AddConv2d(ops, "conv2d", "Two-dimensional convolution in groups.");
  AddConv2d(ops, "depthwise_conv2d", "Two-dimensional convolution of each channel with filters of its own.");
}

}  // namespace penstock
