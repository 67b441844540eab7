// roi_perspective_transform: transforms quadrilaterals of images to rectangles.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/vision/bilinear.h"
#include "operators/vision/rois.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
A region is a quadrilateral with corners (x1, y1, ..., x4, y4), clockwise from the top left, which are
multiplied by spatial_scale. Its TransformMatrix M, with nine elements, maps the corners of a rectangle of
transformed_height rows to the corners of the region. The number of columns keeps the aspect ratio of the
region, but is at most transformed_width. Then

(u, v, w) = M . (column, row, 1)
Out[region, channel, row, column] = the image's channel at (u / w, v / w), interpolated bilinearly

If that position is outside the region, or half a pixel or more outside the image, Out and Mask are 0;
elsewhere Mask is 1. A region belongs to the image of its sequence. Coordinates that differ by less than 1e-4
are treated as equal. Out2InIdx and Out2InWeights are used by Fluid's GPU backend and have no elements. ROIs
has no gradient.

Sun et al.: "TextNet: irregular text reading from images with an end-to-end trainable network", ACCV 2018.)";

constexpr double kNear = 1e-4;

// The corners of a region in the image.
struct Quadrilateral {
  std::array<double, 4> x{}, y{};

  bool IsNumber() const {
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += x[i] + y[i];
    return !IsNan(sum);
  }
  double Side(std::size_t i) const {
    const std::size_t j = (i + 1) % 4;
    return std::sqrt((x[i] - x[j]) * (x[i] - x[j]) + (y[i] - y[j]) * (y[i] - y[j]));
  }
  // Returns whether a position is inside or on an edge: a ray from it to the right crosses an odd number of
  // edges.
  bool Covers(double px, double py) const {
    const auto near = [](double a, double b) { return std::abs(a - b) < kNear; };
    int crossed = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t j = (i + 1) % 4;
      const double top = std::min(y[i], y[j]), bottom = std::max(y[i], y[j]);
      if (near(y[i], y[j])) {
        const bool between = px > std::min(x[i], x[j]) - kNear && px < std::max(x[i], x[j]) + kNear;
        if (between && near(py, y[i]) && near(py, y[j])) return true;
        continue;
      }
      const double at = (py - y[i]) * (x[j] - x[i]) / (y[j] - y[i]) + x[i];
      if (near(at, px) && py > top - kNear && py < bottom + kNear) return true;
      // The upper end of an edge is not part of it; it counts with the edge above.
      if (py >= top + kNear && py <= bottom + kNear && at - px > kNear) ++crossed;
    }
    return crossed % 2 == 1;
  }
};

using Matrix3 = std::array<double, 9>;

// Maps a rectangle of `height` rows and at most `width` columns to the region.
Matrix3 MatrixOf(const Quadrilateral& q, Dim height, Dim width) {
  const double rows = static_cast<double>(std::max<Dim>(height, 2)) - 1;
  const double ratio = (q.Side(0) + q.Side(2)) / (q.Side(1) + q.Side(3));
  const double wanted = std::round(ratio * rows) + 1;
  const double columns = std::max(2.0, MinOrNan(static_cast<double>(width), wanted)) - 1;
  const double dx1 = q.x[1] - q.x[2], dx2 = q.x[3] - q.x[2], dx3 = q.x[0] - q.x[1] + q.x[2] - q.x[3];
  const double dy1 = q.y[1] - q.y[2], dy2 = q.y[3] - q.y[2], dy3 = q.y[0] - q.y[1] + q.y[2] - q.y[3];
  const double area = dx1 * dy2 - dx2 * dy1 + 1e-5;
  const double right = (dx3 * dy2 - dx2 * dy3) / area, down = (dx1 * dy3 - dx3 * dy1) / area;
  return {(q.x[1] - q.x[0] + right * q.x[1]) / columns,
          (q.x[3] - q.x[0] + down * q.x[3]) / rows,
          q.x[0],
          (q.y[1] - q.y[0] + right * q.y[1]) / columns,
          (q.y[3] - q.y[0] + down * q.y[3]) / rows,
          q.y[0],
          right / columns,
          down / rows,
          1};
}

