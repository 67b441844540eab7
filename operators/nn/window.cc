#include "operators/nn/window.h"

#include <algorithm>

#include "framework/base/strings.h"

namespace penstock {
namespace {

constexpr char kId[] = "E-window";
constexpr const char* kAxisName[3] = {"depth", "height", "width"};

Status CheckCounts(const WindowAttrs& attrs, std::size_t axes) {
  if (attrs.strides.size() != axes) {
    return InvalidArgument(kId, "strides must have ", axes, " values, not ", attrs.strides.size());
  }
  if (!attrs.dilations.empty() && attrs.dilations.size() != axes) {
    return InvalidArgument(kId, "dilations must have ", axes, " values, not ", attrs.dilations.size());
  }
  if (attrs.paddings.size() != axes && attrs.paddings.size() != 2 * axes) {
    return InvalidArgument(kId, "paddings must have ", axes, " or ", 2 * axes, " values, not ",
                           attrs.paddings.size());
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

void Pad(const WindowAttrs& attrs, std::size_t axis, std::size_t axes, WindowAxis& w) {
  if (attrs.padding_algorithm == "VALID") return;
  if (attrs.padding_algorithm == "SAME") {
    w.dilation = 1;  // as in Fluid, SAME pads for undilated windows
    if (w.in == kUnknownDim) return;
    const Dim windows = (w.in + w.stride - 1) / w.stride;
    const Dim padding = std::max<Dim>((windows - 1) * w.stride + w.kernel - w.in, 0);
    w.pad_begin = padding / 2;
    w.pad_end = padding - w.pad_begin;
    return;
  }
  const bool each_side = attrs.paddings.size() == 2 * axes;
  w.pad_begin = attrs.paddings[each_side ? 2 * axis : axis];
  w.pad_end = attrs.paddings[each_side ? 2 * axis + 1 : axis];
}

}  // namespace

int SpatialAxes(const std::string& op_type) { return op_type.find("3d") == std::string::npos ? 2 : 3; }

std::vector<Dim> ImageShape::Dims() const {
  std::vector<Dim> dims = {images, channels};
  dims.insert(dims.end(), extents.end() - axes, extents.end());
  return dims;
}

std::vector<Dim> ImageShape::Strides() const {
  std::vector<Dim> all = {image_stride, channel_stride};
  all.insert(all.end(), strides.end() - axes, strides.end());
  return all;
}

ImageShape MakeImageShape(const Shape& shape, bool channels_last) {
  ImageShape s;
  s.axes = shape.rank() - 2;
  s.images = shape[0];
  s.channels = shape[channels_last ? shape.rank() - 1 : 1];
  Dim stride = channels_last ? s.channels : 1;
  for (int axis = s.axes; axis-- > 0;) {
    const std::size_t at = static_cast<std::size_t>(axis + 3 - s.axes);
    s.extents[at] = shape[axis + (channels_last ? 1 : 2)];
    s.strides[at] = stride;
    stride *= s.extents[at];
  }
  s.channel_stride = channels_last ? 1 : stride;
  s.image_stride = channels_last ? stride : stride * s.channels;
  return s;
}

std::vector<Dim> SpatialExtents(const Shape& shape, bool channels_last) {
  std::vector<Dim> extents;
  for (int i = 0; i < shape.rank() - 2; ++i) extents.push_back(shape[i + (channels_last ? 1 : 2)]);
  return extents;
}

Shape ImagesOf(Dim images, Dim channels, const std::vector<Dim>& spatial, bool channels_last) {
  Shape shape = {images};
  if (!channels_last) shape.Append(channels);
  for (const Dim extent : spatial) shape.Append(extent);
  if (channels_last) shape.Append(channels);
  return shape;
}

std::vector<Dim> OutsOf(const Window& window) {
  std::vector<Dim> outs;
  for (int axis = 0; axis < window.axes(); ++axis) outs.push_back(window[axis].out);
  return outs;
}

std::vector<Dim> InsOf(const Window& window) {
  std::vector<Dim> ins;
  for (int axis = 0; axis < window.axes(); ++axis) ins.push_back(window[axis].in);
  return ins;
}

std::string SidesText(const std::array<Dim, 3>& extents, int axes) {
  const std::string plane = StrCat(extents[1], " x ", extents[2]);
  return axes == 2 ? plane : StrCat(extents[0], " x ", plane);
}

Result<Window> MakeWindow(const WindowAttrs& attrs, const std::vector<Dim>& in,
                          const std::vector<Dim>& kernel) {
  const std::size_t axes = in.size();
  PENSTOCK_RETURN_IF_ERROR(CheckCounts(attrs, axes));
  Window window(static_cast<int>(axes));
  for (std::size_t axis = 0; axis < axes; ++axis) {
    WindowAxis& w = window[static_cast<int>(axis)];
    w.in = in[axis];
    w.kernel = kernel[axis];
    w.stride = attrs.strides[axis];
    if (!attrs.dilations.empty()) w.dilation = attrs.dilations[axis];
    Pad(attrs, axis, axes, w);
    if (w.in == kUnknownDim || w.kernel == kUnknownDim) {
      w.out = kUnknownDim;
      continue;
    }
    const Dim reach = w.dilation * (w.kernel - 1) + 1;
    const Dim room = w.in + w.pad_begin + w.pad_end - reach + (attrs.ceil_mode ? w.stride - 1 : 0);
    if (room < 0) {
      return InvalidArgument(kId, "a window of ", kAxisName[axis + 3 - axes], " ", reach,
                             " does not fit into ", w.in, " with padding ", w.pad_begin, " and ", w.pad_end);
    }
    w.out = room / w.stride + 1;
  }
  return window;
}

}  // namespace penstock
