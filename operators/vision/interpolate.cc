// bilinear_interp, nearest_interp, trilinear_interp, bicubic_interp: resize images.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/int_list.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is X resized along its spatial axes. The attribute interp_method, not the type of the op, selects how
elements are interpolated along each axis: nearest reads one neighbour, bilinear and trilinear read two,
bicubic reads four (A = -0.75).

The spatial size of Out is that of SizeTensor (one tensor per axis), else that of OutSize, else the size of X
times Scale or attribute scale, else out_d, out_h and out_w. Element i along an axis is at position r * i in
X, where r = (in - 1) / (out - 1) with align_corners, otherwise r = in / out. Without align_corners, the
position is r * (i + 0.5) - 0.5 for bicubic, and for the linear methods if align_mode is 0. If Out has one
element along an axis, it reads the first one of X. The gradient uses the same weights. For u8, elements are
summed in f32, clamped to [0, 255] and truncated; there is no gradient.)";

constexpr Dim kMaxExtent = Dim{1} << 20;

// The elements along one axis from which an element of Out is computed. The weights have type T.
template <typename T>
struct Taps {
  std::array<Dim, 4> at;
  std::array<T, 4> weight;
};

struct Sampler {
  std::string method;
  bool align_corners = true;
  bool half_pixels = false;  // for the linear methods

  std::size_t taps() const { return method == "nearest" ? 1 : method == "bicubic" ? 4 : 2; }
  template <typename T>
  Taps<T> At(Dim i, Dim in, Dim out) const;
};

