// deformable_conv and deformable_conv_v1: convolution whose windows read X at learned offsets.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/gemm.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/vision/bilinear.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Output[n, o, y, x] = sum over c, i, j of Filter[o, c, i, j] * Mask[n, t, y, x] * Input[n, c] at position
    (y * stride - padding + i * dilation + Offset[n, 2 * t, y, x], the same for x and j with 2 * t + 1)

where t = (deformable group of c) * height * width + i * width + j, with the height and width of the filter.
Between pixels, Input is interpolated bilinearly; pixels outside it are 0. deformable_conv_v1 has no Mask, as
if it were 1. Channels and filters are divided into `groups`, and a filter reads only the channels of its
group; for Offset and Mask, channels are divided into `deformable_groups`. A position that is NaN reads
nothing, and its offset has no gradient.

Dai et al.: "Deformable convolutional networks", ICCV 2017. Zhu, Hu, Lin, Dai: "Deformable ConvNets v2", CVPR
2019.)";

using Ints = std::vector<std::int32_t>;

struct DeformAxis {
  Dim in = 0, out = 0, kernel = 1, stride = 1, padding = 0, dilation = 1;
};

struct DeformSetup {
  DeformAxis rows, columns;
  Dim images = 0, channels = 0, filters = 0, groups = 1, deformable_groups = 1;
  Dim taps() const { return rows.kernel * columns.kernel; }
  Dim windows() const { return rows.out * columns.out; }
  Dim plane() const { return rows.in * columns.in; }
  // The number of rows of the matrix of a group's columns.
  Dim group_rows() const { return channels / groups * taps(); }

  template <typename Context>
  Status Prepare(const Context& c, const Shape& x, const Shape& filter) {
    if (x.rank() != 4) return c.Error("rank of Input (", x.rank(), ", shape ", x, ") must be 4");
    if (filter.rank() != 4)
      return c.Error("rank of Filter (", filter.rank(), ", shape ", filter, ") must be 4");
    const Ints strides = c.template Attr<Ints>("strides"), paddings = c.template Attr<Ints>("paddings");
    const Ints dilations = c.template Attr<Ints>("dilations");
    if (strides.size() != 2 || paddings.size() != 2 || dilations.size() != 2)
      return c.Error("strides, paddings and dilations must have 2 values, not ", strides.size(), ", ",
                     paddings.size(), " and ", dilations.size());
    images = x[0];
    channels = x[1];
    filters = filter[0];
    groups = c.template Attr<std::int32_t>("groups");
    deformable_groups = c.template Attr<std::int32_t>("deformable_groups");
    if (!Compatible(channels, filter[1] == kUnknownDim ? kUnknownDim : filter[1] * groups))
      return c.Error("channels of Input (", channels, ") must equal channels of Filter (", filter[1],
                     ") times groups (", groups, ")");
    if (filters != kUnknownDim && filters % groups != 0)
      return c.Error("filters (", filters, ") must be divisible by groups (", groups, ")");
    if (channels != kUnknownDim && channels % deformable_groups != 0)
      return c.Error("channels of Input (", channels, ") must be divisible by deformable_groups (",
                     deformable_groups, ")");
    for (int axis = 0; axis < 2; ++axis) {
      const std::size_t at = static_cast<std::size_t>(axis);
      DeformAxis& a = axis == 0 ? rows : columns;
      a = {x[2 + axis], kUnknownDim, filter[2 + axis], strides[at], paddings[at], dilations[at]};
      if (a.in == kUnknownDim || a.kernel == kUnknownDim) continue;
      const Dim room = a.in + 2 * a.padding - a.dilation * (a.kernel - 1) - 1;
      if (room < 0)
        return c.Error("a window of ", a.dilation * (a.kernel - 1) + 1, " does not fit into ", a.in,
                       " with padding ", a.padding, " on both sides");
      a.out = room / a.stride + 1;
    }
    return OkStatus();
  }

