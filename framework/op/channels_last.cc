#include "framework/op/channels_last.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "framework/ir/role.h"
#include "framework/op/infer_context.h"

namespace penstock {

bool ChannelsLast::IsImage(std::string_view slot) const {
  if (slot.ends_with(kGradSuffix)) slot.remove_suffix(std::string_view(kGradSuffix).size());
  return std::ranges::find(images, slot) != images.end();
}

ChannelsLast ByAttr(std::string attr, std::string last, std::vector<std::string> images,
                    std::function<LayoutCost(const InferContext& plain)> cost) {
  const auto convert = [attr = std::move(attr), last = std::move(last)](const InferContext& plain, Op& op) {
    if (plain.Attr<std::string>(attr) == last) return false;
    op.Set(attr, Attr(last));
    return true;
  };
  return {.images = std::move(images), .convert = convert, .cost = std::move(cost)};
}

int AxisChannelsLast(int axis, int rank) {
  if (axis == 0) return 0;
  return axis == 1 ? rank - 1 : axis - 1;
}

ChannelsLast ByAxis(std::vector<std::string> images) {
  const auto convert = [image = images.front()](const InferContext& plain, Op& op) {
    if (plain.HasInput("AxisTensor")) return false;
    const int rank = plain.ShapeOf(image).rank();
    const int axis = plain.Attr<std::int32_t>("axis");
    op.Set("axis", AxisChannelsLast(axis < 0 ? axis + rank : axis, rank));
    return true;
  };
  return {.images = std::move(images), .convert = convert};
}

}  // namespace penstock
