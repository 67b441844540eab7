// roi_align, psroi_pool, prroi_pool: means over the bins of regions of images.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/vision/rois.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Each region (x1, y1, x2, y2) is multiplied by spatial_scale and divided into pooled_height x pooled_width
bins. Each bin of each channel yields one element of Out. A region belongs to the image of its sequence.

roi_align:   the mean of sampling_ratio points along each axis (0 or less: as many as the bin has pixels),
             each interpolated bilinearly. A point more than a pixel outside the image is 0.
psroi_pool:  the mean of the pixels that the bin covers, after rounding the corners of the region. Bin (i, j)
             of channel c reads channel (c * pooled_height + i) * pooled_width + j of X.
prroi_pool:  the integral of the bilinear interpolation over the bin, divided by the area of the bin; pixels
             outside the image are 0. ROIs has a gradient, too.

He, Gkioxari, Dollar, Girshick: "Mask R-CNN", ICCV 2017. Dai, Li, He, Sun: "R-FCN", NIPS 2016. Jiang, Luo,
Mao, Xiao, Jiang: "Acquisition of localization confidence for accurate object detection", ECCV 2018.)";

constexpr double kMostPoints = 1 << 16;  // points of a bin along an axis

enum class RoiMean { kAlign, kPositions, kPrecise };

RoiMean RoiMeanOf(const std::string& type) {
  if (StartsWith(type, "roi_align")) return RoiMean::kAlign;
  return StartsWith(type, "psroi") ? RoiMean::kPositions : RoiMean::kPrecise;
}

template <typename T>
Status AlignTaps(const RoiAxis<T>& a, int sampling, Dim bin, RoiTaps<T>& taps) {
  const T begin = a.begin * a.scale, size = std::max(a.end * a.scale - begin, T{1});
  const T wide = size / static_cast<T>(a.bins);
  const T points = sampling > 0 ? static_cast<T>(sampling) : std::ceil(wide);
  if (!(static_cast<double>(points) <= kMostPoints)) {
    return InvalidArgument("E-op-value", "roi_align: a bin of ", points, " points along an axis; ",
                           kMostPoints, " is the most");
  }
  for (Dim i = 0; i < static_cast<Dim>(points); ++i) {
    T place = begin + static_cast<T>(bin) * wide + (static_cast<T>(i) + T{0.5}) * wide / points;
    if (place < T{-1} || place > static_cast<T>(a.extent)) continue;
    place = std::clamp(place, T{0}, static_cast<T>(a.extent - 1));
    const Dim low = static_cast<Dim>(place);
    const T above = place - static_cast<T>(low);
    taps.push_back({low, (1 - above) / points});
    if (low + 1 < a.extent) taps.push_back({low + 1, above / points});
  }
  return OkStatus();
}

template <typename T>
void PositionTaps(const RoiAxis<T>& a, Dim bin, RoiTaps<T>& taps) {
  const T begin = std::round(a.begin) * a.scale, end = (std::round(a.end) + 1) * a.scale;
  const T wide = std::max(end - begin, T(0.1)) / static_cast<T>(a.bins);
  const Dim first = PixelAt(std::floor(static_cast<T>(bin) * wide + begin), a.extent);
  const Dim last = PixelAt(std::ceil(static_cast<T>(bin + 1) * wide + begin), a.extent);
  for (Dim at = first; at < last; ++at) taps.push_back({at, T{1} / static_cast<T>(last - first)});
}

// Returns the integral, from minus infinity to t, of the tent function at pixel 0 (1 at 0, 0 at -1 and 1).
double TentIntegral(double t) {
  t = std::clamp(t, -1.0, 1.0);
  return t < 0 ? (t + 1) * (t + 1) / 2 : 1 - (1 - t) * (1 - t) / 2;
}
double Tent(double t) { return std::max(1 - std::abs(t), 0.0); }

// Double precision, because a weight is a small difference.
template <typename T>
void PreciseTaps(const RoiAxis<T>& a, Dim bin, RoiTaps<T>& taps) {
  const double scale = a.scale, begin = a.begin * scale, size = a.end * scale - begin;
  if (!(size > 0)) return;
  const double bins = static_cast<double>(a.bins), wide = size / bins;
  const double low = begin + static_cast<double>(bin) * wide, high = low + wide;
  const Dim first = PixelAt(std::floor(low), a.extent);
  const Dim last = std::min(PixelAt(std::ceil(high), a.extent) + 1, a.extent);
  // The derivatives of the bin's ends with respect to the region's: low = begin + bin / bins * (end - begin),
  // and high likewise with bin + 1.
  const double before = static_cast<double>(bin) / bins, behind = static_cast<double>(bin + 1) / bins;
  for (Dim at = first; at < last; ++at) {
    const double l = low - static_cast<double>(at), h = high - static_cast<double>(at);
    const double weight = (TentIntegral(h) - TentIntegral(l)) / wide;
    const double by_low = (weight - Tent(l)) / wide, by_high = (Tent(h) - weight) / wide;
    taps.push_back({at, static_cast<T>(weight),
                    static_cast<T>(scale * (by_low * (1 - before) + by_high * (1 - behind))),
                    static_cast<T>(scale * (by_low * before + by_high * behind))});
  }
}

