// The geometry of sliding windows over the two spatial extents of an image batch, for convolution and
// pooling.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock {

// Where the extents of a batch of images lie in memory, whatever the order (NCHW or NHWC). Strides are in
// elements.
struct ImageShape {
  Dim images = 0, channels = 0, height = 0, width = 0;
  Dim image_stride = 0, channel_stride = 0, row_stride = 0, column_stride = 0;
  Dim At(Dim n, Dim c, Dim h, Dim w) const {
    return n * image_stride + c * channel_stride + h * row_stride + w * column_stride;
  }
};
ImageShape MakeImageShape(const Shape& shape, bool channels_last);

// One spatial axis: output o reads inputs o * stride - pad_begin + i * dilation, 0 <= i < kernel.
struct WindowAxis {
  Dim in = 0, out = 0;  // kUnknownDim until the program runs
  Dim kernel = 1, stride = 1, dilation = 1;
  Dim pad_begin = 0, pad_end = 0;
};
using Window = std::array<WindowAxis, 2>;  // height, width

struct WindowAttrs {
  std::vector<std::int32_t> strides, paddings, dilations;
  std::string padding_algorithm = "EXPLICIT";  // or SAME, VALID
  bool ceil_mode = false;                      // round the number of windows up
};

// `paddings` are [height, width] or [top, bottom, left, right]; SAME keeps ceil(in / stride) windows and puts
// the odd element of padding at the end. An unknown extent gives an unknown extent. kInvalidArgument: what
// does not fit; the caller adds which op.
Result<Window> MakeWindow(const WindowAttrs& attrs, std::array<Dim, 2> in, std::array<Dim, 2> kernel);

}  // namespace penstock