Status InferPerspective(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &rois = c.ShapeOf("ROIs");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 4));
  if (rois.rank() != 2 || !Compatible(rois[1], 8))
    return c.Error("shape of ROIs (", rois, ") must be [regions, 8]");
  const Dim height = c.Attr<std::int32_t>("transformed_height");
  const Dim width = c.Attr<std::int32_t>("transformed_width");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Mask", {rois[0], 1, height, width}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("TransformMatrix", {rois[0], 9}));
  for (const char* slot : {"Out2InIdx", "Out2InWeights"}) PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {0, 4}));
  c.ShareLod("ROIs", "Out");
  return c.SetShape("Out", {rois[0], x[1], height, width});
}

// The regions of one run, and the positions of the image to which they are mapped.
template <typename T>
class Perspective {
 public:
  Status Prepare(const KernelSetup& k) {
    x_ = k.Input("X").shape;
    k.Bind(rois_);
    if (x_.rank() != 4) return k.Error("rank of X (", x_.rank(), ", shape ", x_, ") must be 4");
    height_ = k.Attr<std::int32_t>("transformed_height");
    width_ = k.Attr<std::int32_t>("transformed_width");
    scale_ = static_cast<double>(k.Attr<float>("spatial_scale"));
    return images_.Prepare(k, x_[0], 8, nullptr, nullptr);
  }
  Status Read(KernelRun& k) { return images_.Read(k); }

  Dim regions() const { return images_.count(); }
  Dim channels() const { return x_[1]; }
  Dim plane() const { return x_[2] * x_[3]; }     // elements of a channel of an image
  Dim shown() const { return height_ * width_; }  // elements of a channel of Out
  // Returns the first element of the image of a region.
  Dim ImageOf(Dim region) const { return images_.of(region) * channels() * plane(); }
  Shape out() const { return {images_.count(), x_[1], height_, width_}; }

  Quadrilateral Region(KernelRun& k, Dim region) const {
    const T* const roi = std::as_const(k[rois_]).template Data<T>() + region * 8;
    Quadrilateral q;
    for (std::size_t i = 0; i < 4; ++i) {
      q.x[i] = static_cast<double>(roi[2 * i]) * scale_;
      q.y[i] = static_cast<double>(roi[2 * i + 1]) * scale_;
    }
    return q;
  }
  Matrix3 MatrixFor(const Quadrilateral& q) const { return MatrixOf(q, height_, width_); }

  // Calls visit(element of a channel of Out, the pixels around its position) for each element inside the
  // region.
  template <typename Visit>
  void EachPlace(const Quadrilateral& q, const Matrix3& m, Visit visit) const {
    const double bottom = static_cast<double>(x_[2]), right = static_cast<double>(x_[3]);
    for (Dim at = 0; at < shown(); ++at) {
      const double row = static_cast<double>(at / width_), column = static_cast<double>(at % width_);
      const double w = m[6] * column + m[7] * row + m[8];
      const double px = (m[0] * column + m[1] * row + m[2]) / w;
      const double py = (m[3] * column + m[4] * row + m[5]) / w;
      const bool inside =
          px >= -0.5 + kNear && px <= right - 0.5 - kNear && py >= -0.5 + kNear && py <= bottom - 0.5 - kNear;
      if (!inside || !q.Covers(px, py)) continue;
      visit(at, BilinearPoint<T>(Within(py, bottom - 1), Within(px, right - 1), x_[2], x_[3]));
    }
  }

 private:
  static T Within(double place, double last) {
    return static_cast<T>(place < kNear ? 0.0 : std::min(place, last));
  }

  Shape x_;
  In<"ROIs"> rois_;
  RoiImages images_;
  Dim height_ = 1, width_ = 1;
  double scale_ = 1;
};

