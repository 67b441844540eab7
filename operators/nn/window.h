// The geometry of sliding windows over the spatial extents of a batch of images (height and width) or volumes
// (depth, height and width), for convolution and pooling.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock {

// Returns 3 for ops on volumes (conv3d, pool3d and similar ops, gradients included), else 2.
int SpatialAxes(const std::string& op_type);

// The memory layout of a batch of images or volumes, for any order of axes. Strides are in elements. The
// spatial extents are the last `axes` of depth, height and width; images have depth 1.
struct ImageShape {
  int axes = 2;
  Dim images = 0, channels = 0;
  std::array<Dim, 3> extents = {1, 0, 0};
  Dim image_stride = 0, channel_stride = 0;
  std::array<Dim, 3> strides = {0, 0, 0};

  Dim At(Dim n, Dim c, Dim z, Dim y, Dim x) const {
    return n * image_stride + c * channel_stride + z * strides[0] + y * strides[1] + x * strides[2];
  }
  Dim points() const { return extents[0] * extents[1] * extents[2]; }
  // Return the extents [images, channels, spatial extents], and their strides.
  std::vector<Dim> Dims() const;
  std::vector<Dim> Strides() const;
};
ImageShape MakeImageShape(const Shape& shape, bool channels_last);

// One spatial axis: output o reads inputs o * stride - pad_begin + i * dilation, 0 <= i < kernel.
struct WindowAxis {
  Dim in = 0, out = 0;  // kUnknownDim until the program runs
  Dim kernel = 1, stride = 1, dilation = 1;
  Dim pad_begin = 0, pad_end = 0;
};

// The spatial axes of a window. For images, depth is an axis of one element.
class Window {
 public:
  explicit Window(int axes = 2) : axes_(axes) { all_[0].in = all_[0].out = 1; }

  int axes() const { return axes_; }
  // Spatial axis i, from 0 to axes() - 1.
  WindowAxis& operator[](int i) { return all_[static_cast<std::size_t>(i + 3 - axes_)]; }
  const WindowAxis& operator[](int i) const { return all_[static_cast<std::size_t>(i + 3 - axes_)]; }
  // Depth, height and width.
  const std::array<WindowAxis, 3>& all() const { return all_; }
  std::array<Dim, 3> outs() const { return {all_[0].out, all_[1].out, all_[2].out}; }
  std::array<Dim, 3> ins() const { return {all_[0].in, all_[1].in, all_[2].in}; }

 private:
  int axes_;
  std::array<WindowAxis, 3> all_;
};

struct WindowAttrs {
  std::vector<std::int32_t> strides, paddings, dilations;
  std::string padding_algorithm = "EXPLICIT";  // or SAME, VALID
  bool ceil_mode = false;                      // round the number of windows up
};

// Returns the spatial extents of X, or of a tensor with the same layout.
std::vector<Dim> SpatialExtents(const Shape& shape, bool channels_last);
// Returns the shape of images or volumes with these extents.
Shape ImagesOf(Dim images, Dim channels, const std::vector<Dim>& spatial, bool channels_last);
std::vector<Dim> OutsOf(const Window& window);
std::vector<Dim> InsOf(const Window& window);
std::string SidesText(const std::array<Dim, 3>& extents, int axes);  // "3 x 4"

// Computes the window. `paddings` has one value per axis, or two: before and after. SAME gives ceil(in /
// stride) windows, and an odd element of padding goes to the end. An unknown extent gives an unknown extent.
// kInvalidArgument: attributes that do not fit; the message does not name the op.
Result<Window> MakeWindow(const WindowAttrs& attrs, const std::vector<Dim>& in,
                          const std::vector<Dim>& kernel);

}  // namespace penstock
