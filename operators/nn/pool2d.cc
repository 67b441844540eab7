// pool2d: the largest element or the mean of each window.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/nan.h"
#include "operators/common/onednn.h"
#include "operators/common/require_shape.h"
#include "operators/nn/window.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[n, c, y, x] = the largest element ("max") or the mean ("avg") of the part of X[n, c] under window (y, x)

Padding is never the largest. A mean counts it only if `exclusive` is false. `global_pooling` takes one window
over the whole image. `adaptive` makes ksize the number of windows: window y runs from
floor(y * height / ksize) to ceil((y + 1) * height / ksize). The gradient of a maximum goes to the first
element that has it.)";

struct PoolGeometry {
  bool channels_last = false;
  bool is_max = true;
  bool adaptive = false;
  bool counts_padding = false;
  Window window;
};

template <typename Context>
Result<PoolGeometry> MakePoolGeometry(const Context& c, const Shape& x) {
  if (x.rank() != 4) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
  const auto ksize = c.template Attr<std::vector<std::int32_t>>("ksize");
  if (ksize.size() != 2) return c.Error("ksize must have 2 values, not ", ksize.size());
  PoolGeometry g;
  g.channels_last = c.template Attr<std::string>("data_format") == "NHWC";
  g.is_max = c.template Attr<std::string>("pooling_type") == "max";
  g.adaptive = c.template Attr<bool>("adaptive");
  g.counts_padding = !c.template Attr<bool>("exclusive");
  const int first = g.channels_last ? 1 : 2;
  const std::array<Dim, 2> in = {x[first], x[first + 1]};
  const bool global = c.template Attr<bool>("global_pooling");
  const std::array<Dim, 2> kernel = global ? in : std::array<Dim, 2>{ksize[0], ksize[1]};
  if (!global && std::min(kernel[0], kernel[1]) < 1) {
    return c.Error("ksize (", kernel[0], ", ", kernel[1], ") must be at least 1");
  }
  if (g.adaptive && !global) {
    for (std::size_t axis = 0; axis < 2; ++axis) g.window[axis] = {.in = in[axis], .out = kernel[axis]};
    return g;
  }
  g.adaptive = false;
  WindowAttrs attrs = {.strides = c.template Attr<std::vector<std::int32_t>>("strides"),
                       .paddings = c.template Attr<std::vector<std::int32_t>>("paddings"),
                       .padding_algorithm = c.template Attr<std::string>("padding_algorithm"),
                       .ceil_mode = c.template Attr<bool>("ceil_mode")};
  if (global) attrs.padding_algorithm = "VALID";
  const auto window = MakeWindow(attrs, in, kernel);
  if (!window.ok()) return c.Error(window.status().message());
  g.window = *window;
  return g;
}

Status InferPool2d(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(c, x));
  c.ShareLod("X", "Out");
  if (g.channels_last) return c.SetShape("Out", {x[0], g.window[0].out, g.window[1].out, x[3]});
  return c.SetShape("Out", {x[0], x[1], g.window[0].out, g.window[1].out});
}

// The elements of one axis under window o.
struct Range {
  Dim begin, end;
  Dim size() const { return std::max<Dim>(end - begin, 0); }
};

Range UnderWindow(const PoolGeometry& g, std::size_t axis, Dim o) {
  const WindowAxis& w = g.window[axis];
  if (g.adaptive) return {o * w.in / w.out, ((o + 1) * w.in + w.out - 1) / w.out};
  const Dim begin = o * w.stride - w.pad_begin;
  return {std::max<Dim>(begin, 0), std::min(begin + w.kernel, w.in)};
}

// oneDNN's windows are all of one size, and each must touch the image.
bool OnednnCanPool(const PoolGeometry& g, const ImageShape& x) {
  if (g.adaptive || x.images * x.channels == 0) return false;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (UnderWindow(g, axis, 0).size() == 0 || UnderWindow(g, axis, g.window[axis].out - 1).size() == 0)
      return false;
  }
  return true;
}

