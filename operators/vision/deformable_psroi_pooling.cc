// deformable_psroi_pooling: means over the bins of regions, each bin shifted by its own offset.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/vision/rois.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
A region (x1, y1, x2, y2) extends from round(x1) * spatial_scale - 0.5 to
(round(x2) + 1) * spatial_scale - 0.5, likewise for y, and is divided into pooled_height x pooled_width bins.
An element of Output is the mean of sample_per_part x sample_per_part points of its bin, each interpolated
bilinearly. Points more than half a pixel outside the image are excluded. TopCount is the number of points
included. Bin (i, j) of channel c reads channel (c * group_size[0] + g) * group_size[1] + h of Input, where
(g, h) is the bin's part if the region is divided into group_size parts.

Unless no_trans is set, a bin is shifted by Trans * trans_std times the region's width and height. Trans is
[regions, 2 * classes, part_size[0], part_size[1]], x before y; the channels of Output are divided among the
classes.

Dai et al.: "Deformable convolutional networks", ICCV 2017.)";

using Ints = std::vector<std::int32_t>;

template <typename T>
struct DeformedAxis {
  T begin{}, size{}, wide{}, step{};  // the region, its size, the size of a bin, the distance between points
};

// The points of a bin along an axis: their number, and the pixels around them.
template <typename T>
struct Points {
  Dim count = 0;
  RoiTaps<T> taps;  // by_begin is the derivative with respect to the shift
};

template <typename T>
class DeformedBins {
 public:
  Status Prepare(const KernelSetup& k) {
    x_ = k.Input("Input").shape;
    k.Bind(rois_);
    if (x_.rank() != 4) return k.Error("rank of Input (", x_.rank(), ", shape ", x_, ") must be 4");
    PENSTOCK_RETURN_IF_ERROR(images.Prepare(k, x_[0], 4, nullptr, nullptr));
    channels = k.Attr<std::int32_t>("output_dim");
    high = k.Attr<std::int32_t>("pooled_height");
    wide = k.Attr<std::int32_t>("pooled_width");
    samples_ = k.Attr<std::int32_t>("sample_per_part");
    scale_ = static_cast<T>(k.Attr<float>("spatial_scale"));
    trans_std_ = static_cast<T>(k.Attr<float>("trans_std"));
    group_ = k.Attr<Ints>("group_size");
    part_ = k.Attr<Ints>("part_size");
    if (group_.size() != 2 || part_.size() != 2)
      return k.Error("group_size and part_size must have 2 values, not ", group_.size(), " and ",
                     part_.size());
    if (x_[1] != channels * group_[0] * group_[1])
      return k.Error("channels of Input (", x_[1], ") must equal output_dim (", channels,
                     ") times group_size (", group_[0], ", ", group_[1], ")");
    if (!k.Attr<bool>("no_trans")) PENSTOCK_RETURN_IF_ERROR(PrepareTrans(k));
    return OkStatus();
  }
  Shape OutShape() const { return {images.count(), channels, high, wide}; }
  bool has_trans() const { return static_cast<bool>(trans_); }

