// Images in another memory layout: how an op that is written for [N, C, ...] computes images that are stored
// [N, ..., C]. The executor's plan chooses the layout of each image (executor/plan/channels_last.h); programs
// do not change.
//
//   ops.Add("pool2d")....ChannelsLast(ByAttr("data_format", "NHWC", {"X", "Out"}));
//
// An op declared Elementwise needs no such declaration if its images have one shape. A gradient op follows
// the declaration of its forward op.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/op.h"

namespace penstock {

class InferContext;

// The time of an op on one thread in both layouts, in nanoseconds, by a model: a function of shapes and of
// the instruction set. Only their difference matters.
struct LayoutCost {
  double plain = 0, channels_last = 0;
};

struct ChannelsLast {
  // The slots whose arguments are images; of a gradient op, with or without @GRAD. Other arguments stay as
  // they are.
  std::vector<std::string> images;
  // Changes the attributes of a copy of the op, so that it computes images stored channels last. `plain` has
  // the types of the arguments in the plain layout. Returns false if the op cannot.
  std::function<bool(const InferContext& plain, Op& op)> convert;
  // Null: both layouts cost the same.
  std::function<LayoutCost(const InferContext& plain)> cost = nullptr;

  bool IsImage(std::string_view slot) const;
};

// An op with an attribute that names the layout: `last` stands for channels last, and every other value of
// the attribute for the plain layout.
ChannelsLast ByAttr(std::string attr, std::string last, std::vector<std::string> images,
                    std::function<LayoutCost(const InferContext& plain)> cost = nullptr);
// An op with an attribute `axis` that counts dimensions of images of rank 4 or 5, where negative values count
// from the last.
ChannelsLast ByAxis(std::vector<std::string> images);

// Returns the position in [N, ..., C] of dimension `axis` of [N, C, ...].
int AxisChannelsLast(int axis, int rank);

}  // namespace penstock