template <typename T>
void AddCubic(T place, Dim in, Taps<T>& taps) {
  constexpr T kA = -0.75;
  const T first = std::floor(place), t = place - first;
  const auto near = [](T d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  const auto far = [](T d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  taps.weight = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  for (Dim j = 0; j < 4; ++j)
    taps.at[static_cast<std::size_t>(j)] = std::clamp<Dim>(static_cast<Dim>(first) - 1 + j, 0, in - 1);
}

// For any T, the ratio and the distances of the linear methods are float, and halves are added in double.
// This rounds a position between two elements as Fluid does.
template <typename T>
Taps<T> Sampler::At(Dim i, Dim in, Dim out) const {
  float ratio = 0;
  if (out > 1) {
    ratio = align_corners ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                          : static_cast<float>(in) / static_cast<float>(out);
  }
  const float place = ratio * static_cast<float>(i);
  const double halved = static_cast<double>(ratio) * (static_cast<double>(i) + 0.5) - 0.5;
  Taps<T> taps{};
  if (method == "nearest") {
    taps.at[0] = std::min(static_cast<Dim>(static_cast<double>(place) + (align_corners ? 0.5 : 0)), in - 1);
    taps.weight[0] = 1;
  } else if (method == "bicubic") {
    AddCubic(static_cast<T>(align_corners ? static_cast<double>(place) : halved), in, taps);
  } else {
    const float from = half_pixels ? std::max(static_cast<float>(halved), 0.0f) : place;
    const double first = half_pixels ? std::max(halved, 0.0) : static_cast<double>(place);
    taps.at[0] = std::min(static_cast<Dim>(first), in - 1);
    taps.at[1] = std::min(taps.at[0] + 1, in - 1);
    const float second = from - static_cast<float>(taps.at[0]);
    taps.weight = {static_cast<T>(1 - second), static_cast<T>(second)};
  }
  return taps;
}

// The positions of the axes; depth is 1 if there is none.
struct Layout {
  bool channels_last = false;
  int axes = 2;  // the number of spatial axes
  int first() const { return channels_last ? 1 : 2; }
  int channel() const { return channels_last ? axes + 1 : 1; }
};

// Checks a size, whatever its source.
template <typename Context>
Status CheckSize(const Context& c, Dim size) {
  if (size >= 1 && size <= kMaxExtent) return OkStatus();
  return c.Error("an extent of Out would be ", size, "; it must be in [1, ", kMaxExtent, "]");
}

template <typename Context>
Result<Layout> LayoutOf(const Context& c, const Shape& x) {
  const auto method = c.template Attr<std::string>("interp_method");
  const int rank = method == "trilinear" ? 5 : 4;
  if (x.rank() != rank)
    return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be ", rank, " for method ", method);
  return Layout{c.template Attr<std::string>("data_layout") == "NHWC", rank - 2};
}

Dim Scaled(Dim extent, float scale) {
  const double scaled = static_cast<double>(static_cast<float>(extent) * scale);
  return scaled < static_cast<double>(kMaxExtent) + 1 ? static_cast<Dim>(scaled) : kMaxExtent + 1;
}

constexpr std::array<const char*, 3> kSizeAttrs = {"out_d", "out_h", "out_w"};
template <typename Context>
Dim SizeAttr(const Context& c, const Layout& layout, int axis) {
  return Dim{c.template Attr<std::int32_t>(kSizeAttrs[static_cast<std::size_t>(axis + 3 - layout.axes)])};
}

Status InferInterp(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(c, x));
  if (c.HasInput("SizeTensor") && c.InputCount("SizeTensor") != layout.axes)
    return c.Error("SizeTensor has ", c.InputCount("SizeTensor"), " tensors; it must have ", layout.axes);
  const float scale = c.Attr<float>("scale");
  const bool from_tensor = c.HasInput("OutSize") || c.HasInput("SizeTensor") || c.HasInput("Scale");
  Shape out = x;
  for (int axis = 0; axis < layout.axes; ++axis) {
    const Dim in = x[layout.first() + axis];
    Dim size = SizeAttr(c, layout, axis);
    if (from_tensor) {
      if (!c.HasInput("SizeTensor") || size < 1) size = kUnknownDim;
    } else {
      if (scale > 0) size = in == kUnknownDim ? kUnknownDim : Scaled(in, scale);
      if (size != kUnknownDim || scale <= 0) PENSTOCK_RETURN_IF_ERROR(CheckSize(c, size));
    }
    out.Set(layout.first() + axis, size);
  }
  c.ShareLod("X", "Out");
  return c.SetShape("Out", out);
}

// The type in which elements are summed: float for bytes.
template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>, float, T>;

// Two batches of images of different sizes, and the weights of type T between them.
template <typename T>
class Resampling {
 public:
  template <typename Context>
  Status Prepare(const Context& k, const Shape& x) {
    PENSTOCK_ASSIGN_OR_RETURN(layout_, LayoutOf(k, x));
    sampler_.method = k.template Attr<std::string>("interp_method");
    sampler_.align_corners = k.template Attr<bool>("align_corners");
    sampler_.half_pixels = !sampler_.align_corners && k.template Attr<std::int32_t>("align_mode") == 0;
    images_ = x[0];
    channels_ = x[layout_.channel()];
    for (int axis = 0; axis < layout_.axes; ++axis) {
      in_[static_cast<std::size_t>(axis + 3 - layout_.axes)] = x[layout_.first() + axis];
      if (x[layout_.first() + axis] < 1) return k.Error("X (", x, ") must have at least one pixel");
    }
    return OkStatus();
  }
  const Layout& layout() const { return layout_; }
  // Sets the spatial size of Out; does nothing if it is unchanged.
  void SetOut(const std::array<Dim, 3>& out) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (out_[axis] == out[axis]) continue;
      out_[axis] = out[axis];
      taps_[axis].clear();
      const bool is_axis = axis + static_cast<std::size_t>(layout_.axes) >= 3;
      for (Dim i = 0; i < out[axis]; ++i)
        taps_[axis].push_back(is_axis ? sampler_.At<T>(i, in_[axis], out[axis]) : Taps<T>{{}, {1}});
    }
  }
  // Calls visit(element of Out, element of X, weight) for each pair. The channels of a pixel are contiguous
  // or apart.
  template <typename Visit>
  void ForEach(Visit visit) const {
    const Dim pixels_in = in_[0] * in_[1] * in_[2], pixels_out = out_[0] * out_[1] * out_[2];
    const Dim planes = layout_.channels_last ? images_ : images_ * channels_;
    const Dim wide = layout_.channels_last ? channels_ : 1;
    const std::size_t taps = sampler_.taps(), depth_taps = layout_.axes == 3 ? taps : 1;
    for (Dim plane = 0; plane < planes; ++plane) {
      Dim pixel = plane * pixels_out;
      for (const Taps<T>& z : taps_[0]) {
        for (const Taps<T>& y : taps_[1]) {
          for (const Taps<T>& x : taps_[2]) {
            for (std::size_t a = 0; a < depth_taps; ++a) {
              for (std::size_t b = 0; b < taps; ++b) {
                const Dim row = plane * pixels_in + (z.at[a] * in_[1] + y.at[b]) * in_[2];
                const T weight = z.weight[a] * y.weight[b];
                for (std::size_t c = 0; c < taps; ++c)
                  for (Dim w = 0; w < wide; ++w)
                    visit(pixel * wide + w, (row + x.at[c]) * wide + w, weight * x.weight[c]);
              }
            }
            ++pixel;
          }
        }
      }
    }
  }

 private:
  Layout layout_;
  Sampler sampler_;
  Dim images_ = 0, channels_ = 0;
  std::array<Dim, 3> in_ = {1, 1, 1}, out_ = {-1, -1, -1};
  std::array<std::vector<Taps<T>>, 3> taps_;
};

