// conv2d_transpose, conv3d_transpose and their gradients: the gradient of a convolution's input as a separate
// op.
#include <array>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/nn/conv2d.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Each element of Input adds the filter, multiplied by the element, to Output:

Output[n, o, y * stride - padding + i * dilation, the same for x and j] += Filter[c, o of c's group, i, j] *
    Input[n, c, y, x]

Input is [images, channels, height, width] and Filter is [channels, filters / groups, height, width]; in
conv3d_transpose, both have a depth before the height. The size of Output along an axis is
(size of Input - 1) * stride - paddings + dilation * (size of Filter - 1) + 1, or output_size, which may be up
to stride - 1 larger. padding_algorithm EXPLICIT uses `paddings`. SAME uses the paddings of a convolution of
Input with ceil(size of Input / stride) windows, without dilation. VALID does not pad.)";

// The window of the convolution whose input is this op's Output and whose output is this op's Input.
template <typename Context>
Result<Window> TransposedWindow(const Context& c, const std::vector<Dim>& input,
                                const std::vector<Dim>& kernel) {
  const std::size_t axes = input.size();
  const auto wanted = c.template Attr<std::vector<std::int32_t>>("output_size");
  if (!wanted.empty() && wanted.size() != axes)
    return c.Error("output_size has ", wanted.size(), " entries; it must have ", axes, " or none");
  // SAME and VALID derive the paddings from the size of Input, as for a convolution of Input.
  const WindowAttrs attrs = ConvWindowAttrs(c);
  // With unknown sizes, no window is too large: this checks the attributes and determines the paddings.
  const bool same = attrs.padding_algorithm == "SAME";
  const auto settled = MakeWindow(attrs, same ? input : std::vector<Dim>(axes, kUnknownDim), kernel);
  if (!settled.ok()) return c.Error(settled.status().message());
  Window window = *settled;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    WindowAxis& w = window[static_cast<int>(axis)];
    w.out = input[axis];
    if (w.out == kUnknownDim || w.kernel == kUnknownDim) {
      w.in = wanted.empty() ? kUnknownDim : Dim{wanted[axis]};
      continue;
    }
    w.in = (w.out - 1) * w.stride - w.pad_begin - w.pad_end + w.dilation * (w.kernel - 1) + 1;
    if (!wanted.empty() && (wanted[axis] < w.in || wanted[axis] >= w.in + w.stride)) {
      return c.Error("output_size holds ", wanted[axis], "; it must be in [", w.in, ", ", w.in + w.stride,
                     ")");
    }
    if (!wanted.empty()) w.in = wanted[axis];
    if (w.in < 1) return c.Error("paddings leave nothing of Output: its extent would be ", w.in);
  }
  return window;
}

template <typename Context>
Result<ConvGeometry> TransposedGeometry(const Context& c, const Shape& input, const Shape& filter) {
  PENSTOCK_ASSIGN_OR_RETURN(ConvGeometry g, StartGeometry(c, input, filter));
  const Dim channels = input[g.channels_last ? input.rank() - 1 : 1];
  if (!Compatible(channels, filter[0]))
    return c.Error("channels of Input (", channels, ") must equal the first extent of Filter (", filter[0],
                   ")");
  if (filter[0] != kUnknownDim && filter[0] % g.groups != 0)
    return c.Error("channels of Input (", filter[0], ") must be divisible by groups (", g.groups, ")");
  PENSTOCK_ASSIGN_OR_RETURN(g.window,
                            TransposedWindow(c, SpatialExtents(input, g.channels_last), KernelOf(filter)));
  return g;
}

Status RefuseBias(const std::string& type, bool given) {
  if (!given) return OkStatus();
  return Unimplemented("E-op-unimplemented", type,
                       ": input Bias is not supported; add it with elementwise_add");
}

Status InferConv2dTranspose(InferContext& c) {
  const Shape& input = c.ShapeOf("Input");
  const Shape& filter = c.ShapeOf("Filter");
  PENSTOCK_ASSIGN_OR_RETURN(const ConvGeometry g, TransposedGeometry(c, input, filter));
  PENSTOCK_RETURN_IF_ERROR(RefuseBias(c.op().type(), c.HasInput("Bias")));
  const Dim filters = filter[1] == kUnknownDim ? kUnknownDim : filter[1] * g.groups;
  return c.SetShape("Output", ImagesOf(input[0], filters, InsOf(g.window), g.channels_last));
}