// Shared by the kernels of all three ops: the regions, and the pixels and weights of the bins of each.
template <typename T>
class RoiBins {
 public:
  Status Prepare(const KernelSetup& k) {
    mean_ = RoiMeanOf(k.op().type());
    x_ = k.Input("X").shape;
    k.Bind(rois_);
    if (x_.rank() != 4) return k.Error("rank of X (", x_.rank(), ", shape ", x_, ") must be 4");
    PENSTOCK_RETURN_IF_ERROR(images_.Prepare(k, x_[0], 4, mean_ == RoiMean::kAlign ? "RoisLod" : nullptr,
                                             mean_ == RoiMean::kPrecise ? "BatchRoINums" : nullptr));
    high = k.Attr<std::int32_t>("pooled_height");
    wide = k.Attr<std::int32_t>("pooled_width");
    scale_ = static_cast<T>(k.Attr<float>("spatial_scale"));
    if (mean_ == RoiMean::kAlign) sampling_ = k.Attr<std::int32_t>("sampling_ratio");
    channels = mean_ == RoiMean::kPositions ? Dim{k.Attr<std::int32_t>("output_channels")} : x_[1];
    if (mean_ == RoiMean::kPositions && x_[1] != channels * high * wide)
      return k.Error("channels of X (", x_[1], ") must equal output_channels (", channels,
                     ") times pooled_height (", high, ") times pooled_width (", wide, ")");
    rows_.resize(static_cast<std::size_t>(high));
    columns_.resize(static_cast<std::size_t>(wide));
    return OkStatus();
  }
  Shape OutShape() const { return {images_.count(), channels, high, wide}; }
  Status Start(KernelRun& k) { return images_.Read(k); }
  Dim regions() const { return images_.count(); }

  // Computes the bins of a region. If the region contains a NaN, sets `bad` to a NaN and leaves the bins
  // without pixels.
  Status Find(KernelRun& k, Dim region, T& bad) {
    const T* const roi = std::as_const(k[rois_]).template Data<T>() + region * 4;
    bad = roi[0] + roi[1] + roi[2] + roi[3];
    for (int axis = 0; axis < 2; ++axis) {
      std::vector<RoiTaps<T>>& bins = axis == 0 ? columns_ : rows_;
      const RoiAxis<T> a = {roi[axis], roi[axis + 2], scale_, x_[3 - axis], static_cast<Dim>(bins.size())};
      for (std::size_t bin = 0; bin < bins.size(); ++bin) {
        bins[bin].clear();
        if (IsNan(bad) || a.extent == 0) continue;
        if (mean_ == RoiMean::kAlign) {
          PENSTOCK_RETURN_IF_ERROR(AlignTaps(a, sampling_, static_cast<Dim>(bin), bins[bin]));
        } else if (mean_ == RoiMean::kPositions) {
          PositionTaps(a, static_cast<Dim>(bin), bins[bin]);
        } else {
          PreciseTaps(a, static_cast<Dim>(bin), bins[bin]);
        }
      }
    }
    return OkStatus();
  }
  // Calls visit(element of X, row, column) for each pixel of bin (i, j) of channel c of that region.
  template <typename Visit>
  void ForEach(Dim region, Dim c, Dim i, Dim j, Visit visit) const {
    const Dim channel = mean_ == RoiMean::kPositions ? (c * high + i) * wide + j : c;
    const Dim plane = (images_.of(region) * x_[1] + channel) * x_[2] * x_[3];
    for (const RoiTap<T>& row : rows_[static_cast<std::size_t>(i)]) {
      for (const RoiTap<T>& column : columns_[static_cast<std::size_t>(j)])
        visit(plane + row.at * x_[3] + column.at, row, column);
    }
  }

  Dim channels = 0, high = 1, wide = 1;

 private:
  RoiMean mean_ = RoiMean::kAlign;
  Shape x_;
  In<"ROIs"> rois_;
  RoiImages images_;
  T scale_{1};
  int sampling_ = 0;
  std::vector<RoiTaps<T>> rows_, columns_;  // by bin
};