template <typename Device, typename T>
class InterpKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, scale_);
    out_size_ = k.Input("OutSize");
    size_tensor_.assign(k.Inputs("SizeTensor").begin(), k.Inputs("SizeTensor").end());
    type_ = k.op().type();
    shape_ = k[x_].shape;
    PENSTOCK_RETURN_IF_ERROR(resampling_.Prepare(k, k[x_].shape));
    const Layout& layout = resampling_.layout();
    if (out_size_) PENSTOCK_RETURN_IF_ERROR(RequireSizes(k, layout.axes));
    if (scale_ && (k[scale_].shape.Count() != 1 || k[scale_].dtype != DType::kFp32))
      return k.Error("Scale (", DTypeName(k[scale_].dtype), k[scale_].shape,
                     ") must hold one element of f32");
    for (int axis = 0; axis < layout.axes; ++axis) {
      sizes_[Place(axis)] = SizeAttr(k, layout, axis);
      const float scale = k.Attr<float>("scale");
      if (scale > 0) sizes_[Place(axis)] = Scaled(k[x_].shape[layout.first() + axis], scale);
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(ReadSizes(k));
    const Layout& layout = resampling_.layout();
    Dim bytes = static_cast<Dim>(sizeof(T));
    for (int axis = 0; axis < layout.axes; ++axis) shape_.Set(layout.first() + axis, sizes_[Place(axis)]);
    for (int i = 0; i < shape_.rank(); ++i) {
      if (__builtin_mul_overflow(bytes, std::max<Dim>(shape_[i], 1), &bytes) || bytes > Dim{1} << 40)
        return InvalidArgument("E-op-shape", type_, ": Out (", shape_, ") would be too large");
    }
    MakeShaped(k[out_], k[x_].dtype(), shape_);
    resampling_.SetOut(sizes_);
    const T* const x = std::as_const(k[x_]).template Data<T>();
    AddUp(k[out_].template Span<T>(), [&](std::span<SumOf<T>> sums) {
      resampling_.ForEach([&](Dim to, Dim from, SumOf<T> weight) {
        sums[static_cast<std::size_t>(to)] += weight * static_cast<SumOf<T>>(x[from]);
      });
    });
    return OkStatus();
  }

 private:
  // Calls add(sums), where sums start at zero; for bytes, the sums are clamped and truncated.
  template <typename Add>
  void AddUp(std::span<T> out, Add add) {
    if constexpr (std::is_same_v<T, SumOf<T>>) {
      std::ranges::fill(out, T{0});
      add(out);
    } else {
      sums_.assign(out.size(), 0);
      add(std::span(sums_));
      std::ranges::transform(sums_, out.begin(), [](float sum) {
        return static_cast<T>(std::clamp(sum, 0.0f, static_cast<float>(std::numeric_limits<T>::max())));
      });
    }
  }
  std::size_t Place(int axis) const { return static_cast<std::size_t>(axis + 3 - resampling_.layout().axes); }
  Status RequireSizes(const KernelSetup& k, int axes) const {
    if (k.Input("OutSize").shape.Count() == axes) return OkStatus();
    return k.Error("OutSize (", k.Input("OutSize").shape, ") must hold ", axes, " elements");
  }
  // Reads the sizes that tensors give.
  Status ReadSizes(KernelRun& k) {
    const Layout& layout = resampling_.layout();
    for (int axis = 0; axis < layout.axes; ++axis) {
      Dim& size = sizes_[Place(axis)];
      if (!size_tensor_.empty()) {
        PENSTOCK_RETURN_IF_ERROR(
            ReadInteger(type_, k, size_tensor_[static_cast<std::size_t>(axis)], 0, size));
      } else if (out_size_) {
        PENSTOCK_RETURN_IF_ERROR(ReadInteger(type_, k, out_size_, axis, size));
      } else if (scale_) {
        const float scale = std::as_const(k[scale_]).template Data<float>()[0];
        size = scale > 0 ? Scaled(k[x_].shape()[layout.first() + axis], scale) : 0;
      }
      if (size < 1 || size > kMaxExtent)
        return InvalidArgument("E-op-shape", type_, ": an extent of Out would be ", size,
                               "; it must be in [1, ", kMaxExtent, "]");
    }
    return OkStatus();
  }

  In<"X"> x_;
  Out<"Out"> out_;
  NamedOperand out_size_;
  In<"Scale"> scale_;
  std::vector<NamedOperand> size_tensor_;
  std::string type_;
  Shape shape_;  // the shape of Out
  std::array<Dim, 3> sizes_ = {1, 1, 1};
  Resampling<SumOf<T>> resampling_;
  std::vector<SumOf<T>> sums_;  // for bytes only
};

