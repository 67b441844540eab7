// generate_mask_labels: the training targets of the mask head of a detector.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/lod.h"
#include "operators/detection/sampling.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Computes a mask for each region in Rois whose label is above 0. The region is paired with the object (of a
class above 0, not a crowd) whose bounding box it overlaps most. Its row of MaskInt32 consists of num_classes
blocks of resolution x resolution pixels. The block of its label holds the object's polygons, rasterised
over the region: 1 inside a polygon, 0 outside. All other blocks hold -1. RoiHasMaskInt32 is the index of each
such region within its image. An image without such a region yields its first region of label 0, with -1
everywhere. Regions are divided by the image's scale, which brings them to the coordinates of the polygons.

GtSegms holds points (x, y) in sequences on three levels: images, objects, polygons. The rasterisation matches
that of COCO's tools: the polygon is drawn five times as large, and a column is filled between the crossings
at its middle.

He, Gkioxari, Dollar, Girshick: "Mask R-CNN", ICCV 2017.)";

Status InferMaskLabels(InferContext& c) {
  const Shape &rois = c.ShapeOf("Rois"), &segments = c.ShapeOf("GtSegms"), &info = c.ShapeOf("ImInfo");
  if (rois.rank() != 2 || !Compatible(rois[1], 4))
    return c.Error("shape of Rois (", rois, ") must be [regions, 4]");
  if (segments.rank() != 2 || !Compatible(segments[1], 2))
    return c.Error("shape of GtSegms (", segments, ") must be [points, 2]");
  if (info.rank() != 2 || !Compatible(info[1], 3))
    return c.Error("shape of ImInfo (", info, ") must be [images, 3]");
  const auto column = [&](const char* slot) -> Status {
    const Shape& shape = c.ShapeOf(slot);
    if (shape.rank() == 1 || (shape.rank() == 2 && Compatible(shape[1], 1))) return OkStatus();
    return c.Error("shape of ", slot, " (", shape, ") must be [n, 1]");
  };
  for (const char* slot : {"GtClasses", "IsCrowd", "LabelsInt32"}) PENSTOCK_RETURN_IF_ERROR(column(slot));
  if (!Compatible(c.ShapeOf("LabelsInt32")[0], rois[0]))
    return c.Error("LabelsInt32 (", c.ShapeOf("LabelsInt32"), ") must have a row for each of Rois (", rois,
                   ")");
  if (!Compatible(c.ShapeOf("GtClasses")[0], c.ShapeOf("IsCrowd")[0]))
    return c.Error("GtClasses (", c.ShapeOf("GtClasses"), ") and IsCrowd (", c.ShapeOf("IsCrowd"),
                   ") must have the same rows");
  const Dim side = c.Attr<std::int32_t>("resolution");
  for (const char* slot : {"MaskRois", "RoiHasMaskInt32", "MaskInt32"}) c.SetLodLevel(slot, 1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("MaskRois", {kUnknownDim, 4}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("RoiHasMaskInt32", {kUnknownDim, 1}));
  return c.SetShape("MaskInt32", {kUnknownDim, c.Attr<std::int32_t>("num_classes") * side * side});
}

// Rasterises polygons into masks of side x side pixels.
class PolygonFiller {
 public:
  explicit PolygonFiller(Dim side = 1) : side_(side) {}

  // Sets the pixels of `mask` inside the polygon; `corners` are in pixels.
  void Fill(std::span<const double> corners, std::span<std::uint8_t> mask) {
    crossings_.clear();
    const std::size_t count = corners.size() / 2;
    have_last_ = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t next = (i + 1) % count;
      Draw(Scaled(corners[2 * i]), Scaled(corners[2 * i + 1]), Scaled(corners[2 * next]),
           Scaled(corners[2 * next + 1]));
    }
    std::sort(crossings_.begin(), crossings_.end());
    std::size_t passed = 0;
    for (Dim at = 0; at < side_ * side_; ++at) {  // column after column
      while (passed < crossings_.size() && crossings_[passed] <= at) ++passed;
      if (passed % 2 == 1) mask[static_cast<std::size_t>(at % side_ * side_ + at / side_)] = 1;
    }
  }

 private:
  static constexpr double kTimes = 5;

  static Dim Scaled(double place) {
    constexpr double kMost = 1 << 22;  // bounds coordinates; a smaller bound would change slopes
    return static_cast<Dim>(std::clamp(kTimes * place + 0.5, -kMost, kMost));
  }
  // Appends the points of an edge, one for each step along its longer side.
  void Draw(Dim x, Dim y, Dim to_x, Dim to_y) {
    const Dim wide = std::abs(to_x - x), high = std::abs(to_y - y);
    const bool turned = (wide >= high && x > to_x) || (wide < high && y > to_y);
    if (turned) {
      std::swap(x, to_x);
      std::swap(y, to_y);
    }
    const Dim steps = std::max(wide, high);
    const double slope = steps == 0     ? 0
                         : wide >= high ? static_cast<double>(to_y - y) / static_cast<double>(wide)
                                        : static_cast<double>(to_x - x) / static_cast<double>(high);
    for (Dim i = 0; i <= steps; ++i) {
      const Dim t = turned ? steps - i : i;
      const auto along = [&](Dim from) {
        return static_cast<Dim>(static_cast<double>(from) + slope * static_cast<double>(t) + 0.5);
      };
      if (wide >= high) {
        AddPoint(t + x, along(y));
      } else {
        AddPoint(along(x), t + y);
      }
    }
  }
  // Finds where the outline crosses the middle of a column.
  void AddPoint(Dim x, Dim y) {
    const Dim before_x = last_x_, before_y = last_y_;
    last_x_ = x;
    last_y_ = y;
    if (!std::exchange(have_last_, true) || x == before_x) return;
    const double column = (static_cast<double>(x < before_x ? x : x - 1) + 0.5) / kTimes - 0.5;
    if (std::floor(column) != column || column < 0 || column > static_cast<double>(side_ - 1)) return;
    const double row = (static_cast<double>(std::min(y, before_y)) + 0.5) / kTimes - 0.5;
    const double cut = std::ceil(std::clamp(row, 0.0, static_cast<double>(side_)));
    crossings_.push_back(static_cast<Dim>(column) * side_ + static_cast<Dim>(cut));
  }

  Dim side_ = 1, last_x_ = 0, last_y_ = 0;
  bool have_last_ = false;
  std::vector<Dim> crossings_;
};