  // The region whose bins are computed next. `bad`: a NaN if the region has one.
  T Start(KernelRun& k, Dim region) {
    const T* const roi = std::as_const(k[rois_]).template Data<T>() + region * 4;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      DeformedAxis<T>& a = axes_[axis];
      const T half{0.5};
      a.begin = std::round(roi[axis]) * scale_ - half;
      a.size = std::max((std::round(roi[axis + 2]) + 1) * scale_ - half - a.begin, T(0.1));
      a.wide = a.size / static_cast<T>(axis == 0 ? wide : high);
      a.step = a.wide / static_cast<T>(samples_);
    }
    region_ = region;
    return roi[0] + roi[1] + roi[2] + roi[3];
  }
  // Returns the index of a bin's shift in x in Trans; the shift in y is part_count() after it.
  Dim TransAt(Dim c, Dim i, Dim j) const {
    const Dim row = i * part_[0] / high, column = j * part_[1] / wide;
    return ((region_ * classes_ + c / class_channels_) * 2 * part_[0] + row) * part_[1] + column;
  }
  Dim part_count() const { return Dim{part_[0]} * part_[1]; }
  // Computes the points of bin (i, j) of channel c; there are none if one of its shifts is NaN.
  T Find(KernelRun& k, Dim c, Dim i, Dim j) {
    T shift[2] = {};
    if (trans_) {
      const T* const trans = std::as_const(k[trans_]).template Data<T>() + TransAt(c, i, j);
      shift[0] = trans[0] * trans_std_;
      shift[1] = trans[part_count()] * trans_std_;
    }
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const DeformedAxis<T>& a = axes_[axis];
      const T begin = static_cast<T>(axis == 0 ? j : i) * a.wide + a.begin + shift[axis] * a.size;
      Place(begin, a, x_[3 - static_cast<int>(axis)], points_[axis]);
    }
    return shift[0] + shift[1];
  }
  Dim count() const { return points_[0].count * points_[1].count; }
  // Calls visit(element of Input, weight, derivatives with respect to the shifts in x and y).
  template <typename Visit>
  void ForEach(Dim c, Dim i, Dim j, Visit visit) const {
    const Dim g = i * group_[0] / high, h = j * group_[1] / wide;
    const Dim channel = (c * group_[0] + g) * group_[1] + h;
    const Dim plane = (images.of(region_) * x_[1] + channel) * x_[2] * x_[3];
    const T total = static_cast<T>(count());
    for (const RoiTap<T>& row : points_[1].taps) {
      for (const RoiTap<T>& column : points_[0].taps) {
        visit(plane + row.at * x_[3] + column.at, row.weight * column.weight / total,
              row.weight * column.by_begin / total * trans_std_ * axes_[0].size,
              row.by_begin * column.weight / total * trans_std_ * axes_[1].size);
      }
    }
  }

  Dim channels = 0, high = 1, wide = 1;
  RoiImages images;

 private:
  Status PrepareTrans(const KernelSetup& k) {
    k.Bind(trans_);
    const Shape& shape = k[trans_].shape;
    if (shape.rank() != 4 || shape[0] != k[rois_].shape[0] || shape[1] < 2 || shape[1] % 2 != 0 ||
        shape[2] != part_[0] || shape[3] != part_[1])
      return k.Error("shape of Trans (", shape, ") must be [", k[rois_].shape[0], ", 2 * classes, ", part_[0],
                     ", ", part_[1], "]");
    classes_ = shape[1] / 2;
    if (channels % classes_ != 0)
      return k.Error("output_dim (", channels, ") must be divisible by the classes of Trans (", classes_,
                     ")");
    class_channels_ = channels / classes_;
    return OkStatus();
  }
  void Place(T begin, const DeformedAxis<T>& a, Dim extent, Points<T>& points) const {
    points.count = 0;
    points.taps.clear();
    if (extent == 0) return;
    const T half{0.5}, last = static_cast<T>(extent - 1);
    for (Dim s = 0; s < samples_; ++s) {
      const T place = begin + static_cast<T>(s) * a.step;
      if (!(place >= -half && place <= last + half)) continue;
      ++points.count;
      const T inside = std::clamp(place, T{0}, last);
      const Dim low = static_cast<Dim>(inside);
      const T above = inside - static_cast<T>(low);
      const T slope = above > 0 ? T{1} : T{0};
      points.taps.push_back({low, 1 - above, -slope, T{0}});
      if (above > 0) points.taps.push_back({low + 1, above, slope, T{0}});
    }
  }

  Shape x_;
  In<"ROIs"> rois_;
  In<"Trans"> trans_;
  Ints group_, part_;
  Dim samples_ = 1, classes_ = 1, class_channels_ = 1, region_ = 0;
  T scale_{1}, trans_std_{};
  DeformedAxis<T> axes_[2];  // x and y
  Points<T> points_[2];
};