template <typename Device, typename T>
class PerspectiveKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, mask_, matrix_);
    return regions_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(regions_.Read(k));
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    std::ranges::fill(k[mask_].template Span<std::int32_t>(), 0);
    for (Dim region = 0; region < regions_.regions(); ++region) RunRegion(k, region);
    return OkStatus();
  }

 private:
  void RunRegion(KernelRun& k, Dim region) {
    const Dim channels = regions_.channels(), shown = regions_.shown(), plane = regions_.plane();
    const T* const image = std::as_const(k[x_]).template Data<T>() + regions_.ImageOf(region);
    T* const out = k[out_].template Data<T>() + region * channels * shown;
    std::int32_t* const mask = k[mask_].template Data<std::int32_t>() + region * shown;
    const Quadrilateral q = regions_.Region(k, region);
    const Matrix3 m = regions_.MatrixFor(q);
    std::ranges::transform(m, k[matrix_].template Data<T>() + region * 9,
                           [](double element) { return static_cast<T>(element); });
    if (!q.IsNumber()) std::fill_n(out, channels * shown, std::numeric_limits<T>::quiet_NaN());
    regions_.EachPlace(q, m, [&](Dim at, const BilinearPoint<T>& point) {
      mask[at] = 1;
      for (Dim c = 0; c < channels; ++c) out[c * shown + at] = point.Of(image + c * plane);
    });
  }

  In<"X"> x_;
  Out<"Out"> out_;
  Out<"Mask"> mask_;
  Out<"TransformMatrix"> matrix_;
  Perspective<T> regions_;
};

template <typename Device, typename T>
class PerspectiveGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(regions_.Prepare(k));
    return RequireShape(k, "Out@GRAD", regions_.out());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(regions_.Read(k));
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    const Dim channels = regions_.channels(), shown = regions_.shown(), plane = regions_.plane();
    for (Dim region = 0; region < regions_.regions(); ++region) {
      const T* const dout = std::as_const(k[dout_]).template Data<T>() + region * channels * shown;
      T* const dx = k[dx_].template Data<T>() + regions_.ImageOf(region);
      const Quadrilateral q = regions_.Region(k, region);
      regions_.EachPlace(q, regions_.MatrixFor(q), [&](Dim at, const BilinearPoint<T>& point) {
        for (Dim c = 0; c < channels; ++c) point.Add(dout[c * shown + at], dx + c * plane);
      });
    }
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Perspective<T> regions_;
};

}  // namespace

void RegisterRoiPerspectiveTransform(OpRegistry& ops) {
  ops.Add("roi_perspective_transform")
      .Doc("Transforms quadrilaterals of images into rectangles.", kDoc)
      .Input("X", "images, [images, channels, height, width]", Floats())
      .Input("ROIs", "[regions, 8], one sequence per image", SameTypeAs("X"))
      .Output("Out", "[regions, channels, transformed_height, transformed_width]", SameTypeAs("X"), Apart())
      .Output("Mask", "[regions, 1, transformed_height, transformed_width]: 1 inside the region, otherwise 0",
              Only(DType::kInt32), Apart())
      .Output("TransformMatrix", "[regions, 9]", SameTypeAs("X"), Apart())
      .Output("Out2InIdx", "no elements", Only(DType::kInt32), Intermediate() | Apart())
      .Output("Out2InWeights", "no elements", SameTypeAs("X"), Intermediate() | Apart())
      .Attr("spatial_scale", 1.0f, "the factor of the regions", Between(0, 1e6))
      .Attr("transformed_height", 1, "the number of rows of a region in Out", Between(1, 1 << 12))
      .Attr("transformed_width", 1, "the largest number of columns of a region in Out", Between(1, 1 << 12))
      .InferShape(InferPerspective)
      .Nan("a region with a NaN yields NaN in Out, 0 in Mask and no gradient.")
      .Kernel<Cpu, PerspectiveKernel, float, double>()
      .Grad({.reads = {"X", "ROIs"},
             .reads_outputs = {"Out2InIdx", "Out2InWeights"},
             .yields = {"X"},
             .of = {"Out"},
             .apart = {"X"}})
      .GradKernel<Cpu, PerspectiveGradKernel, float, double>();
}

}  // namespace penstock