struct PoolDescs {
  PoolDescs(const PoolGeometry& g, const ImageShape& x_shape, const ImageShape& out_shape)
      : x(ImageDesc(x_shape)), out(ImageDesc(out_shape)) {
    algorithm = g.is_max           ? dnnl::algorithm::pooling_max
                : g.counts_padding ? dnnl::algorithm::pooling_avg_include_padding
                                   : dnnl::algorithm::pooling_avg_exclude_padding;
    for (const WindowAxis& w : g.window) {
      strides.push_back(w.stride);
      kernel.push_back(w.kernel);
      pad_begin.push_back(w.pad_begin);
      // In ceil mode the last window reaches beyond the padding asked for.
      pad_end.push_back(std::max(w.pad_end, (w.out - 1) * w.stride + w.kernel - w.in - w.pad_begin));
    }
  }
  static dnnl::memory::desc ImageDesc(const ImageShape& s) {
    return OnednnStrided({s.images, s.channels, s.height, s.width},
                         {s.image_stride, s.channel_stride, s.row_stride, s.column_stride});
  }
  // Inference: without the record of where each maximum was, for which the op has no slot.
  dnnl::pooling_forward::primitive_desc Forward(dnnl::prop_kind kind) const {
    return {{kind, algorithm, x, out, strides, kernel, pad_begin, pad_end}, OnednnAttr(), OnednnEngine()};
  }

  dnnl::algorithm algorithm;
  dnnl::memory::desc x, out;
  dnnl::memory::dims strides, kernel, pad_begin, pad_end;
};

// What both kernels hold: the geometry, and oneDNN's primitive where it can do the work.
template <typename T>
class PoolKernelBase : public Kernel {
 protected:
  Status PrepareGeometry(KernelSetup& k, const Operand& out) {
    threads_ = k.threads();
    const Shape& x = k.Input("X").shape;
    PENSTOCK_ASSIGN_OR_RETURN(g_, MakePoolGeometry(k, x));
    x_shape_ = MakeImageShape(x, g_.channels_last);
    if (out.shape.rank() != 4) return k.Error("rank of ", out.name, " (", out.shape.rank(), ") must be 4");
    out_shape_ = MakeImageShape(out.shape, g_.channels_last);
    if (out_shape_.height != g_.window[0].out || out_shape_.width != g_.window[1].out) {
      return k.Error("shape of ", out.name, " (", out.shape, ") must have ", g_.window[0].out, " x ",
                     g_.window[1].out, " windows");
    }
    if (out_shape_.images != x_shape_.images || out_shape_.channels != x_shape_.channels) {
      return k.Error("shape of ", out.name, " (", out.shape, ") must have the images and channels of X (", x,
                     ")");
    }
    return OkStatus();
  }

  // Calls visit(n, c) for each plane, planes divided among the team.
  template <typename Visit>
  void EachPlane(Visit&& visit) const {
    const Dim planes = x_shape_.images * x_shape_.channels;
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (Dim plane = 0; plane < planes; ++plane) visit(plane / x_shape_.channels, plane % x_shape_.channels);
  }

  // Calls visit(out index, rows, columns) for each window of a plane.
  template <typename Visit>
  void EachWindow(Dim n, Dim c, Visit&& visit) const {
    for (Dim y = 0; y < out_shape_.height; ++y) {
      for (Dim x = 0; x < out_shape_.width; ++x) {
        visit(out_shape_.At(n, c, y, x), UnderWindow(g_, 0, y), UnderWindow(g_, 1, x));
      }
    }
  }

  // The number of elements that a mean over these divides by.
  T Divisor(const Range& rows, const Range& columns) const {
    const Dim area = rows.size() * columns.size();
    if (g_.counts_padding && !g_.adaptive) return static_cast<T>(g_.window[0].kernel * g_.window[1].kernel);
    return static_cast<T>(std::max<Dim>(area, 1));
  }

