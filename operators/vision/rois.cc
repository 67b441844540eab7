#include "operators/vision/rois.h"

#include <utility>

namespace penstock {

Status RoiImages::Prepare(const KernelSetup& k, Dim images, Dim width, const char* offsets,
                          const char* counts) {
  type_ = k.op().type();
  images_ = images;
  rois_.Prepare(k, "ROIs");
  const Shape& shape = k.Input("ROIs").shape;
  if (shape.rank() != 2 || shape[1] != width)
    return k.Error("shape of ROIs (", shape, ") must be [regions, ", width, "]");
  for (const auto& [slot, operand] : {std::pair(offsets, &offsets_), std::pair(counts, &counts_)}) {
    if (slot == nullptr) continue;
    const Argument& given = k.Input(slot);
    *operand = given;
    if (given && given.dtype != DType::kInt64)
      return k.Error("element type of ", given.name, " (", DTypeName(given.dtype), ") must be i64");
  }
  of_.resize(static_cast<std::size_t>(shape[0]));
  return OkStatus();
}

Status RoiImages::Read(KernelRun& k) {
  const Dim regions = count();
  if (!offsets_ && !counts_) {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, rois_.Innermost(k));
    if (sequences.count() != images_)
      return LodError(rois_.what(), " is in ", sequences.count(), " sequences; there are ", images_,
                      " images");
    for (Dim image = 0; image < images_; ++image) {
      for (Dim r = sequences.begin(image); r < sequences.end(image); ++r)
        of_[static_cast<std::size_t>(r)] = image;
    }
    return OkStatus();
  }
  const NamedOperand& given = offsets_ ? offsets_ : counts_;
  const auto numbers = std::as_const(k[given]).Span<std::int64_t>();
  const auto wrong = [&] {
    return InvalidArgument("E-op-value", type_, ": ", given.name, " does not divide ", regions,
                           " regions among ", images_, " images");
  };
  if (static_cast<Dim>(numbers.size()) != images_ + (offsets_ ? 1 : 0)) return wrong();
  Dim next = 0;
  for (Dim image = 0; image < images_; ++image) {
    const std::size_t at = static_cast<std::size_t>(image);
    if (offsets_ && (numbers[at] != next || numbers[at + 1] < next || numbers[at + 1] > regions))
      return wrong();
    if (!offsets_ && (numbers[at] < 0 || numbers[at] > regions - next)) return wrong();
    const Dim end = offsets_ ? numbers[at + 1] : next + numbers[at];
    for (; next < end; ++next) of_[static_cast<std::size_t>(next)] = image;
  }
  return next == regions ? OkStatus() : wrong();
}

Status InferRois(InferContext& c, const char* images, const char* out, Dim channels, Dim width) {
  const Shape& rois = c.ShapeOf("ROIs");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank(images, 4));
  if (rois.rank() != 2 || !Compatible(rois[1], width))
    return c.Error("shape of ROIs (", rois, ") must be [regions, ", width, "]");
  const Dim height = c.Attr<std::int32_t>("pooled_height"), bins = c.Attr<std::int32_t>("pooled_width");
  return c.SetShape(out, {rois[0], channels, height, bins});
}

}  // namespace penstock
