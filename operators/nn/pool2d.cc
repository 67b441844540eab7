// pool2d and pool3d: the maximum or the mean of each window.
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/vector/pooling.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/nan.h"
#include "operators/common/onednn.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"
#include "operators/nn/pool.h"
#include "operators/nn/pool_means.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[n, c, y, x] is the maximum ("max") or the mean ("avg") of the elements of X[n, c] in window (y, x);
pool3d does the same with volumes. Padding is never a maximum; a mean includes it only if `exclusive` is
false. With `global_pooling`, one window covers the whole image. With `adaptive`, ksize is the number of
windows: window y extends from floor(y * height / ksize) to ceil((y + 1) * height / ksize). The gradient of a
maximum goes to the first element that equals it.)";

template <typename Context>
Result<PoolGeometry> MakePoolGeometry(const Context& c, const Shape& x) {
  const auto format = c.template Attr<std::string>("data_format");
  PENSTOCK_ASSIGN_OR_RETURN(PoolGeometry g,
                            StartPoolGeometry(c, x, format == "NHWC" || format == "NDHWC",
                                              c.template Attr<std::string>("padding_algorithm"),
                                              c.template Attr<bool>("ceil_mode")));
  g.is_max = c.template Attr<std::string>("pooling_type") == "max";
  g.counts_padding = !c.template Attr<bool>("exclusive");
  return g;
}

Status InferPool2d(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(c, x));
  c.ShareLod("X", "Out");
  const Dim channels = x[g.channels_last ? x.rank() - 1 : 1];
  return c.SetShape("Out", ImagesOf(x[0], channels, OutsOf(g.window), g.channels_last));
}

// Adaptive windows of one size that divide the image are ordinary ones.
void MakeOrdinary(PoolGeometry& g) {
  for (int axis = 0; axis < g.window.axes(); ++axis) {
    const WindowAxis& w = g.window[axis];
    if (!g.adaptive || w.out == 0 || w.in == 0 || w.in % w.out != 0) return;
  }
  for (int axis = 0; axis < g.window.axes(); ++axis)
    g.window[axis].kernel = g.window[axis].stride = g.window[axis].in / g.window[axis].out;
  g.adaptive = false;
}

// Whether the windows have one size and each touches the image, which oneDNN and vec::MaxPool require.
bool TouchesImage(const PoolGeometry& g, const ImageShape& x) {
  if (g.adaptive || x.images * x.channels == 0) return false;
  for (int axis = 0; axis < g.window.axes(); ++axis) {
    const WindowAxis& w = g.window[axis];
    if (UnderWindow(g, w, 0).size() == 0 || UnderWindow(g, w, w.out - 1).size() == 0) return false;
  }
  return true;
}

struct PoolDescs {
  PoolDescs(const PoolGeometry& g, const ImageShape& x_shape, const ImageShape& out_shape)
      : x(ImageDesc(x_shape)), out(ImageDesc(out_shape)) {
    algorithm = g.is_max           ? dnnl::algorithm::pooling_max
                : g.counts_padding ? dnnl::algorithm::pooling_avg_include_padding
                                   : dnnl::algorithm::pooling_avg_exclude_padding;
    for (int axis = 0; axis < g.window.axes(); ++axis) {
      const WindowAxis& w = g.window[axis];
      strides.push_back(w.stride);
      kernel.push_back(w.kernel);
      pad_begin.push_back(w.pad_begin);
      // In ceil mode the last window extends beyond the requested padding.
      pad_end.push_back(std::max(w.pad_end, (w.out - 1) * w.stride + w.kernel - w.in - w.pad_begin));
    }
  }
  static dnnl::memory::desc ImageDesc(const ImageShape& s) { return OnednnStrided(s.Dims(), s.Strides()); }
  // Inference, which does not record the positions of the maxima: the op has no slot for them.
  dnnl::pooling_forward::primitive_desc Forward(dnnl::prop_kind kind) const {
    return {{kind, algorithm, x, out, strides, kernel, pad_begin, pad_end}, OnednnAttr(), OnednnEngine()};
  }

  dnnl::algorithm algorithm;
  dnnl::memory::desc x, out;
  dnnl::memory::dims strides, kernel, pad_begin, pad_end;
};

