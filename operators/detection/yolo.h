// Shared by yolo_box and yolov3_loss: the layout and meaning of the numbers of a cell's boxes.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/kernel.h"

namespace penstock {

template <typename T>
T Logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

// X is [images, anchors * (5 + classes), height, width]. For each anchor it holds x, y, width, height,
// objectness and the class scores.
struct YoloLayout {
  Dim images = 0, anchors = 0, classes = 0, height = 0, width = 0;

  Dim cells() const { return height * width; }
  // Returns the index of entry `entry` of anchor `anchor` in cell 0. Cells are contiguous; entries are
  // cells() apart.
  Dim At(Dim image, Dim anchor, Dim entry) const {
    return ((image * anchors + anchor) * (5 + classes) + entry) * cells();
  }
};

// Returns the layout of X. kInvalidArgument: X does not have this shape for that many anchors. Context is an
// InferContext or a KernelSetup.
template <typename Context>
Result<YoloLayout> MakeYoloLayout(const Context& c, const Shape& x, Dim anchors) {
  const Dim classes = c.template Attr<std::int32_t>("class_num");
  if (x.rank() != 4) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
  if (!Compatible(x[1], anchors * (5 + classes)))
    return c.Error("channels of X (", x[1], ") must equal ", anchors, " anchors times 5 + class_num (",
                   classes, ")");
  return YoloLayout{x[0], anchors, classes, x[2], x[3]};
}

// Returns the widths and heights of the anchors, in pixels.
template <typename Context>
Result<std::vector<std::int32_t>> YoloAnchors(const Context& c) {
  std::vector<std::int32_t> anchors = c.template Attr<std::vector<std::int32_t>>("anchors");
  if (anchors.empty() || anchors.size() % 2 != 0)
    return c.Error("anchors must have two values for each anchor, not ", anchors.size(), " in all");
  return anchors;
}

}  // namespace penstock