  // Calls visit(window, tap, first channel, end of channels, y, x) for each position of an image. `tap`
  // counts over the deformable groups. `offset` is the image's.
  template <typename T, typename Visit>
  void ForEachPlace(const T* offset, Visit visit) const {
    const Dim wide = channels / deformable_groups;
    for (Dim tap = 0; tap < deformable_groups * taps(); ++tap) {
      const Dim group = tap / taps(), i = tap % taps() / columns.kernel, j = tap % columns.kernel;
      for (Dim window = 0; window < windows(); ++window) {
        const Dim y = window / columns.out * rows.stride - rows.padding + i * rows.dilation;
        const Dim x = window % columns.out * columns.stride - columns.padding + j * columns.dilation;
        visit(window, tap, group * wide, (group + 1) * wide,
              static_cast<T>(y) + offset[2 * tap * windows() + window],
              static_cast<T>(x) + offset[(2 * tap + 1) * windows() + window]);
      }
    }
  }
};

Status InferDeformableConv(InferContext& c) {
  DeformSetup s;
  const Shape& x = c.ShapeOf("Input");
  PENSTOCK_RETURN_IF_ERROR(s.Prepare(c, x, c.ShapeOf("Filter")));
  const bool known = s.rows.kernel != kUnknownDim && s.columns.kernel != kUnknownDim;
  const Dim taps = known ? s.deformable_groups * s.taps() : kUnknownDim;
  const Shape offset = {x[0], known ? 2 * taps : taps, s.rows.out, s.columns.out};
  if (!Compatible(c.ShapeOf("Offset"), offset))
    return c.Error("shape of Offset (", c.ShapeOf("Offset"), ") must be ", offset);
  const Shape mask = {x[0], taps, s.rows.out, s.columns.out};
  if (c.HasInput("Mask") && !Compatible(c.ShapeOf("Mask"), mask))
    return c.Error("shape of Mask (", c.ShapeOf("Mask"), ") must be ", mask);
  return c.SetShape("Output", {x[0], s.filters, s.rows.out, s.columns.out});
}

// Shared by both kernels: the arguments, and the columns of one image.
template <typename T>
class DeformableBase : public Kernel {
 protected:
  Status PrepareBase(KernelSetup& k) {
    k.Bind(x_, offset_, mask_, filter_);
    threads_ = k.threads();
    PENSTOCK_RETURN_IF_ERROR(s_.Prepare(k, k[x_].shape, k[filter_].shape));
    const Dim taps = s_.deformable_groups * s_.taps();
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Offset", {s_.images, 2 * taps, s_.rows.out, s_.columns.out}));
    if (mask_)
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Mask", {s_.images, taps, s_.rows.out, s_.columns.out}));
    Dim bytes = static_cast<Dim>(sizeof(T));
    for (const Dim extent : {s_.channels, s_.taps(), s_.windows()}) {
      if (__builtin_mul_overflow(bytes, std::max<Dim>(extent, 1), &bytes) || bytes > Dim{1} << 40)
        return k.Error("the windows of an image of Input (", k[x_].shape, ") are too large");
    }
    columns_ = k.Workspace(static_cast<std::size_t>(bytes));
    return OkStatus();
  }

  const T* OffsetsOf(KernelRun& k, Dim image) const {
    return std::as_const(k[offset_]).template Data<T>() +
           image * 2 * s_.deformable_groups * s_.taps() * s_.windows();
  }
  Dim MaskSize() const { return s_.deformable_groups * s_.taps() * s_.windows(); }
  const T* MaskOf(KernelRun& k, Dim image) const {
    return mask_ ? std::as_const(k[mask_]).template Data<T>() + image * MaskSize() : nullptr;
  }
  Dim ColumnAt(Dim channel, Dim tap, Dim window) const {
    return (channel * s_.taps() + tap % s_.taps()) * s_.windows() + window;
  }
  // The pixels of an image at the sampled positions, times the mask.
  void FillColumns(KernelRun& k, Dim image, T* columns) const {
    const T* const x = std::as_const(k[x_]).template Data<T>() + image * s_.channels * s_.plane();
    const T* const mask = MaskOf(k, image);
    s_.ForEachPlace(OffsetsOf(k, image), [&](Dim window, Dim tap, Dim first, Dim end, T y, T x_place) {
      const BilinearPoint<T> point(y, x_place, s_.rows.in, s_.columns.in);
      const T factor = mask == nullptr ? T{1} : mask[tap * s_.windows() + window];
      for (Dim c = first; c < end; ++c)
        columns[ColumnAt(c, tap, window)] = point.Of(x + c * s_.plane()) * factor;
    });
  }
  MatrixView<const T> FilterOf(KernelRun& k, Dim group) const {
    const Dim wide = s_.filters / s_.groups;
    return RowMajor(std::as_const(k[filter_]).template Data<T>() + group * wide * s_.group_rows(), wide,
                    s_.group_rows());
  }