// Shared by both kernels: the geometry, and oneDNN's primitive where it applies.
template <typename T>
class PoolKernelBase : public Kernel {
 protected:
  Status PrepareGeometry(KernelSetup& k, const Argument& out) {
    const Shape& x = k.Input("X").shape;
    PENSTOCK_ASSIGN_OR_RETURN(g_, MakePoolGeometry(k, x));
    MakeOrdinary(g_);
    x_shape_ = MakeImageShape(x, g_.channels_last);
    if (out.shape.rank() != x.rank())
      return k.Error("rank of ", out.name, " (", out.shape.rank(), ") must be ", x.rank());
    out_shape_ = MakeImageShape(out.shape, g_.channels_last);
    if (out_shape_.extents != g_.window.outs()) {
      return k.Error("shape of ", out.name, " (", out.shape, ") must have ",
                     SidesText(g_.window.outs(), g_.window.axes()), " windows");
    }
    if (out_shape_.images != x_shape_.images || out_shape_.channels != x_shape_.channels) {
      return k.Error("shape of ", out.name, " (", out.shape, ") must have the images and channels of X (", x,
                     ")");
    }
    way_ = WayOfPlanes();
    return OkStatus();
  }

  // Calls add(descs, x_offset, out_offset) for each share of the images, offsets in bytes.
  template <typename Add>
  void EachShareOfImages(const KernelSetup& k, const Add& add) {
    constexpr double kPointNs = 0.4;
    const Dim images = x_shape_.images, points = x_shape_.points() + out_shape_.points();
    const Shares shares = DivideIntoShares(images, kPointNs * static_cast<double>(x_shape_.channels * points),
                                           1, k.threads(), 2);
    EachShare(k, steps_, shares, images, [&](Dim first, Dim count) {
      ImageShape x = x_shape_, out = out_shape_;
      x.images = out.images = count;
      add(PoolDescs(g_, x, out), static_cast<std::size_t>(first * x.image_stride) * sizeof(float),
          static_cast<std::size_t>(first * out.image_stride) * sizeof(float));
    });
  }

  // Calls visit(n, c) for each plane; planes are divided among threads.
  template <typename Visit>
  void EachPlane(Visit&& visit) const {
    constexpr double kPointNs = 3;  // of a plane and of its windows
    const Dim points = x_shape_.points() + out_shape_.points();
    ForRows(x_shape_.images * x_shape_.channels, kPointNs * static_cast<double>(points),
            [&](Dim begin, Dim end) {
              for (Dim plane = begin; plane < end; ++plane)
                visit(plane / x_shape_.channels, plane % x_shape_.channels);
            });
  }

  // Calls visit(out index, ranges) for each window of a plane.
  template <typename Visit>
  void EachWindow(Dim n, Dim c, Visit&& visit) const {
    EachPoolWindow(g_, [&](const std::array<Dim, 3>& at, const PoolRanges& ranges) {
      visit(out_shape_.At(n, c, at[0], at[1], at[2]), ranges);
    });
  }

  // How planes of contiguous rows are pooled.
  enum class Way { kAny, kMaxOf2x2, kMaxByRows, kMeanByRows };
  Way WayOfPlanes() const {
    if (g_.channels_last || g_.window.axes() != 2) return Way::kAny;
    if (!g_.is_max) return x_shape_.extents[2] <= kPoolMeansWidthMax ? Way::kMeanByRows : Way::kAny;
    if (!std::is_same_v<T, float> || !TouchesImage(g_, x_shape_)) return Way::kAny;
    const bool of_2x2 = std::ranges::all_of(std::array{g_.window[0], g_.window[1]}, [](const WindowAxis& w) {
      return w.kernel == 2 && w.stride == 2 && w.pad_begin == 0 && w.out == w.in / 2;
    });
    if (of_2x2) return Way::kMaxOf2x2;
    return vec::FitsPool(Axis(1)) ? Way::kMaxByRows : Way::kAny;
  }
  // Of rows (0) or columns (1).
  vec::PoolAxis Axis(int axis) const {
    const WindowAxis& w = g_.window[axis];
    const auto size = [](Dim extent) { return static_cast<std::size_t>(extent); };
    return {size(w.in), size(w.out), size(w.kernel), size(w.stride), size(w.pad_begin)};
  }
  // Whether the maxima of several channels are found at once.
  bool IsMaxChannelsLast() const {
    return std::is_same_v<T, float> && g_.is_max && g_.channels_last && g_.window.axes() == 2;
  }
  // Calls visit(window, index in X, index in Out) for each window of each image that is not empty.
  template <typename Visit>
  void EachChannelsWindow(Dim begin, Dim end, const Visit& visit) const {
    for (Dim n = begin; n < end; ++n) {
      EachPoolWindow(g_, [&](const std::array<Dim, 3>& at, const PoolRanges& r) {
        const vec::ChannelsWindow window = {
            static_cast<std::size_t>(r[1].size()), static_cast<std::size_t>(r[2].size()),
            static_cast<std::size_t>(x_shape_.strides[1]), static_cast<std::size_t>(x_shape_.channels)};
        visit(window, x_shape_.At(n, 0, 0, r[1].begin, r[2].begin), out_shape_.At(n, 0, 0, at[1], at[2]));
      });
    }
  }
  // Calls images(begin, end) for parts of the images.
  template <typename Images>
  void EachPartOfImages(const Images& images) const {
    constexpr double kPointNs = 0.4;
    const Dim points = x_shape_.points() + out_shape_.points();
    ForRows(x_shape_.images, kPointNs * static_cast<double>(x_shape_.channels * points), images);
  }