template <typename Device, typename T>
class DeformableRoiKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, count_);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "TopCount"));
    return bins_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(bins_.images.Read(k));
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    T* count = k[count_].template Data<T>();
    for (Dim region = 0; region < bins_.images.count(); ++region) {
      const T bad = bins_.Start(k, region);
      for (Dim c = 0; c < bins_.channels; ++c) {
        for (Dim i = 0; i < bins_.high; ++i) {
          for (Dim j = 0; j < bins_.wide; ++j) {
            const T shift = bins_.Find(k, c, i, j) + bad;
            T sum = IsNan(shift) ? shift : T{0};
            bins_.ForEach(c, i, j, [&](Dim at, T weight, T, T) { sum += weight * x[at]; });
            *count++ = static_cast<T>(bins_.count());
            *out++ = sum;
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  In<"Input"> x_;
  Out<"Output"> out_;
  Out<"TopCount"> count_;
  DeformedBins<T> bins_;
};

template <typename Device, typename T>
class DeformableRoiGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dout_, dx_, dtrans_);
    PENSTOCK_RETURN_IF_ERROR(bins_.Prepare(k));
    return RequireShape(k, "Output@GRAD", bins_.OutShape());
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(bins_.images.Read(k));
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    for (const Operand cleared : std::initializer_list<Operand>{dx_, dtrans_}) {
      if (cleared) std::ranges::fill(k[cleared].template Span<T>(), T{0});
    }
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dtrans = dtrans_ && bins_.has_trans() ? k[dtrans_].template Data<T>() : nullptr;
    for (Dim region = 0; region < bins_.images.count(); ++region) {
      bins_.Start(k, region);
      for (Dim c = 0; c < bins_.channels; ++c) {
        for (Dim i = 0; i < bins_.high; ++i) {
          for (Dim j = 0; j < bins_.wide; ++j, ++dout) {
            bins_.Find(k, c, i, j);
            const Dim at_trans = dtrans == nullptr ? 0 : bins_.TransAt(c, i, j);
            bins_.ForEach(c, i, j, [&](Dim at, T weight, T by_x, T by_y) {
              if (dx != nullptr) dx[at] += *dout * weight;
              if (dtrans == nullptr) return;
              dtrans[at_trans] += *dout * x[at] * by_x;
              dtrans[at_trans + bins_.part_count()] += *dout * x[at] * by_y;
            });
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  In<"Input"> x_;
  In<"Output@GRAD"> dout_;
  Out<"Input@GRAD"> dx_;
  Out<"Trans@GRAD"> dtrans_;
  DeformedBins<T> bins_;
};

Status InferDeformableRoi(InferContext& c) {
  const Dim channels = c.Attr<std::int32_t>("output_dim");
  PENSTOCK_RETURN_IF_ERROR(InferRois(c, "Input", "TopCount", channels));
  return InferRois(c, "Input", "Output", channels);
}

}  // namespace

void RegisterDeformablePsroiPooling(OpRegistry& ops) {
  ops.Add("deformable_psroi_pooling")
      .Doc("The means of the bins of regions, each bin shifted by a learned offset.", kDoc)
      .Input("Input", "images, [images, channels, height, width]", Floats())
      .Input("ROIs", "[regions, 4], one sequence per image", SameTypeAs("Input"))
      .Input("Trans", "the shifts; not read if no_trans is set", SameTypeAs("Input"))
      .Output("TopCount", "the number of points included in each bin", SameTypeAs("Input"), Apart())
      .Output("Output", "[regions, output_dim, pooled_height, pooled_width]", SameTypeAs("Input"), Apart())
      .RequiredAttr("no_trans", AttrKind::kBool, "whether bins are not shifted")
      .RequiredAttr("spatial_scale", AttrKind::kFloat, "the factor of the regions", Between(0, 1e6))
      .RequiredAttr("output_dim", AttrKind::kInt, "the number of channels of Output", Between(1, 1 << 20))
      .RequiredAttr("group_size", AttrKind::kInts,
                    "the number of parts of a region that have separate channels: height, width",
                    Between(1, 1 << 10))
      .RequiredAttr("pooled_height", AttrKind::kInt, "the number of bins along the height",
                    Between(1, 1 << 12))
      .RequiredAttr("pooled_width", AttrKind::kInt, "the number of bins along the width", Between(1, 1 << 12))
      .RequiredAttr("part_size", AttrKind::kInts,
                    "the number of parts of a region that have separate shifts: height, width",
                    Between(1, 1 << 10))
      .RequiredAttr("sample_per_part", AttrKind::kInt, "the number of points of a bin along each axis",
                    Between(1, 1 << 10))
      .RequiredAttr("trans_std", AttrKind::kFloat, "the factor of the shifts")
      .Nan("a bin whose region or shift contains a NaN is NaN and has no gradient.")
      .InferShape(InferDeformableRoi)
      .Kernel<Cpu, DeformableRoiKernel, float, double>()
      .Grad({.reads = {"Input", "ROIs", "Trans"},
             .reads_outputs = {"TopCount"},
             .yields = {"Input", "Trans"},
             .of = {"Output"},
             .apart = {"Input", "Trans"}})
      .GradKernel<Cpu, DeformableRoiGradKernel, float, double>();
}

}  // namespace penstock