  In<"Input"> x_;
  In<"Offset"> offset_;
  In<"Mask"> mask_;
  In<"Filter"> filter_;
  DeformSetup s_;
  WorkspaceId columns_;
  int threads_ = 1;
};

template <typename Device, typename T>
class DeformableConvKernel : public DeformableBase<T> {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    return this->PrepareBase(k);
  }
  Status Run(KernelRun& k) override {
    const DeformSetup& s = this->s_;
    T* const columns = reinterpret_cast<T*>(k.Workspace(this->columns_));
    T* out = k[out_].template Data<T>();
    const Dim wide = s.filters / s.groups;
    for (Dim image = 0; image < s.images; ++image) {
      this->FillColumns(k, image, columns);
      for (Dim group = 0; group < s.groups; ++group, out += wide * s.windows()) {
        const T* const part = columns + group * s.group_rows() * s.windows();
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(this->FilterOf(k, group),
                                         RowMajor(part, s.group_rows(), s.windows()),
                                         RowMajor(out, wide, s.windows()), {.threads = this->threads_}));
      }
    }
    return OkStatus();
  }

 private:
  Out<"Output"> out_;
};

template <typename Device, typename T>
class DeformableConvGradKernel : public DeformableBase<T> {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_, doffset_, dmask_, dfilter_);
    PENSTOCK_RETURN_IF_ERROR(this->PrepareBase(k));
    const DeformSetup& s = this->s_;
    return RequireShape(k, "Output@GRAD", {s.images, s.filters, s.rows.out, s.columns.out});
  }
  Status Run(KernelRun& k) override {
    const DeformSetup& s = this->s_;
    T* const columns = reinterpret_cast<T*>(k.Workspace(this->columns_));
    for (const Operand cleared : std::initializer_list<Operand>{dx_, doffset_, dmask_, dfilter_}) {
      if (cleared) std::ranges::fill(k[cleared].template Span<T>(), T{0});
    }
    for (Dim image = 0; image < s.images; ++image) {
      if (dfilter_) PENSTOCK_RETURN_IF_ERROR(AddToFilter(k, image, columns));
      if (!dx_ && !doffset_ && !dmask_) continue;
      for (Dim group = 0; group < s.groups; ++group) {
        T* const part = columns + group * s.group_rows() * s.windows();
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(this->FilterOf(k, group)), GradOf(k, image, group),
                                         RowMajor(part, s.group_rows(), s.windows()),
                                         {.threads = this->threads_}));
      }
      Spread(k, image, columns);
    }
    return OkStatus();
  }

 private:
  MatrixView<const T> GradOf(KernelRun& k, Dim image, Dim group) const {
    const DeformSetup& s = this->s_;
    const Dim wide = s.filters / s.groups;
    return RowMajor(
        std::as_const(k[dout_]).template Data<T>() + (image * s.filters + group * wide) * s.windows(), wide,
        s.windows());
  }
  Status AddToFilter(KernelRun& k, Dim image, T* columns) const {
    const DeformSetup& s = this->s_;
    const Dim wide = s.filters / s.groups;
    this->FillColumns(k, image, columns);
    for (Dim group = 0; group < s.groups; ++group) {
      const T* const part = columns + group * s.group_rows() * s.windows();
      T* const to = k[dfilter_].template Data<T>() + group * wide * s.group_rows();
      PENSTOCK_RETURN_IF_ERROR(
          Gemm<T>(GradOf(k, image, group), Transposed(RowMajor(part, s.group_rows(), s.windows())),
                  RowMajor(to, wide, s.group_rows()), {.add = true, .threads = this->threads_}));
    }
    return OkStatus();
  }
  // Propagates the gradients of an image's columns to Input, Offset and Mask.
  void Spread(KernelRun& k, Dim image, const T* columns) const {
    const DeformSetup& s = this->s_;
    const T* const x = std::as_const(k[this->x_]).template Data<T>() + image * s.channels * s.plane();
    T* const dx = dx_ ? k[dx_].template Data<T>() + image * s.channels * s.plane() : nullptr;
    T* const doffset = doffset_ ? k[doffset_].template Data<T>() + image * 2 * this->MaskSize() : nullptr;
    T* const dmask = dmask_ ? k[dmask_].template Data<T>() + image * this->MaskSize() : nullptr;
    const T* const mask = this->MaskOf(k, image);
    s.ForEachPlace(this->OffsetsOf(k, image), [&](Dim window, Dim tap, Dim first, Dim end, T y, T x_place) {
      const BilinearPoint<T> point(y, x_place, s.rows.in, s.columns.in);
      const Dim at = tap * s.windows() + window;
      const T factor = mask == nullptr ? T{1} : mask[at];
      T by_y{}, by_x{}, by_mask{};
      for (Dim c = first; c < end; ++c) {
        const T d = columns[this->ColumnAt(c, tap, window)];
        if (dx != nullptr) point.Add(d * factor, dx + c * s.plane());
        if (doffset != nullptr) point.AddSlopes(x + c * s.plane(), d * factor, by_y, by_x);
        if (dmask != nullptr) by_mask += d * point.Of(x + c * s.plane());
      }
      if (doffset != nullptr) {
        doffset[2 * tap * s.windows() + window] = by_y;
        doffset[(2 * tap + 1) * s.windows() + window] = by_x;
      }
      if (dmask != nullptr) dmask[at] = by_mask;
    });
  }

  In<"Output@GRAD"> dout_;
  Out<"Input@GRAD"> dx_;
  Out<"Offset@GRAD"> doffset_;
  Out<"Mask@GRAD"> dmask_;
  Out<"Filter@GRAD"> dfilter_;
};

