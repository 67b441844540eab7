// Shared by conv2d, conv3d, their transposes and their gradients: the geometry, oneDNN's descriptors, and the
// loops of the f64 kernels.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "framework/op/op_def.h"
#include "operators/common/onednn.h"
#include "operators/nn/window.h"

namespace penstock {

class OpRegistry;

// The geometry that follows from the op's shapes and attributes, for inference and kernels.
struct ConvGeometry {
  bool channels_last = false;
  Dim groups = 1;
  Window window;
};

// Checks the arguments as convolution and transposed convolution both require. Returns the geometry without
// the window. kInvalidArgument: a wrong rank.
template <typename Context>
Result<ConvGeometry> StartGeometry(const Context& c, const Shape& input, const Shape& filter) {
  const int rank = SpatialAxes(c.op().type()) + 2;
  if (input.rank() != rank)
    return c.Error("rank of Input (", input.rank(), ", shape ", input, ") must be ", rank);
  if (filter.rank() != rank)
    return c.Error("rank of Filter (", filter.rank(), ", shape ", filter, ") must be ", rank);
  ConvGeometry g;
  const auto format = c.template Attr<std::string>("data_format");
  g.channels_last = format == "NHWC" || format == "NDHWC";
  g.groups = c.template Attr<std::int32_t>("groups");
  return g;
}

template <typename Context>
WindowAttrs ConvWindowAttrs(const Context& c) {
  return {.strides = c.template Attr<std::vector<std::int32_t>>("strides"),
          .paddings = c.template Attr<std::vector<std::int32_t>>("paddings"),
          .dilations = c.template Attr<std::vector<std::int32_t>>("dilations"),
          .padding_algorithm = c.template Attr<std::string>("padding_algorithm")};
}

// The arguments of a kernel by their roles.
struct ConvArguments {
  ConvGeometry geometry;
  ImageShape input, output;
  Dim filters = 0, group_channels = 0;
  std::vector<Dim> kernel;  // the spatial extents of the filter
  Dim group_filters() const { return filters / geometry.groups; }
};

// Returns the spatial extents of a filter.
inline std::vector<Dim> KernelOf(const Shape& filter) { return SpatialExtents(filter, false); }

// Returns the arguments of a convolution, or of its gradient with Output@GRAD as `output`.
Result<ConvArguments> ConvArgumentsOf(const KernelSetup& k, const Argument& output);

// The time of a convolution or of its gradient in both layouts. Without AVX2 they cost the same.
LayoutCost ConvLayoutCost(const InferContext& plain);
LayoutCost TransposedLayoutCost(const InferContext& plain);  // of conv2d_transpose

// oneDNN's descriptors for f32. Channels last are used as they are. Of plain images, where blocked layouts
// pay, each primitive chooses its fastest layouts, and the kernel includes the reorders from and to the plain
// layout of the op's arguments.
struct ConvDescs {
  explicit ConvDescs(const ConvArguments& a);
  ConvDescs OfImages(Dim images) const;  // the same convolution of some of the images
  double ImageNs() const;                // the time of one image on one thread
  static dnnl::memory::desc ImageDesc(const ImageShape& s) { return OnednnStrided(s.Dims(), s.Strides()); }
  dnnl::convolution_forward::primitive_desc Forward(bool with_bias) const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    if (with_bias) {
      return {{kind, algorithm, input, filter, bias, output, strides, dilations, pad_begin, pad_end},
              OnednnAttr(),
              OnednnEngine()};
    }
    return {{kind, algorithm, input, filter, output, strides, dilations, pad_begin, pad_end},
            OnednnAttr(),
            OnednnEngine()};
  }

  ConvArguments arguments;
  dnnl::memory::desc input_plain, output_plain, filter_plain, bias;
  dnnl::memory::desc input, output, filter;  // the primitive chooses the layout
  dnnl::memory::dims strides, dilations, pad_begin, pad_end;
};

// Each adds one convolution and its reorders to a kernel's steps, in shares of the images. The gradient of
// the filter is then the sum over the shares, in their order. Call them inside OnednnTry. `output` is
// memory of layout d.output_plain. `bias` may be absent; it is added to the finished sums, so that bytes are
// those of a convolution and a sum after it. Absent gradients are not computed; at least one of
// `dfilter` and `dbias` must be present.
void AddConvolution(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& input,
                    const Operand& filter, const Operand& bias, OnednnSequence::MemoryId output);
void AddInputGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& filter,
                      const Operand& doutput, const Operand& dinput);
void AddFilterGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& input,
                       const Operand& doutput, const Operand& dfilter, const Operand& dbias);

// Calls visit(input index, filter index) for each product whose sum is output element (n, o, at).
template <typename Visit>
void VisitWindow(const ConvArguments& a, Dim n, Dim o, const std::array<Dim, 3>& at, Visit&& visit) {
  const std::array<WindowAxis, 3>& w = a.geometry.window.all();
  const Dim first_channel = o / a.group_filters() * a.group_channels;
  const auto place = [&](std::size_t axis, Dim i) {
    return at[axis] * w[axis].stride - w[axis].pad_begin + i * w[axis].dilation;
  };
  for (Dim c = 0; c < a.group_channels; ++c) {
    for (Dim h = 0; h < w[0].kernel; ++h) {
      const Dim z = place(0, h);
      if (z < 0 || z >= w[0].in) continue;
      for (Dim i = 0; i < w[1].kernel; ++i) {
        const Dim y = place(1, i);
        if (y < 0 || y >= w[1].in) continue;
        for (Dim j = 0; j < w[2].kernel; ++j) {
          const Dim x = place(2, j);
          if (x < 0 || x >= w[2].in) continue;
          visit(a.input.At(n, first_channel + c, z, y, x),
                (((o * a.group_channels + c) * w[0].kernel + h) * w[1].kernel + i) * w[2].kernel + j);
        }
      }
    }
  }
}

// Calls visit(n, o, place, element) for each output element.
template <typename Visit>
void VisitOutputs(const ConvArguments& a, Visit&& visit) {
  const std::array<Dim, 3>& extents = a.output.extents;
  for (Dim n = 0; n < a.output.images; ++n) {
    for (Dim o = 0; o < a.filters; ++o) {
      for (Dim i = 0; i < a.output.points(); ++i) {
        const std::array<Dim, 3> at = {i / (extents[1] * extents[2]), i / extents[2] % extents[1],
                                       i % extents[2]};
        visit(n, o, at, a.output.At(n, o, at[0], at[1], at[2]));
      }
    }
  }
}

// Sets the elements of an output to 0 and returns them; null if the output is absent.
inline double* ClearedDoubles(KernelRun& k, const Operand& operand) {
  if (!operand) return nullptr;
  std::ranges::fill(k[operand].Span<double>(), 0.0);
  return k[operand].Data<double>();
}

// Declares the gradient of a convolution and its kernels (conv2d_grad.cc).
void AddConv2dGrad(OpDef& convolution);
// Declares the second-order gradient of a convolution, without its attributes (conv2d_second_order.cc).
OpDef& AddConvSecondOrder(OpRegistry& ops, OpDef& convolution);

}  // namespace penstock