// The arguments of that convolution: its `input` is this op's Output or the gradient of that.
Result<ConvArguments> TransposedArguments(const KernelSetup& k, const Argument& output) {
  if (const Status status = RefuseBias(k.op().type(), static_cast<bool>(k.Input("Bias"))); !status.ok())
    return status;
  const Shape& input = k.Input("Input").shape;
  const Shape& filter = k.Input("Filter").shape;
  ConvArguments a;
  PENSTOCK_ASSIGN_OR_RETURN(a.geometry, TransposedGeometry(k, input, filter));
  if (output.shape.rank() != input.rank())
    return k.Error("rank of ", output.name, " (", output.shape.rank(), ") must be ", input.rank());
  a.input = MakeImageShape(output.shape, a.geometry.channels_last);
  a.output = MakeImageShape(input, a.geometry.channels_last);
  a.filters = filter[0];
  a.group_channels = filter[1];
  a.kernel = KernelOf(filter);
  const Window& w = a.geometry.window;
  if (a.input.images != a.output.images || a.input.extents != w.ins() ||
      a.input.channels != filter[1] * a.geometry.groups) {
    return k.Error("shape of ", output.name, " (", output.shape, ") must have ",
                   filter[1] * a.geometry.groups, " channels of ", SidesText(w.ins(), w.axes()));
  }
  return a;
}

template <typename Device, typename T>
class Conv2dTransposeKernel;

template <>
class Conv2dTransposeKernel<Cpu, float> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const ConvArguments a, TransposedArguments(k, k.Output("Output")));
    if (steps_.NothingToDo(k)) return OkStatus();
    return OnednnTry(k, [&] {
      AddInputGradient(k, steps_, ConvDescs(a), k.Input("Filter"), k.Input("Input"), k.Output("Output"));
    });
  }
  Status Run(KernelRun& k) override { return steps_.Run(k); }

 private:
  OnednnSequence steps_;
};

template <>
class Conv2dTransposeKernel<Cpu, double> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, filter_, output_);
    PENSTOCK_ASSIGN_OR_RETURN(a_, TransposedArguments(k, k[output_]));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const double* input = k[input_].Data<double>();
    const double* filter = k[filter_].Data<double>();
    double* output = ClearedDoubles(k, output_);
    VisitOutputs(a_, [&](Dim n, Dim c, const std::array<Dim, 3>& at, Dim element) {
      const double value = input[element];
      VisitWindow(a_, n, c, at, [&](Dim out, Dim f) { output[out] += value * filter[f]; });
    });
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  In<"Filter"> filter_;
  Out<"Output"> output_;
  ConvArguments a_;
};

template <typename Device, typename T>
class Conv2dTransposeGradKernel;

// The gradient of Input is the convolution of Output@GRAD; that of Filter is the filter gradient of that
// convolution.
template <>
class Conv2dTransposeGradKernel<Cpu, float> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Argument& doutput = k.Input("Output@GRAD");
    PENSTOCK_ASSIGN_OR_RETURN(const ConvArguments a, TransposedArguments(k, doutput));
    if (steps_.NothingToDo(k)) return OkStatus();
    return OnednnTry(k, [&] {
      const ConvDescs descs(a);
      if (k.Output("Filter@GRAD"))
        AddFilterGradient(k, steps_, descs, doutput, k.Input("Input"), k.Output("Filter@GRAD"), {});
      if (k.Output("Input@GRAD"))
        AddConvolution(k, steps_, descs, doutput, k.Input("Filter"), {},
                       steps_.Tensor(k.Output("Input@GRAD"), descs.output_plain));
    });
  }
  Status Run(KernelRun& k) override { return steps_.Run(k); }

 private:
  OnednnSequence steps_;
};

