// var_conv_2d: a convolution over images of different sizes.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Sequence s of X is an image with InputChannel channels, stored as a column of elements; the lengths of
sequence s of ROW and COLUMN are its numbers of rows and columns. Out[s] is its convolution with W, with
OutputChannel channels, again stored as a column:

Out[s, o, y, x] = the sum over c, i, j of W[o, (c, i, j)]
                  * X[s, c, y * StrideH + i - KernelH / 2, x * StrideW + j - KernelW / 2]

Elements outside the image are 0, and KernelH / 2 and KernelW / 2 are rounded down. Out has
floor((rows - 1) / StrideH) + 1 rows and floor((columns - 1) / StrideW) + 1 columns, or none if the image has
none. Col stores the windows of all images for the gradient. Only the sequences of ROW and COLUMN are read.)";

struct WindowSizes {
  Dim channels = 1, out_channels = 1, kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  // The size of a window, or the largest number, which no W has.
  Dim Elements() const {
    constexpr Dim kMost = std::numeric_limits<Dim>::max();
    return kernel_h * kernel_w > kMost / channels ? kMost : channels * kernel_h * kernel_w;
  }
};

template <typename Context>
WindowSizes SizesOf(const Context& c) {
  const auto read = [&c](const char* name) -> Dim { return c.template Attr<std::int32_t>(name); };
  return {read("InputChannel"), read("OutputChannel"), read("KernelH"),
          read("KernelW"),      read("StrideH"),       read("StrideW")};
}

Status InferVarConv(InferContext& c) {
  const WindowSizes sizes = SizesOf(c);
  const Shape expected = {sizes.out_channels, sizes.Elements()};
  if (!Compatible(c.ShapeOf("X"), Shape{kUnknownDim, 1}))
    return c.Error("X (", c.ShapeOf("X"), ") must be [elements, 1]");
  if (!Compatible(c.ShapeOf("W"), expected))
    return c.Error("W (", c.ShapeOf("W"),
                   ") must be [OutputChannel, InputChannel * KernelH * KernelW], that is ", expected);
  for (const char* slot : {"Out", "Col"}) {
    c.SetLodLevel(slot, 1);
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {kUnknownDim, 1}));
  }
  return OkStatus();
}