  int threads_ = 1;
  PoolGeometry g_;
  ImageShape x_shape_, out_shape_;
  OnednnSequence steps_;
};

// oneDNN's maximum passes over NaN.
template <typename Device, typename T>
class Pool2dKernel : public PoolKernelBase<T> {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    PENSTOCK_RETURN_IF_ERROR(this->PrepareGeometry(k, out_));
    if (!std::is_same_v<T, float> || !OnednnCanPool(this->g_, this->x_shape_)) return OkStatus();
    return OnednnTry(k, [&] {
      const PoolDescs descs(this->g_, this->x_shape_, this->out_shape_);
      const auto pd = descs.Forward(dnnl::prop_kind::forward_inference);
      this->steps_.Add(k, dnnl::pooling_forward(pd), pd.scratchpad_desc(),
                       {{DNNL_ARG_SRC, this->steps_.Tensor(x_, descs.x)},
                        {DNNL_ARG_DST, this->steps_.Tensor(out_, descs.out)}});
    });
  }

  Status Run(KernelRun& k) override {
    const T* x = k[x_].template Data<T>();
    if (!this->steps_.empty() && !(this->g_.is_max && HoldsNan(k[x_]))) return this->steps_.Run(k);
    T* out = k[out_].template Data<T>();
    this->EachPlane([&](Dim n, Dim c) {
      this->EachWindow(n, c, [&](Dim o, const Range& rows, const Range& columns) {
        T value = this->g_.is_max ? std::numeric_limits<T>::lowest() : T(0);
        for (Dim i = rows.begin; i < rows.end; ++i) {
          for (Dim j = columns.begin; j < columns.end; ++j) {
            const T element = x[this->x_shape_.At(n, c, i, j)];
            value = this->g_.is_max ? MaxOrNan(value, element) : value + element;
          }
        }
        out[o] = this->g_.is_max ? value : value / this->Divisor(rows, columns);
      });
    });
    return OkStatus();
  }

 private:
  // Without a branch in the loop, so that it becomes vector code: a small part of the pooling's own time.
  bool HoldsNan(const Tensor& x) const {
    const T* const data = x.Data<T>();
    const Dim count = x.count();
    int found = 0;
#pragma omp parallel for num_threads(this->threads_) schedule(static) reduction(| : found)
    for (Dim i = 0; i < count; ++i) found |= static_cast<int>(IsNan(data[i]));
    return found != 0;
  }

  Operand x_, out_;
};

