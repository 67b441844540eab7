// What yolo_box and yolov3_loss share: where the numbers of a cell's boxes are, and what they stand for.
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

// X is [images, anchors * (5 + classes), height, width]: of each anchor x, y, width, height, objectness and
// classes.
struct YoloLayout {
  Dim images = 0, anchors = 0, classes = 0, height = 0, width = 0;

  Dim cells() const { return height * width; }
  // Entry `entry` of anchor `anchor` in cell 0; cells follow one another, entries lie cells() apart.
  Dim At(Dim image, Dim anchor, Dim entry) const {
    return ((image * anchors + anchor) * (5 + classes) + entry) * cells();
  }
};

// kInvalidArgument unless X is so for that many anchors. Context is an InferContext or a KernelSetup.
template <typename Context>
Result<YoloLayout> MakeYoloLayout(const Context& c, const Shape& x, Dim anchors) {
  const Dim classes = c.template Attr<std::int32_t>("class_num");
  if (x.rank() != 4) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
  if (!Compatible(x[1], anchors * (5 + classes)))
    return c.Error("channels of X (", x[1], ") must equal ", anchors, " anchors times 5 + class_num (",
                   classes, ")");
  return YoloLayout{x[0], anchors, classes, x[2], x[3]};
}

// The widths and heights of anchors, in pixels.
template <typename Context>
Result<std::vector<std::int32_t>> YoloAnchors(const Context& c) {
  std::vector<std::int32_t> anchors = c.template Attr<std::vector<std::int32_t>>("anchors");
  if (anchors.empty() || anchors.size() % 2 != 0)
    return c.Error("anchors must have two values for each anchor, not ", anchors.size(), " in all");
  return anchors;
}

}  // namespace penstock
