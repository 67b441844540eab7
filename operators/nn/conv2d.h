// What conv2d, conv2d_transpose and their gradients share: the geometry, oneDNN's descriptors, and the loops
// of the f64 kernels.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "framework/op/op_def.h"
#include "operators/common/onednn.h"
#include "operators/nn/window.h"

namespace penstock {

// Everything that the op's shapes and attributes say, for inference and kernels alike.
struct ConvGeometry {
  bool channels_last = false;
  Dim groups = 1;
  Window window;
};

// What a convolution and its transpose ask of their arguments alike. Gives all but the window.
template <typename Context>
Result<ConvGeometry> StartGeometry(const Context& c, const Shape& input, const Shape& filter) {
  if (input.rank() != 4) return c.Error("rank of Input (", input.rank(), ", shape ", input, ") must be 4");
  if (filter.rank() != 4)
    return c.Error("rank of Filter (", filter.rank(), ", shape ", filter, ") must be 4");
  ConvGeometry g;
  g.channels_last = c.template Attr<std::string>("data_format") == "NHWC";
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

// What the kernels of one device and element type share: the arguments by their roles.
struct ConvArguments {
  ConvGeometry geometry;
  ImageShape input, output;
  Dim filters = 0, group_channels = 0, kernel_height = 0, kernel_width = 0;
  Dim group_filters() const { return filters / geometry.groups; }
};

// The arguments of conv2d, or of conv2d_grad with Output@GRAD as `output`.
Result<ConvArguments> ConvArgumentsOf(const KernelSetup& k, const Operand& output);

// f32 by oneDNN. Where blocked forms pay, each primitive chooses those it is fastest with, and reorders from
// and to the op's plain arguments run as parts of the kernel.
struct ConvDescs {
  explicit ConvDescs(const ConvArguments& a);
  static dnnl::memory::desc ImageDesc(const ImageShape& s) {
    return OnednnStrided({s.images, s.channels, s.height, s.width},
                         {s.image_stride, s.channel_stride, s.row_stride, s.column_stride});
  }
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

  dnnl::memory::desc input_plain, output_plain, filter_plain, bias;
  dnnl::memory::desc input, output, filter;  // in any form
  dnnl::memory::dims strides, dilations, pad_begin, pad_end;
};

// Each adds one primitive and its reorders to a kernel's steps, inside OnednnTry. An absent bias is none, an
// absent gradient is not wanted; at least one of `dfilter` and `dbias` is.
void AddConvolution(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& input,
                    const Operand& filter, const Operand& bias, const Operand& output);
void AddInputGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& filter,
                      const Operand& doutput, const Operand& dinput);
void AddFilterGradient(KernelSetup& k, OnednnSequence& steps, const ConvDescs& d, const Operand& input,
                       const Operand& doutput, const Operand& dfilter, const Operand& dbias);

// Calls visit(input index, filter index) for each pair that output element (n, o, y, x) is the sum of.
template <typename Visit>
void VisitWindow(const ConvArguments& a, Dim n, Dim o, Dim y, Dim x, Visit&& visit) {
  const WindowAxis& wy = a.geometry.window[0];
  const WindowAxis& wx = a.geometry.window[1];
  const Dim first_channel = o / a.group_filters() * a.group_channels;
  for (Dim c = 0; c < a.group_channels; ++c) {
    for (Dim i = 0; i < wy.kernel; ++i) {
      const Dim row = y * wy.stride - wy.pad_begin + i * wy.dilation;
      if (row < 0 || row >= wy.in) continue;
      for (Dim j = 0; j < wx.kernel; ++j) {
        const Dim column = x * wx.stride - wx.pad_begin + j * wx.dilation;
        if (column < 0 || column >= wx.in) continue;
        visit(a.input.At(n, first_channel + c, row, column),
              ((o * a.group_channels + c) * wy.kernel + i) * wx.kernel + j);
      }
    }
  }
}

// Calls visit(n, o, y, x) for each output element.
template <typename Visit>
void VisitOutputs(const ConvArguments& a, Visit&& visit) {
  for (Dim n = 0; n < a.output.images; ++n) {
    for (Dim o = 0; o < a.filters; ++o) {
      for (Dim y = 0; y < a.output.height; ++y) {
        for (Dim x = 0; x < a.output.width; ++x) visit(n, o, y, x);
      }
    }
  }
}

// The elements of an output, all 0; null if nobody reads it.
inline double* ClearedDoubles(KernelRun& k, const Operand& operand) {
  if (!operand) return nullptr;
  std::ranges::fill(k[operand].Span<double>(), 0.0);
  return k[operand].Data<double>();
}

// Declares the gradient of conv2d or depthwise_conv2d and its kernels (conv2d_grad.cc).
void AddConv2dGrad(OpDef& conv2d);

}  // namespace penstock