// The size is that of Out@GRAD.
template <typename Device, typename T>
class InterpGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    const Shape& x = k.Input("X").shape;
    PENSTOCK_RETURN_IF_ERROR(resampling_.Prepare(k, x));
    const Layout& layout = resampling_.layout();
    Shape expected = x;
    if (k[dout_].shape.rank() != x.rank())
      return k.Error("rank of Out@GRAD (", k[dout_].shape.rank(), ") must be ", x.rank());
    std::array<Dim, 3> out = {1, 1, 1};
    for (int axis = 0; axis < layout.axes; ++axis) {
      const int at = layout.first() + axis;
      out[static_cast<std::size_t>(axis + 3 - layout.axes)] = k[dout_].shape[at];
      expected.Set(at, k[dout_].shape[at]);
    }
    if (k[dout_].shape != expected)
      return k.Error("shape of Out@GRAD (", k[dout_].shape, ") must have the images and channels of X (", x,
                     ")");
    resampling_.SetOut(out);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    resampling_.ForEach([&](Dim to, Dim from, T weight) { dx[from] += weight * dout[to]; });
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Resampling<T> resampling_;
};

TypeRule FloatsOrBytes() {
  return {TypeRule::Kind::kOneOf, {DType::kFp32, DType::kFp64, DTypeOfT<std::uint8_t>::kValue}, ""};
}

void AddInterp(OpRegistry& ops, const char* type, const char* summary) {
  ops.Add(type)
      .Doc(summary, kDoc)
      .Input("X", "images of rank 4, or 5 for trilinear", FloatsOrBytes())
      .Input("OutSize", "the spatial size of Out", Integers(), Optional())
      .Input("SizeTensor", "the spatial size of Out, one tensor per axis", Integers(),
             Optional() | Repeated())
      .Input("Scale", "the factor of the spatial size", Only(DType::kFp32), Optional())
      .Output("Out", "the resized images", SameTypeAs("X"), Apart())
      .Attr("data_layout", "NCHW", "whether the channels come before or after the spatial axes",
            OneOf({"NCHW", "NHWC"}))
      .Attr("out_d", 0, "the depth of Out, for trilinear only")
      .Attr("out_h", 0, "the height of Out")
      .Attr("out_w", 0, "the width of Out")
      .Attr("scale", 0.0f, "the factor of the spatial size, if above 0")
      .Attr("interp_method", "bilinear", "the interpolation method",
            OneOf({"bilinear", "nearest", "trilinear", "bicubic"}))
      .Attr("align_corners", true, "whether the centres of the corner elements of X and Out coincide")
      .Attr("align_mode", 1,
            "0: elements are at the centres of their pixels, for the linear methods without align_corners")
      .InferShape(InferInterp)
      .KernelTypeFrom("X")
      .Kernel<Cpu, InterpKernel, float, double, std::uint8_t>()
      .ChannelsLast(ByAttr("data_layout", "NHWC", {"X", "Out"}))
      .Grad({.reads = {"X", "OutSize", "SizeTensor", "Scale"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, InterpGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("X");
}

}  // namespace

void RegisterInterpolate(OpRegistry& ops) {
  AddInterp(ops, "bicubic_interp", "Resizes images; interp_method defaults to bilinear.");
  AddInterp(ops, "bilinear_interp", "Resizes images by bilinear interpolation.");
  AddInterp(ops, "nearest_interp", "Resizes images; interp_method defaults to bilinear.");
  AddInterp(ops, "trilinear_interp", "Resizes volumes by trilinear interpolation.");
}

}  // namespace penstock