  // The divisor of a mean over these elements.
  T Divisor(const PoolRanges& ranges) const {
    if (g_.counts_padding && !g_.adaptive) {
      const std::array<WindowAxis, 3>& w = g_.window.all();
      return static_cast<T>(w[0].kernel * w[1].kernel * w[2].kernel);
    }
    return static_cast<T>(std::max<Dim>(ranges[0].size() * ranges[1].size() * ranges[2].size(), 1));
  }

  auto Divisors() const {
    return [this](const PoolRanges& ranges) { return Divisor(ranges); };
  }

  PoolGeometry g_;
  Way way_ = Way::kAny;
  ImageShape x_shape_, out_shape_;
  OnednnSequence steps_;
};

// oneDNN's maximum ignores NaN.
template <typename Device, typename T>
class Pool2dKernel : public PoolKernelBase<T> {
  using Way = typename PoolKernelBase<T>::Way;

 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    PENSTOCK_RETURN_IF_ERROR(this->PrepareGeometry(k, k[out_]));
    const bool max_by_vectors = (this->g_.is_max && this->way_ != Way::kAny) || this->IsMaxChannelsLast();
    if (!std::is_same_v<T, float> || max_by_vectors || !TouchesImage(this->g_, this->x_shape_))
      return OkStatus();
    return OnednnTry(k, [&] {
      this->EachShareOfImages(k, [&](const PoolDescs& descs, std::size_t x_offset, std::size_t out_offset) {
        const auto pd = descs.Forward(dnnl::prop_kind::forward_inference);
        this->steps_.Add(k, dnnl::pooling_forward(pd), pd.scratchpad_desc(),
                         {{DNNL_ARG_SRC, this->steps_.Tensor(x_, descs.x, x_offset)},
                          {DNNL_ARG_DST, this->steps_.Tensor(out_, descs.out, out_offset)}});
      });
    });
  }

  Status Run(KernelRun& k) override {
    const T* x = k[x_].template Data<T>();
    if (!this->steps_.empty() && !(this->g_.is_max && HoldsNan(k[x_]))) return this->steps_.Run(k);
    T* out = k[out_].template Data<T>();
    if constexpr (std::is_same_v<T, float>) {
      if (this->IsMaxChannelsLast()) {
        MaxOfChannels(x, out);
        return OkStatus();
      }
    }
    this->EachPlane([&](Dim n, Dim c) {
      const Dim at = this->x_shape_.At(n, c, 0, 0, 0), o = this->out_shape_.At(n, c, 0, 0, 0);
      if constexpr (std::is_same_v<T, float>) {
        const vec::PoolAxis rows = this->Axis(0), columns = this->Axis(1);
        if (this->way_ == Way::kMaxOf2x2)
          return vec::MaxPool2x2(1, rows.extent, columns.extent, x + at, out + o);
        if (this->way_ == Way::kMaxByRows) return vec::MaxPool(rows, columns, x + at, out + o);
      }
      if (this->way_ == Way::kMeanByRows) return MeansOfPlane(this->g_, x + at, this->Divisors(), out + o);
      OfWindows(n, c, x, out);
    });
    return OkStatus();
  }

 private:
  void MaxOfChannels(const float* x, float* out) const {
    this->EachPartOfImages([&](Dim begin, Dim end) {
      this->EachChannelsWindow(begin, end, [&](const vec::ChannelsWindow& window, Dim from, Dim to) {
        if (window.rows * window.columns > 0) return vec::MaxOfWindow(window, x + from, out + to);
        std::fill_n(out + to, window.channels, std::numeric_limits<float>::lowest());
      });
    });
  }
  void OfWindows(Dim n, Dim c, const T* x, T* out) const {
    this->EachWindow(n, c, [&](Dim o, const PoolRanges& ranges) {
      T value = this->g_.is_max ? std::numeric_limits<T>::lowest() : T(0);
      EachUnderWindow(this->x_shape_, n, c, ranges, [&](Dim at) {
        value = this->g_.is_max ? MaxOrNan(value, x[at]) : value + x[at];
        return true;
      });
      out[o] = this->g_.is_max ? value : value / this->Divisor(ranges);
    });
  }

  // The loop has no branch, so that it is vectorised; it takes a small part of the pooling's time.
  bool HoldsNan(const Tensor& x) const {
    const T* const data = x.Data<T>();
    std::atomic<bool> found{false};
    ForElements(x.count(), StreamNs<T>(1), [&](Dim begin, Dim end) {
      int here = 0;
      for (Dim i = begin; i < end; ++i) here |= static_cast<int>(IsNan(data[i]));
      if (here != 0) found.store(true, std::memory_order_relaxed);
    });
    return found.load();
  }

  In<"X"> x_;
  Out<"Out"> out_;
};