template <>
class Conv2dTransposeGradKernel<Cpu, double> : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, filter_, doutput_, dinput_, dfilter_);
    PENSTOCK_ASSIGN_OR_RETURN(a_, TransposedArguments(k, k[doutput_]));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const double* input = k[input_].Data<double>();
    const double* filter = k[filter_].Data<double>();
    const double* doutput = k[doutput_].Data<double>();
    double* dinput = ClearedDoubles(k, dinput_);
    double* dfilter = ClearedDoubles(k, dfilter_);
    VisitOutputs(a_, [&](Dim n, Dim c, const std::array<Dim, 3>& at, Dim element) {
      VisitWindow(a_, n, c, at, [&](Dim out, Dim f) {
        if (dinput != nullptr) dinput[element] += doutput[out] * filter[f];
        if (dfilter != nullptr) dfilter[f] += doutput[out] * input[element];
      });
    });
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  In<"Filter"> filter_;
  In<"Output@GRAD"> doutput_;
  Out<"Input@GRAD"> dinput_;
  Out<"Filter@GRAD"> dfilter_;
  ConvArguments a_;
};

// Slots and attributes of the transposes of images or volumes, except those that only conv2d_transpose has.
OpDef& DeclareTranspose(OpDef& op, int axes) {
  const std::vector<std::int32_t> ones(static_cast<std::size_t>(axes), 1);
  op.Input("Input", "the images", Floats()).Input("Filter", "the filters", SameTypeAs("Input"));
  if (axes == 2) op.Input("Bias", "used by a fused backend", SameTypeAs("Input"), Optional());
  return op.Output("Output", "the images, enlarged", SameTypeAs("Input"), Apart())
      .Attr("output_size", std::vector<std::int32_t>(),
            "the spatial size of Output; empty: the smallest possible")
      .Attr("groups", 1, "the number of groups of channels and filters", AtLeast(1))
      .Attr("dilations", ones, "the distance between adjacent elements of a filter")
      .Attr("strides", ones, "the distance in Output between adjacent elements of Input, along each axis")
      .Attr("paddings", std::vector<std::int32_t>(ones.size(), 0),
            "how much is cut off Output: one value per axis, or two (before and after)")
      .Attr("use_cudnn", false, kNoEffect)
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("padding_algorithm", "EXPLICIT", "how padding is determined",
            OneOf({"EXPLICIT", "SAME", "VALID"}))
      .Attr("workspace_size_MB", 512, kNoEffect)
      .InferShape(InferConv2dTranspose)
      .Kernel<Cpu, Conv2dTransposeKernel, float, double>()
      .ChannelsLast(ByAttr("data_format", "NHWC", {"Input", "Output"}, TransposedLayoutCost));
}

void AddTransposeGrad(OpDef& op) {
  GradSpec spec = {.reads = {"Input", "Filter"}, .yields = {"Input", "Filter"}, .apart = {"Input", "Filter"}};
  if (op.FindInput("Bias") != nullptr) {
    spec.reads.emplace_back("Bias");
    spec.yields.emplace_back("Bias");
  }
  op.Grad(std::move(spec)).GradKernel<Cpu, Conv2dTransposeGradKernel, float, double>();
}

void AddConv2dTranspose(OpRegistry& ops, const char* type, const char* summary) {
  AddTransposeGrad(DeclareTranspose(ops.Add(type).Doc(summary, kDoc), 2)
                       .Attr("is_test", false, kNoEffect)
                       .Attr("fuse_relu", false, kNoEffect, OnlyValue(false))
                       .Attr("fuse_activation", "", kNoEffect, OnlyValue(std::string()))
                       .Attr("fuse_alpha", 0.0f, kNoEffect)
                       .Attr("fuse_beta", 0.0f, kNoEffect)
                       .Attr("data_format", "NCHW", "the memory layout; AnyLayout is NCHW",
                             OneOf({"AnyLayout", "NCHW", "NHWC"})));
}

}  // namespace

void RegisterConv2dTranspose(OpRegistry& ops) {
  AddConv2dTranspose(ops, "conv2d_transpose", "The transpose of a two-dimensional convolution in groups.");
  AddConv2dTranspose(ops, "depthwise_conv2d_transpose",
                     "The transpose of a two-dimensional convolution, one group per channel.");
  AddTransposeGrad(
      DeclareTranspose(ops.Add("conv3d_transpose")
                           .Doc("The transpose of a three-dimensional convolution in groups.", kDoc),
                       3)
          .Attr("data_format", "NCHW", "whether the channels come before or after the spatial axes",
                OneOf({"AnyLayout", "NCHW", "NHWC", "NCDHW", "NDHWC"})));
}

}  // namespace penstock
