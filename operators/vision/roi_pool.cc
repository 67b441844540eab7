// roi_pool: the largest element of each bin of regions of images.
#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/vision/rois.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Each region (x1, y1, x2, y2) is multiplied by spatial_scale, rounded, and divided into pooled_height x
pooled_width bins. Out is the largest pixel that a bin covers, and Argmax its index in its plane of X. An
empty bin is 0 with Argmax -1. A region belongs to the image of its sequence. The gradient goes to the largest
pixels.

Girshick: "Fast R-CNN", ICCV 2015.)";

Status InferRoiPool(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 4));
  PENSTOCK_RETURN_IF_ERROR(InferRois(c, "X", "Argmax", c.ShapeOf("X")[1]));
  return InferRois(c, "X", "Out", c.ShapeOf("X")[1]);
}

// The pixels of a bin along an axis.
template <typename T>
std::pair<Dim, Dim> PixelsOfBin(const RoiAxis<T>& a, Dim bin) {
  const T begin = std::round(a.begin * a.scale), end = std::round(a.end * a.scale);
  const T wide = std::max(end - begin + 1, T{1}) / static_cast<T>(a.bins);
  return {PixelAt(std::floor(static_cast<T>(bin) * wide) + begin, a.extent),
          PixelAt(std::ceil(static_cast<T>(bin + 1) * wide) + begin, a.extent)};
}

template <typename Device, typename T>
class RoiPoolKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, rois_, out_, argmax_);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "Argmax"));
    high_ = k.Attr<std::int32_t>("pooled_height");
    wide_ = k.Attr<std::int32_t>("pooled_width");
    scale_ = static_cast<T>(k.Attr<float>("spatial_scale"));
    return images_.Prepare(k, k[x_].shape[0], 4, "RoisLod", nullptr);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(images_.Read(k));
    const T* roi = std::as_const(k[rois_]).template Data<T>();
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    std::int64_t* argmax = k[argmax_].template Data<std::int64_t>();
    const Dim wide = k[x_].shape()[3], plane = k[x_].shape()[2] * wide;
    for (Dim region = 0; region < images_.count(); ++region, roi += 4) {
      const T bad = roi[0] + roi[1] + roi[2] + roi[3];
      const RoiAxis<T> rows = {roi[1], roi[3], scale_, k[x_].shape()[2], high_};
      const RoiAxis<T> columns = {roi[0], roi[2], scale_, wide, wide_};
      for (Dim c = 0; c < k[x_].shape()[1]; ++c) {
        const T* const from = x + (images_.of(region) * k[x_].shape()[1] + c) * plane;
        for (Dim i = 0; i < high_; ++i) {
          for (Dim j = 0; j < wide_; ++j, ++out, ++argmax) {
            *argmax = IsNan(bad) ? -1 : Largest(from, wide, PixelsOfBin(rows, i), PixelsOfBin(columns, j));
            *out = *argmax >= 0 ? from[*argmax] : IsNan(bad) ? bad : T{0};
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  Dim Largest(const T* plane, Dim wide, std::pair<Dim, Dim> rows, std::pair<Dim, Dim> columns) const {
    Dim largest = -1;
    for (Dim i = rows.first; i < rows.second; ++i) {
      for (Dim j = columns.first; j < columns.second; ++j) {
        const Dim at = i * wide + j;
        if (IsNan(plane[at])) return at;
        if (largest < 0 || plane[at] > plane[largest]) largest = at;
      }
    }
    return largest;
  }

  In<"X"> x_;
  In<"ROIs"> rois_;
  Out<"Out"> out_;
  Out<"Argmax"> argmax_;
  RoiImages images_;
  Dim high_ = 1, wide_ = 1;
  T scale_{1};
};

template <typename Device, typename T>
class RoiPoolGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(argmax_, dout_, dx_);
    x_ = k.Input("X").shape;
    if (x_.rank() != 4) return k.Error("rank of X (", x_.rank(), ", shape ", x_, ") must be 4");
    PENSTOCK_RETURN_IF_ERROR(images_.Prepare(k, x_[0], 4, "RoisLod", nullptr));
    bins_ = Dim{k.Attr<std::int32_t>("pooled_height")} * k.Attr<std::int32_t>("pooled_width");
    const Shape out = {k.Input("ROIs").shape[0], x_[1], k.Attr<std::int32_t>("pooled_height"),
                       k.Attr<std::int32_t>("pooled_width")};
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Argmax", out));
    return RequireShape(k, "Out@GRAD", out);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(images_.Read(k));
    const std::int64_t* argmax = std::as_const(k[argmax_]).template Data<std::int64_t>();
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    const Dim plane = x_[2] * x_[3];
    for (Dim region = 0; region < images_.count(); ++region) {
      for (Dim c = 0; c < x_[1]; ++c) {
        T* const to = dx + (images_.of(region) * x_[1] + c) * plane;
        for (Dim bin = 0; bin < bins_; ++bin, ++argmax, ++dout) {
          if (*argmax >= plane)
            return InvalidArgument("E-op-index", "roi_pool_grad: Argmax holds ", *argmax,
                                   "; a plane of X has ", plane, " elements");
          if (*argmax >= 0) to[*argmax] += *dout;
        }
      }
    }
    return OkStatus();
  }

 private:
  In<"Argmax"> argmax_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Shape x_;
  RoiImages images_;
  Dim bins_ = 1;
};

}  // namespace

void RegisterRoiPool(OpRegistry& ops) {
  ops.Add("roi_pool")
      .Doc("The maximum of each bin of regions.", kDoc)
      .Input("X", "images, [images, channels, height, width]", Floats())
      .Input("ROIs", "[regions, 4], one sequence per image", SameTypeAs("X"))
      .Input("RoisLod", "images + 1 offsets; replaces the sequences of ROIs", Only(DType::kInt64), Optional())
      .Output("Out", "[regions, channels, pooled_height, pooled_width]", SameTypeAs("X"), Apart())
      .Output("Argmax", "the index of the maximum in its plane of X", Only(DType::kInt64), Intermediate())
      .Attr("spatial_scale", 1.0f, "the factor of the regions", Between(0, 1e6))
      .Attr("pooled_height", 1, "the number of bins along the height", Between(1, 1 << 12))
      .Attr("pooled_width", 1, "the number of bins along the width", Between(1, 1 << 12))
      .Nan("a region with a NaN yields NaN; the maximum of a bin with a NaN is its first NaN.")
      .InferShape(InferRoiPool)
      .KernelTypeFrom("X")
      .Kernel<Cpu, RoiPoolKernel, float, double>()
      .Grad({.reads = {"X", "ROIs", "RoisLod"}, .reads_outputs = {"Argmax"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, RoiPoolGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
}

}  // namespace penstock