// The gradient of a mean is oneDNN's; that of a maximum is not, because Fluid's op has no slot for the record
// of where each maximum was: it is looked up again from X and Out.
template <typename Device, typename T>
class Pool2dGradKernel : public PoolKernelBase<T> {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Input("Out");
    dout_ = k.Input("Out@GRAD");
    dx_ = k.Output("X@GRAD");
    PENSTOCK_RETURN_IF_ERROR(this->PrepareGeometry(k, dout_));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out", dout_.shape));
    if (!dx_ || !std::is_same_v<T, float> || this->g_.is_max || !OnednnCanPool(this->g_, this->x_shape_))
      return OkStatus();
    return OnednnTry(k, [&] {
      const PoolDescs descs(this->g_, this->x_shape_, this->out_shape_);
      const dnnl::pooling_backward::primitive_desc pd(
          {descs.algorithm, descs.x, descs.out, descs.strides, descs.kernel, descs.pad_begin, descs.pad_end},
          OnednnAttr(), OnednnEngine(), descs.Forward(dnnl::prop_kind::forward_training));
      this->steps_.Add(k, dnnl::pooling_backward(pd), pd.scratchpad_desc(),
                       {{DNNL_ARG_DIFF_DST, this->steps_.Tensor(dout_, descs.out)},
                        {DNNL_ARG_DIFF_SRC, this->steps_.Tensor(dx_, descs.x)}});
    });
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    if (!this->steps_.empty()) return this->steps_.Run(k);
    const T* x = k[x_].template Data<T>();
    const T* out = k[out_].template Data<T>();
    const T* dout = k[dout_].template Data<T>();
    T* dx = k[dx_].template Data<T>();
    this->EachPlane([&](Dim n, Dim c) {
      ClearPlane(dx, n, c);
      this->EachWindow(n, c, [&](Dim o, const Range& rows, const Range& columns) {
        if (this->g_.is_max) {
          AddToFirst(x, out[o], dout[o], dx, n, c, rows, columns);
        } else {
          AddToAll(dout[o] / this->Divisor(rows, columns), dx, n, c, rows, columns);
        }
      });
    });
    return OkStatus();
  }

 private:
  void ClearPlane(T* dx, Dim n, Dim c) const {
    for (Dim i = 0; i < this->x_shape_.height; ++i) {
      for (Dim j = 0; j < this->x_shape_.width; ++j) dx[this->x_shape_.At(n, c, i, j)] = T(0);
    }
  }
  void AddToFirst(const T* x, T largest, T d, T* dx, Dim n, Dim c, const Range& rows,
                  const Range& columns) const {
    for (Dim i = rows.begin; i < rows.end; ++i) {
      for (Dim j = columns.begin; j < columns.end; ++j) {
        const Dim at = this->x_shape_.At(n, c, i, j);
        if (x[at] != largest && !(IsNan(x[at]) && IsNan(largest))) continue;
        dx[at] += d;
        return;
      }
    }
  }
  void AddToAll(T d, T* dx, Dim n, Dim c, const Range& rows, const Range& columns) const {
    for (Dim i = rows.begin; i < rows.end; ++i) {
      for (Dim j = columns.begin; j < columns.end; ++j) dx[this->x_shape_.At(n, c, i, j)] += d;
    }
  }

  Operand x_, out_, dout_, dx_;
};

}  // namespace

void RegisterPool2d(OpRegistry& ops) {
  const std::vector<std::int32_t> ones = {1, 1};
  const std::vector<std::int32_t> zeros = {0, 0};
  ops.Add("pool2d")
      .Doc("The largest element or the mean of each window.", kDoc)
      .Input("X", "the images, [images, channels, height, width]", Floats())
      .Output("Out", "one element for each window", SameTypeAs("X"))
      .RequiredAttr("pooling_type", AttrKind::kString, "what is taken of a window", OneOf({"max", "avg"}))
      .RequiredAttr("ksize", AttrKind::kInts,
                    "the window's height and width; the number of windows if adaptive")
      .Attr("global_pooling", false,
            "whether one window covers the image; ksize and paddings do not count then")
      .Attr("strides", ones, "distance of neighbouring windows: height, width")
      .Attr("paddings", zeros, "around X: height, width; or top, bottom, left, right")
      .Attr("exclusive", true, "whether a mean leaves out the padding")
      .Attr("adaptive", false, "whether ksize is the number of windows")
      .Attr("use_cudnn", false, kNoEffect)
      .Attr("ceil_mode", false, "whether the number of windows is rounded up")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("use_quantizer", false, kNoEffect)
      .Attr("data_format", "NCHW", "the order of X's and Out's extents; AnyLayout is NCHW",
            OneOf({"AnyLayout", "NCHW", "NHWC"}))
      .Attr("is_test", false, kNoEffect)
      .Attr("padding_algorithm", "EXPLICIT", "what pads", OneOf({"EXPLICIT", "SAME", "VALID"}))
      .Nan(
          "the largest element of a window with a NaN is NaN; its gradient goes to the first NaN of the "
          "window.")
      .InferShape(InferPool2d)
      .Kernel<Cpu, Pool2dKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Out"}, .yields = {"X"}})
      .GradKernel<Cpu, Pool2dGradKernel, float, double>();
}

}  // namespace penstock