void AddDeformableConv(OpRegistry& ops, const char* type, bool masked) {
  OpDef& op = ops.Add(type);
  op.Doc("Convolution whose windows sample the input at learned offsets.", kDoc)
      .Input("Input", "images, [images, channels, height, width]", Floats())
      .Input("Offset", "[images, 2 * deformable_groups * filter height * filter width, height, width]",
             SameTypeAs("Input"));
  if (masked)
    op.Input("Mask", "[images, deformable_groups * filter height * filter width, height, width]",
             SameTypeAs("Input"));
  GradSpec spec = {.reads = {"Input", "Offset", "Filter"},
                   .yields = {"Input", "Offset", "Filter"},
                   .apart = {"Input", "Offset", "Filter"}};
  for (auto* list : {&spec.reads, &spec.yields, &spec.apart}) {
    if (masked) list->emplace_back("Mask");
  }
  op.Input("Filter", "[filters, channels / groups, height, width]", SameTypeAs("Input"))
      .Output("Output", "one channel per filter", SameTypeAs("Input"), Apart())
      .Attr("strides", Ints{1, 1}, "the distance between adjacent windows: height, width",
            Between(1, 1 << 15))
      .Attr("paddings", Ints{0, 0}, "zeros around Input: height, width", Between(0, 1 << 15))
      .Attr("dilations", Ints{1, 1}, "the distance between adjacent elements of a window",
            Between(1, 1 << 15))
      .Attr("groups", 1, "the number of groups of channels and filters", AtLeast(1))
      .Attr("deformable_groups", 1, "the number of groups of channels that share offsets", AtLeast(1))
      .Attr("im2col_step", 64, "the number of images that Fluid processes at a time; has no effect here")
      .Nan("a position that is NaN reads nothing, and its offset has no gradient.")
      .InferShape(InferDeformableConv)
      .Kernel<Cpu, DeformableConvKernel, float, double>()
      .Grad(std::move(spec))
      .GradKernel<Cpu, DeformableConvGradKernel, float, double>();
}

}  // namespace

void RegisterDeformableConv(OpRegistry& ops) {
  AddDeformableConv(ops, "deformable_conv", true);
  AddDeformableConv(ops, "deformable_conv_v1", false);
}

}  // namespace penstock