template <typename Device, typename T>
class MaskLabelsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(info_);
    classes_.Prepare(k, "GtClasses");
    k.Bind(crowd_);
    segments_.Prepare(k, "GtSegms");
    rois_.Prepare(k, "Rois");
    k.Bind(labels_);
    count_ = k.Attr<std::int32_t>("num_classes");
    side_ = k.Attr<std::int32_t>("resolution");
    filler_ = PolygonFiller(side_);
    mask_.resize(static_cast<std::size_t>(side_ * side_));
    PENSTOCK_RETURN_IF_ERROR(rois_out_.Prepare(k, "MaskRois", k.Input("Rois").dtype, {0, 4}));
    PENSTOCK_RETURN_IF_ERROR(has_mask_.Prepare(k, "RoiHasMaskInt32", DType::kInt32, {0, 1}));
    return masks_.Prepare(k, "MaskInt32", DType::kInt32, {0, count_ * side_ * side_});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets rois, rois_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets objects, classes_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* segments, segments_.Levels(k, 3, 3));
    const Offsets segment_images((*segments)[0]);
    if (rois.count() != objects.count() || rois.count() != k[info_].shape()[0] ||
        segment_images.count() != rois.count())
      return LodError(rois_.what(), " is in ", rois.count(), " sequences, GtClasses in ", objects.count(),
                      ", GtSegms in ", segment_images.count(), "; ImInfo has ", k[info_].shape()[0],
                      " images");
    chosen_.clear();
    all_masks_.clear();
    for (MadeLod& lod : lods_) lod.Start(1);
    for (Dim image = 0; image < rois.count(); ++image) {
      if (segment_images.length(image) != objects.length(image))
        return LodError(segments_.what(), " has ", segment_images.length(image), " objects in image ", image,
                        ", GtClasses ", objects.length(image));
      const std::size_t before = chosen_.size();
      PENSTOCK_RETURN_IF_ERROR(AddImage(k, image, rois, objects, *segments));
      for (MadeLod& lod : lods_) lod.Add(0, static_cast<Dim>(chosen_.size() - before));
    }
    Write(k);
    return OkStatus();
  }

 private:
  struct Chosen {
    Dim roi = 0;           // index among all regions
    std::int32_t own = 0;  // index within its image
    std::int32_t label = 0;
  };

  // Collects the objects of an image to which regions may be matched, and the boxes around their polygons.
  void ReadObjects(KernelRun& k, Dim begin, Dim end, const LoD& segments) {
    const std::int32_t* const labels = std::as_const(k[classes_.operand()]).template Data<std::int32_t>();
    const std::int32_t* const crowd = std::as_const(k[crowd_]).template Data<std::int32_t>();
    const T* const points = std::as_const(k[segments_.operand()]).template Data<T>();
    const Offsets polygons(segments[1]), corners(segments[2]);
    objects_.clear();
    boxes_.clear();
    for (Dim i = begin; i < end; ++i) {
      if (labels[i] <= 0 || crowd[i] != 0) continue;
      objects_.push_back(i);
      T box[4] = {};
      bool first = true;
      for (Dim p = corners.begin(polygons.begin(i));
           polygons.length(i) > 0 && p < corners.end(polygons.end(i) - 1); ++p) {
        for (int n = 0; n < 2; ++n) {
          box[n] = first ? points[2 * p + n] : std::min(box[n], points[2 * p + n]);
          box[n + 2] = first ? points[2 * p + n] : std::max(box[n + 2], points[2 * p + n]);
        }
        first = false;
      }
      boxes_.insert(boxes_.end(), box, box + 4);
    }
  }

  Status AddImage(KernelRun& k, Dim image, const Offsets& rois, const Offsets& objects, const LoD& segments) {
    ReadObjects(k, objects.begin(image), objects.end(image), segments);
    const T scale = std::as_const(k[info_]).template Data<T>()[image * 3 + 2];
    const std::int32_t* const labels = std::as_const(k[labels_]).template Data<std::int32_t>();
    const T* const regions = std::as_const(k[rois_.operand()]).template Data<T>();
    const std::size_t before = chosen_.size();
    for (Dim i = rois.begin(image); i < rois.end(image); ++i) {
      if (labels[i] <= 0) continue;
      if (labels[i] >= count_)
        return InvalidArgument("E-op-label", "generate_mask_labels: LabelsInt32 holds ", labels[i],
                               "; it must be below ", count_);
      if (objects_.empty())
        return InvalidArgument("E-op-value", "generate_mask_labels: image ", image, " has a region of class ",
                               labels[i], ", but no object");
      T region[4];
      for (int n = 0; n < 4; ++n) region[n] = regions[i * 4 + n] / scale;
      std::size_t best = 0;
      T most{0};
      for (std::size_t j = 0; j < objects_.size(); ++j) {
        const T overlap = PixelOverlap(region, boxes_.data() + j * 4);
        if (!(overlap > most)) continue;
        most = overlap;
        best = j;
      }
      std::ranges::fill(mask_, std::uint8_t{0});
      FillObject(k, segments, objects_[best], region);
      all_masks_.insert(all_masks_.end(), mask_.begin(), mask_.end());
      chosen_.push_back({i, static_cast<std::int32_t>(i - rois.begin(image)), labels[i]});
    }
    if (chosen_.size() > before) return OkStatus();
    for (Dim i = rois.begin(image); i < rois.end(image); ++i) {  // consumers want a region of each image
      if (labels[i] != 0) continue;
      chosen_.push_back({i, 0, 0});
      all_masks_.insert(all_masks_.end(), mask_.size(), std::uint8_t{0});
      break;
    }
    return OkStatus();
  }
  void FillObject(KernelRun& k, const LoD& segments, Dim object, const T* region) {
    const T* const points = std::as_const(k[segments_.operand()]).template Data<T>();
    const Offsets polygons(segments[1]), corners(segments[2]);
    const double wide = std::max(static_cast<double>(region[2] - region[0]), 1.0);
    const double high = std::max(static_cast<double>(region[3] - region[1]), 1.0);
    for (Dim polygon = polygons.begin(object); polygon < polygons.end(object); ++polygon) {
      corners_.clear();
      for (Dim p = corners.begin(polygon); p < corners.end(polygon); ++p) {
        const double side = static_cast<double>(side_);
        corners_.push_back(static_cast<double>(points[2 * p] - region[0]) * side / wide);
        corners_.push_back(static_cast<double>(points[2 * p + 1] - region[1]) * side / high);
      }
      const bool bad = std::ranges::any_of(corners_, [](double corner) { return std::isnan(corner); });
      if (corners_.size() >= 6 && !bad) filler_.Fill(corners_, mask_);
    }
  }

  void Write(KernelRun& k) {
    const Dim rows = static_cast<Dim>(chosen_.size()), pixels = side_ * side_;
    Tensor& rois = rois_out_.Make(k, rows);
    Tensor& has_mask = has_mask_.Make(k, rows);
    Tensor& masks = masks_.Make(k, rows);
    std::ranges::fill(masks.Span<std::int32_t>(), -1);
    for (Dim row = 0; row < rows; ++row) {
      const Chosen& one = chosen_[static_cast<std::size_t>(row)];
      std::copy_n(std::as_const(k[rois_.operand()]).template Data<T>() + one.roi * 4, 4,
                  rois.Data<T>() + row * 4);
      has_mask.Data<std::int32_t>()[row] = one.own;
      if (one.label > 0)
        std::copy_n(all_masks_.data() + row * pixels, pixels,
                    masks.Data<std::int32_t>() + (row * count_ + one.label) * pixels);
    }
    lods_[0].Set(rois);
    lods_[1].Set(has_mask);
    lods_[2].Set(masks);
  }

  In<"ImInfo"> info_;
  In<"IsCrowd"> crowd_;
  In<"LabelsInt32"> labels_;
  SequenceInput classes_, segments_, rois_;
  Dim count_ = 0, side_ = 1;
  RowsOutput rois_out_, has_mask_, masks_;
  MadeLod lods_[3];
  PolygonFiller filler_;
  std::vector<Chosen> chosen_;
  std::vector<std::uint8_t> mask_, all_masks_;
  std::vector<Dim> objects_;
  std::vector<T> boxes_;
  std::vector<double> corners_;
};

}  // namespace