// The sizes and positions of the images of one run.
class VariedImages {
 public:
  Status Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    sizes_ = SizesOf(k);
    x_.Prepare(k, "X");
    rows_.Prepare(k, "ROW");
    columns_.Prepare(k, "COLUMN");
    const Shape &x = k.Input("X").shape, &w = k.Input("W").shape;
    if (x.rank() == 2 && x[1] == 1 && w == Shape{sizes_.out_channels, sizes_.Elements()}) return OkStatus();
    return k.Error("X (", x, ") must be [elements, 1], and W (", w, ") [", sizes_.out_channels, ", ",
                   sizes_.Elements(), "]");
  }
  Status Load(KernelRun& k) {
    PENSTOCK_ASSIGN_OR_RETURN(xs_, x_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(heights_, rows_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(widths_, columns_.Innermost(k));
    if (heights_.count() != xs_.count() || widths_.count() != xs_.count())
      return LodError(type_, ": X has ", xs_.count(), " sequences, ROW ", heights_.count(), " and COLUMN ",
                      widths_.count(), "; the numbers must be equal");
    for (Dim s = 0; s < xs_.count(); ++s) {
      if (IsImage(s)) continue;
      return LodError(type_, ": sequence ", s, " of X has ", xs_.length(s), " elements, which are not ",
                      sizes_.channels, " channels of ", height(s), " rows and ", width(s), " columns");
    }
    return OkStatus();
  }

  const SequenceInput& x() const { return x_; }
  Dim count() const { return xs_.count(); }
  Dim begin(Dim s) const { return xs_.begin(s); }
  const WindowSizes& sizes() const { return sizes_; }
  // The number of elements of a channel of Out, for image s or for all images.
  Dim OutSize(Dim s) const { return Steps(height(s), sizes_.stride_h) * Steps(width(s), sizes_.stride_w); }
  Dim OutSize() const {
    Dim all = 0;
    for (Dim s = 0; s < count(); ++s) all += OutSize(s);
    return all;
  }

  // Calls visit(element of the windows of image s, element of the image or -1) for each element of each
  // window.
  template <typename Visit>
  void EachElement(Dim s, Visit visit) const {
    const Dim out_h = Steps(height(s), sizes_.stride_h), out_w = Steps(width(s), sizes_.stride_w);
    Dim at = 0;
    for (Dim c = 0; c < sizes_.channels; ++c) {
      for (Dim i = 0; i < sizes_.kernel_h; ++i) {
        for (Dim j = 0; j < sizes_.kernel_w; ++j) {
          for (Dim y = 0; y < out_h; ++y) {
            for (Dim x = 0; x < out_w; ++x) visit(at++, ElementAt(s, c, y, x, i, j));
          }
        }
      }
    }
  }

 private:
  static Dim Steps(Dim extent, Dim stride) { return extent == 0 ? 0 : (extent - 1) / stride + 1; }
  // Returns whether sequence s has as many elements as its rows and columns require; their product might
  // overflow.
  bool IsImage(Dim s) const {
    const Dim length = xs_.length(s), h = height(s), w = width(s);
    if (h == 0 || w == 0) return length == 0;
    return length % w == 0 && length / w % h == 0 && length / w / h == sizes_.channels;
  }
  Dim height(Dim s) const { return heights_.length(s); }
  Dim width(Dim s) const { return widths_.length(s); }
  Dim ElementAt(Dim s, Dim c, Dim y, Dim x, Dim i, Dim j) const {
    const Dim row = y * sizes_.stride_h + i - sizes_.kernel_h / 2;
    const Dim column = x * sizes_.stride_w + j - sizes_.kernel_w / 2;
    const bool inside = row >= 0 && row < height(s) && column >= 0 && column < width(s);
    return inside ? (c * height(s) + row) * width(s) + column : -1;
  }

  std::string type_;
  WindowSizes sizes_;
  SequenceInput x_, rows_, columns_;
  Offsets xs_, heights_, widths_;
};

template <typename Device, typename T>
class VarConvKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(w_);
    options_ = {.threads = k.threads()};
    PENSTOCK_RETURN_IF_ERROR(images_.Prepare(k));
    PENSTOCK_RETURN_IF_ERROR(windows_.Prepare(k, "Col", DTypeOfT<T>::kValue, {0, 1}));
    return out_.Prepare(k, "Out", DTypeOfT<T>::kValue, {0, 1});
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(images_.Load(k));
    const WindowSizes& sizes = images_.sizes();
    Tensor& made = out_.Make(k, images_.OutSize() * sizes.out_channels);
    Tensor& windows = windows_.Make(k, images_.OutSize() * sizes.Elements());
    const T* const w = std::as_const(k[w_]).template Data<T>();
    T *out = made.Data<T>(), *to = windows.Data<T>();
    lod_.Start(1);
    windows_lod_.Start(1);
    for (Dim s = 0; s < images_.count(); ++s) {
      const Dim size = images_.OutSize(s);
      const T* const image = std::as_const(k[images_.x().operand()]).template Data<T>() + images_.begin(s);
      images_.EachElement(s, [=](Dim at, Dim from) { to[at] = from < 0 ? T{0} : image[from]; });
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(w, sizes.out_channels, sizes.Elements()),
                                       RowMajor<const T>(to, sizes.Elements(), size),
                                       RowMajor(out, sizes.out_channels, size), options_));
      lod_.Add(0, sizes.out_channels * size);
      windows_lod_.Add(0, sizes.Elements() * size);
      out += sizes.out_channels * size;
      to += sizes.Elements() * size;
    }
    lod_.Set(made);
    windows_lod_.Set(windows);
    return OkStatus();
  }

 private:
  In<"W"> w_;
  GemmOptions options_;
  VariedImages images_;
  RowsOutput out_, windows_;
  MadeLod lod_, windows_lod_;
};

