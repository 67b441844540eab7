#include "operators/nn/window.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr char kId[] = "E-window";
constexpr const char* kAxisName[2] = {"height", "width"};

Status CheckPairs(const WindowAttrs& attrs) {
  if (attrs.strides.size() != 2) {
    return InvalidArgument(kId, "strides must have 2 values, not ", attrs.strides.size());
  }
  if (!attrs.dilations.empty() && attrs.dilations.size() != 2) {
    return InvalidArgument(kId, "dilations must have 2 values, not ", attrs.dilations.size());
  }
  if (attrs.paddings.size() != 2 && attrs.paddings.size() != 4) {
    return InvalidArgument(kId, "paddings must have 2 or 4 values, not ", attrs.paddings.size());
  }
  for (const std::int32_t stride : attrs.strides) {
    if (stride < 1) return InvalidArgument(kId, "strides must be at least 1, not ", stride);
  }
  for (const std::int32_t dilation : attrs.dilations) {
    if (dilation < 1) return InvalidArgument(kId, "dilations must be at least 1, not ", dilation);
  }
  for (const std::int32_t padding : attrs.paddings) {
    if (padding < 0) return InvalidArgument(kId, "paddings must be at least 0, not ", padding);
  }
  return OkStatus();
}

void Pad(const WindowAttrs& attrs, std::size_t axis, WindowAxis& w) {
  if (attrs.padding_algorithm == "VALID") return;
  if (attrs.padding_algorithm == "SAME") {
    w.dilation = 1;  // as Fluid: SAME pads for undilated windows
    if (w.in == kUnknownDim) return;
    const Dim windows = (w.in + w.stride - 1) / w.stride;
    const Dim padding = std::max<Dim>((windows - 1) * w.stride + w.kernel - w.in, 0);
    w.pad_begin = padding / 2;
    w.pad_end = padding - w.pad_begin;
    return;
  }
  const bool each_side = attrs.paddings.size() == 4;
  w.pad_begin = attrs.paddings[each_side ? 2 * axis : axis];
  w.pad_end = attrs.paddings[each_side ? 2 * axis + 1 : axis];
}

}  // namespace

ImageShape MakeImageShape(const Shape& shape, bool channels_last) {
  ImageShape s;
  s.images = shape[0];
  s.channels = shape[channels_last ? 3 : 1];
  s.height = shape[channels_last ? 1 : 2];
  s.width = shape[channels_last ? 2 : 3];
  s.image_stride = s.channels * s.height * s.width;
  s.channel_stride = channels_last ? 1 : s.height * s.width;
  s.column_stride = channels_last ? s.channels : 1;
  s.row_stride = s.width * s.column_stride;
  return s;
}

Result<Window> MakeWindow(const WindowAttrs& attrs, std::array<Dim, 2> in, std::array<Dim, 2> kernel) {
  PENSTOCK_RETURN_IF_ERROR(CheckPairs(attrs));
  Window window;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    WindowAxis& w = window[axis];
    w.in = in[axis];
    w.kernel = kernel[axis];
    w.stride = attrs.strides[axis];
    if (!attrs.dilations.empty()) w.dilation = attrs.dilations[axis];
    Pad(attrs, axis, w);
    if (w.in == kUnknownDim || w.kernel == kUnknownDim) {
      w.out = kUnknownDim;
      continue;
    }
    const Dim reach = w.dilation * (w.kernel - 1) + 1;
    const Dim room = w.in + w.pad_begin + w.pad_end - reach + (attrs.ceil_mode ? w.stride - 1 : 0);
    if (room < 0) {
      return InvalidArgument(kId, "a window of ", kAxisName[axis], " ", reach, " does not fit into ", w.in,
                             " with padding ", w.pad_begin, " and ", w.pad_end);
    }
    w.out = room / w.stride + 1;
  }
  return window;
}

}  // namespace penstock