void RegisterMaskLabels(OpRegistry& ops) {
  ops.Add("generate_mask_labels")
      .Doc("Computes the training targets of a mask head.", kDoc)
      .Input("ImInfo", "[images, 3]: height, width, scale", Floats())
      .Input("GtClasses", "[objects, 1], one sequence per image", Only(DType::kInt32))
      .Input("IsCrowd", "[objects, 1], nonzero if an object is a crowd", Only(DType::kInt32))
      .Input("GtSegms", "[points, 2], in sequences on three levels", SameTypeAs("ImInfo"))
      .Input("Rois", "[regions, 4], one sequence per image", SameTypeAs("ImInfo"))
      .Input("LabelsInt32", "[regions, 1]", Only(DType::kInt32))
      .Output("MaskRois", "[masks, 4], like all outputs with one sequence per image", SameTypeAs("ImInfo"))
      .Output("RoiHasMaskInt32", "[masks, 1]", Only(DType::kInt32))
      .Output("MaskInt32", "[masks, num_classes * resolution * resolution]", Only(DType::kInt32))
      .RequiredAttr("num_classes", AttrKind::kInt, "the number of classes including the background",
                    Between(1, 1 << 12))
      .RequiredAttr("resolution", AttrKind::kInt, "the height and width of a mask", Between(1, 1 << 9))
      .Nan("a polygon with a NaN fills no pixel.")
      .InferShape(InferMaskLabels)
      .KernelTypeFrom("Rois")
      .Kernel<Cpu, MaskLabelsKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