// The gradient of a mean uses oneDNN. That of a maximum does not, because Fluid's op has no slot for the
// positions of the maxima: they are found again from X and Out.
template <typename Device, typename T>
class Pool2dGradKernel : public PoolKernelBase<T> {
  using Way = typename PoolKernelBase<T>::Way;

 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(this->PrepareGeometry(k, k[dout_]));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out", k[dout_].shape));
    if (!dx_ || !std::is_same_v<T, float> || this->g_.is_max || !TouchesImage(this->g_, this->x_shape_))
      return OkStatus();
    return OnednnTry(k, [&] {
      this->EachShareOfImages(k, [&](const PoolDescs& descs, std::size_t x_offset, std::size_t out_offset) {
        const dnnl::pooling_backward::primitive_desc pd({descs.algorithm, descs.x, descs.out, descs.strides,
                                                         descs.kernel, descs.pad_begin, descs.pad_end},
                                                        OnednnAttr(), OnednnEngine(),
                                                        descs.Forward(dnnl::prop_kind::forward_training));
        this->steps_.Add(k, dnnl::pooling_backward(pd), pd.scratchpad_desc(),
                         {{DNNL_ARG_DIFF_DST, this->steps_.Tensor(dout_, descs.out, out_offset)},
                          {DNNL_ARG_DIFF_SRC, this->steps_.Tensor(dx_, descs.x, x_offset)}});
      });
    });
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    if (!this->steps_.empty()) return this->steps_.Run(k);
    const T* x = k[x_].template Data<T>();
    const T* out = k[out_].template Data<T>();
    const T* dout = k[dout_].template Data<T>();
    T* dx = k[dx_].template Data<T>();
    if constexpr (std::is_same_v<T, float>) {
      if (this->IsMaxChannelsLast()) {
        OfMaximaOfChannels(x, out, dout, dx);
        return OkStatus();
      }
    }
    this->EachPlane([&](Dim n, Dim c) {
      const Dim at = this->x_shape_.At(n, c, 0, 0, 0), o = this->out_shape_.At(n, c, 0, 0, 0);
      if constexpr (std::is_same_v<T, float>) {
        const vec::PoolAxis rows = this->Axis(0), columns = this->Axis(1);
        if (this->way_ == Way::kMaxOf2x2)
          return vec::MaxPool2x2Grad(1, rows.extent, columns.extent, x + at, out + o, dout + o, dx + at);
        if (this->way_ == Way::kMaxByRows)
          return vec::MaxPoolGrad(rows, columns, x + at, out + o, dout + o, dx + at);
      }
      if (this->way_ == Way::kMeanByRows)
        return SpreadMeansOfPlane(this->g_, dout + o, this->Divisors(), dx + at);
      EachUnderWindow(this->x_shape_, n, c, Plane(), [dx](Dim i) {
        dx[i] = T(0);
        return true;
      });
      if (this->g_.is_max) {
        OfMaxima(x + at, out + o, dout + o, dx + at);
      } else {
        OfMeans(n, c, dout, dx);
      }
    });
    return OkStatus();
  }

 private:
  PoolRanges Plane() const {
    const std::array<Dim, 3>& extents = this->x_shape_.extents;
    return {PoolRange{0, extents[0]}, PoolRange{0, extents[1]}, PoolRange{0, extents[2]}};
  }

  void OfMaximaOfChannels(const float* x, const float* out, const float* dout, float* dx) const {
    const Dim image = this->x_shape_.image_stride;
    this->EachPartOfImages([&](Dim begin, Dim end) {
      std::fill(dx + begin * image, dx + end * image, 0.0f);
      this->EachChannelsWindow(begin, end, [&](const vec::ChannelsWindow& window, Dim from, Dim to) {
        vec::AddMaxGradOfWindow(window, x + from, out + to, dout + to, dx + from);
      });
    });
  }

  // Of one plane.
  void OfMaxima(const T* x, const T* out, const T* dout, T* dx) const {
    EachPoolWindow(this->g_, [&](const std::array<Dim, 3>& at, const PoolRanges& ranges) {
      const Dim o = this->out_shape_.At(0, 0, at[0], at[1], at[2]);
      const Dim first = IsNan(out[o]) ? FirstIf(x, ranges, [](T value) { return IsNan(value); })
                                      : FirstIf(x, ranges, [y = out[o]](T value) { return value == y; });
      if (first >= 0) dx[first] += dout[o];
    });
  }

  // Returns the index of the first element under a window that `is` holds for, or -1. It goes through all of
  // them from the last one, because a branch at the first would be predicted wrongly for most windows.
  template <typename Is>
  Dim FirstIf(const T* x, const PoolRanges& r, Is is) const {
    const std::array<Dim, 3>& strides = this->x_shape_.strides;
    Dim first = -1;
    for (Dim z = r[0].end; z-- > r[0].begin;) {
      for (Dim i = r[1].end; i-- > r[1].begin;) {
        const Dim row = z * strides[0] + i * strides[1];
        for (Dim j = r[2].end; j-- > r[2].begin;) {
          const Dim at = row + j * strides[2];
          first = is(x[at]) ? at : first;
        }
      }
    }
    return first;
  }

  void OfMeans(Dim n, Dim c, const T* dout, T* dx) const {
    this->EachWindow(n, c, [&](Dim o, const PoolRanges& ranges) {
      const T share = dout[o] / this->Divisor(ranges);
      EachUnderWindow(this->x_shape_, n, c, ranges, [&](Dim at) {
        dx[at] += share;
        return true;
      });
    });
  }

  In<"X"> x_;
  In<"Out"> out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