template <typename Device, typename T>
class RoiMeanKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return bins_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(bins_.Start(k));
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    for (Dim region = 0; region < bins_.regions(); ++region) {
      T bad{};
      PENSTOCK_RETURN_IF_ERROR(bins_.Find(k, region, bad));
      for (Dim c = 0; c < bins_.channels; ++c) {
        for (Dim i = 0; i < bins_.high; ++i) {
          for (Dim j = 0; j < bins_.wide; ++j) {
            double sum = IsNan(bad) ? bad : T{0};
            bins_.ForEach(region, c, i, j, [&](Dim at, const RoiTap<T>& row, const RoiTap<T>& column) {
              sum += double{row.weight} * column.weight * x[at];
            });
            *out++ = static_cast<T>(sum);
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  RoiBins<T> bins_;
};

template <typename Device, typename T>
class RoiMeanGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dout_, dx_, drois_);
    PENSTOCK_RETURN_IF_ERROR(bins_.Prepare(k));
    return RequireShape(k, "Out@GRAD", bins_.OutShape());
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(bins_.Start(k));
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* drois = drois_ ? k[drois_].template Data<T>() : nullptr;
    if (dx != nullptr) std::ranges::fill(k[dx_].template Span<T>(), T{0});
    for (Dim region = 0; region < bins_.regions(); ++region) {
      T bad{};
      PENSTOCK_RETURN_IF_ERROR(bins_.Find(k, region, bad));
      T of_region[4] = {};
      for (Dim c = 0; c < bins_.channels; ++c) {
        for (Dim i = 0; i < bins_.high; ++i) {
          for (Dim j = 0; j < bins_.wide; ++j, ++dout) {
            bins_.ForEach(region, c, i, j, [&](Dim at, const RoiTap<T>& row, const RoiTap<T>& column) {
              if (dx != nullptr) dx[at] += *dout * row.weight * column.weight;
              const T d = *dout * x[at];
              of_region[0] += d * row.weight * column.by_begin;
              of_region[1] += d * row.by_begin * column.weight;
              of_region[2] += d * row.weight * column.by_end;
              of_region[3] += d * row.by_end * column.weight;
            });
          }
        }
      }
      if (drois == nullptr) continue;
      for (const T d : of_region) *drois++ = IsNan(bad) ? bad : d;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"ROIs@GRAD"> drois_;
  RoiBins<T> bins_;
};

Status InferRoiMean(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 4));
  if (!StartsWith(c.op().type(), "psroi")) return InferRois(c, "X", "Out", x[1]);
  const Dim channels = c.Attr<std::int32_t>("output_channels");
  const Dim wanted = channels * c.Attr<std::int32_t>("pooled_height") * c.Attr<std::int32_t>("pooled_width");
  if (!Compatible(x[1], wanted))
    return c.Error("channels of X (", x[1],
                   ") must equal output_channels times pooled_height times pooled_width (", wanted, ")");
  return InferRois(c, "X", "Out", channels);
}

OpDef& AddRoiMean(OpRegistry& ops, const char* type, const char* summary) {
  return ops.Add(type)
      .Doc(summary, kDoc)
      .Input("X", "images, [images, channels, height, width]", Floats())
      .Input("ROIs", "[regions, 4], one sequence per image", SameTypeAs("X"))
      .Output("Out", "[regions, channels, pooled_height, pooled_width]", SameTypeAs("X"), Apart())
      .Attr("spatial_scale", 1.0f, "the factor of the regions", Between(0, 1e6))
      .Attr("pooled_height", 1, "the number of bins along the height", Between(1, 1 << 12))
      .Attr("pooled_width", 1, "the number of bins along the width", Between(1, 1 << 12))
      .Nan("a region with a NaN yields NaN and adds nothing to the gradient of X; other NaN propagate.")
      .InferShape(InferRoiMean)
      .KernelTypeFrom("X")
      .Kernel<Cpu, RoiMeanKernel, float, double>();
}

}  // namespace

void RegisterRoiMeans(OpRegistry& ops) {
  AddRoiMean(ops, "roi_align", "The mean of sampled points in each bin of regions.")
      .Input("RoisLod", "images + 1 offsets; replaces the sequences of ROIs", Only(DType::kInt64), Optional())
      .Attr("sampling_ratio", -1, "the number of points of a bin along each axis", AtMost(1 << 12))
      .Grad({.reads = {"X", "ROIs", "RoisLod"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, RoiMeanGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
  AddRoiMean(ops, "psroi_pool", "The mean of each bin of regions, where each bin reads its own channel.")
      .RequiredAttr("output_channels", AttrKind::kInt, "the number of channels of Out", Between(1, 1 << 20))
      .Grad({.reads = {"X", "ROIs"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, RoiMeanGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
  AddRoiMean(ops, "prroi_pool", "The integral over each bin of regions, divided by its area.")
      .Input("BatchRoINums", "the number of regions of each image; replaces the sequences of ROIs",
             Only(DType::kInt64), Optional())
      .Grad({.reads = {"X", "ROIs", "BatchRoINums"},
             .reads_outputs = {"Out"},
             .yields = {"X", "ROIs"},
             .apart = {"X", "ROIs"}})
      .GradKernel<Cpu, RoiMeanGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
}

}  // namespace penstock