// dCol = W' . dOut   dW = dOut . Col'   dX: each element of an image sums dCol over the windows that contain
// it.
template <typename Device, typename T>
class VarConvGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(w_, windows_, dout_, dx_, dw_);
    options_ = {.threads = k.threads()};
    PENSTOCK_RETURN_IF_ERROR(images_.Prepare(k));
    dwindows_ = k.Workspace(static_cast<std::size_t>(k[windows_].shape.Count()) * sizeof(T));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(images_.Load(k));
    const WindowSizes& sizes = images_.sizes();
    const Dim height = sizes.Elements(), channels = sizes.out_channels;
    if (k[dout_].count() != images_.OutSize() * channels || k[windows_].count() != images_.OutSize() * height)
      return InvalidArgument("E-op-match", "var_conv_2d_grad: Out@GRAD holds ", k[dout_].count(), " and Col ",
                             k[windows_].count(), " elements; there must be ", images_.OutSize() * channels,
                             " and ", images_.OutSize() * height);
    for (const Operand made : std::initializer_list<Operand>{dx_, dw_}) {
      if (made) std::ranges::fill(k[made].template Span<T>(), T{0});
    }
    const auto w = RowMajor(std::as_const(k[w_]).template Data<T>(), channels, height);
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    const T* windows = std::as_const(k[windows_]).template Data<T>();
    T* const dwindows = reinterpret_cast<T*>(k.Workspace(dwindows_));
    GemmOptions adds = options_;
    adds.add = true;
    for (Dim s = 0; s < images_.count(); ++s) {
      const Dim size = images_.OutSize(s);
      const auto d = RowMajor(dout, channels, size);
      if (dw_) {
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(d, Transposed(RowMajor(windows, height, size)),
                                         RowMajor(k[dw_].template Data<T>(), channels, height), adds));
      }
      if (dx_) {
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(w), d, RowMajor(dwindows, height, size), options_));
        T* const dx = k[dx_].template Data<T>() + images_.begin(s);
        images_.EachElement(s, [=](Dim at, Dim to) {
          if (to >= 0) dx[to] += dwindows[at];
        });
      }
      dout += channels * size;
      windows += height * size;
    }
    return OkStatus();
  }

 private:
  In<"W"> w_;
  In<"Col"> windows_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"W@GRAD"> dw_;
  GemmOptions options_;
  VariedImages images_;
  WorkspaceId dwindows_;  // for one image
};

}  // namespace

void RegisterVarConv2d(OpRegistry& ops) {
  ops.Add("var_conv_2d")
      .Doc("A convolution over images of different sizes.", kDoc)
      .Input("X", "[elements of all images, 1], one sequence per image", Floats())
      .Input("ROW", "rows in sequences whose lengths are the heights of the images", AnyType())
      .Input("COLUMN", "rows in sequences whose lengths are the widths of the images", AnyType())
      .Input("W", "[OutputChannel, InputChannel * KernelH * KernelW]", SameTypeAs("X"))
      .Output("Out", "[elements of all results, 1], one sequence per image", SameTypeAs("X"), Apart())
      .Output("Col", "the windows of the images, as a column", SameTypeAs("X"), Apart())
      .Attr("InputChannel", 1, "the number of channels of an image", AtLeast(1))
      .Attr("OutputChannel", 1, "the number of channels of a result", AtLeast(1))
      .Attr("StrideH", 1, "the vertical distance between windows", AtLeast(1))
      .Attr("StrideW", 1, "the horizontal distance between windows", AtLeast(1))
      .Attr("KernelH", 1, "the height of a window", AtLeast(1))
      .Attr("KernelW", 1, "the width of a window", AtLeast(1))
      .InferShape(InferVarConv)
      .Kernel<Cpu, VarConvKernel, float, double>()
      .Grad({.reads = {"X", "W", "ROW", "COLUMN"},
             .reads_outputs = {"Col", "Out"},
             .yields = {"X", "W"},
             .of = {"Out"},
             .apart = {"X", "W"}})
      .GradKernel<Cpu, VarConvGradKernel, float, double>();
}

}  // namespace penstock