// Slots and attributes of pool2d and pool3d, except those that only pool2d has.
OpDef& DeclarePooling(OpDef& op, int axes) {
  const std::vector<std::int32_t> ones(static_cast<std::size_t>(axes), 1);
  return op.Input("X", "the images, [images, channels, spatial dimensions]", Floats())
      .Output("Out", "one element per window", SameTypeAs("X"))
      .RequiredAttr("pooling_type", AttrKind::kString, "what is computed of each window",
                    OneOf({"max", "avg"}))
      .RequiredAttr("ksize", AttrKind::kInts,
                    "the size of the window; if adaptive, the number of windows along each axis")
      .Attr("global_pooling", false,
            "whether one window covers the image; ksize and paddings are then ignored")
      .Attr("strides", ones, "the distance between adjacent windows along each axis")
      .Attr("paddings", std::vector<std::int32_t>(ones.size(), 0),
            "the padding of X: one value per axis, or two (before and after)")
      .Attr("exclusive", true, "whether a mean excludes the padding")
      .Attr("adaptive", false, "whether ksize is the number of windows")
      .Attr("use_cudnn", false, kNoEffect)
      .Attr("ceil_mode", false, "whether the number of windows is rounded up")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("padding_algorithm", "EXPLICIT", "how padding is determined",
            OneOf({"EXPLICIT", "SAME", "VALID"}))
      .Nan(
          "the largest element of a window with a NaN is NaN; its gradient goes to the first NaN of the "
          "window.")
      .InferShape(InferPool2d)
      .Kernel<Cpu, Pool2dKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Out"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, Pool2dGradKernel, float, double>();
}

}  // namespace

void RegisterPool2d(OpRegistry& ops) {
  const char* const summary = "The maximum or the mean of each window.";
  DeclarePooling(ops.Add("pool2d").Doc(summary, kDoc), 2)
      .Attr("use_quantizer", false, kNoEffect)
      .Attr("data_format", "NCHW", "the memory layout of X and Out; AnyLayout is NCHW",
            OneOf({"AnyLayout", "NCHW", "NHWC"}))
      .Attr("is_test", false, kNoEffect)
      .ChannelsLast(ByAttr("data_format", "NHWC", {"X", "Out"}));
  DeclarePooling(ops.Add("pool3d").Doc(summary, kDoc), 3)
      .Attr("data_format", "NCDHW", "the memory layout of X and Out; AnyLayout is NCDHW",
            OneOf({"AnyLayout", "NCDHW", "NDHWC"}));
}

}  // namespace penstock
