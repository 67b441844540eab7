// sequence_conv, fusion_seqconv_eltadd_relu: a convolution along each sequence, and one with a bias and relu.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/grad_args.h"
#include "operators/common/lod.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/recurrent.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = (X[i + contextStart], ..., X[i + contextStart + contextLength - 1]) . Filter

The rows of a window are concatenated. Rows beyond the ends of the innermost sequence of i are zero or, with
paddingTrainable, rows of PaddingData: first those before the beginning, then those after the end, each in
order of position.)";

constexpr char kFusedDoc[] = R"(
Out = relu(ColMat . Filter + Bias)

Row i of ColMat concatenates X[i + contextStart], ..., X[i + contextStart + contextLength - 1]; rows beyond
the ends of the innermost sequence of i are zero. Inference programs use this op in place of sequence_conv,
elementwise_add and relu, so it has no gradient.)";

// The largest number of rows of a window before the beginning and after the end of a sequence.
struct Window {
  Dim start = 0, length = 1;
  Dim before() const { return std::max<Dim>(0, -start); }
  Dim after() const { return std::max<Dim>(0, start + length - 1); }
};

template <typename Context>
Window WindowOf(const Context& c) {
  return {c.template Attr<std::int32_t>("contextStart"), c.template Attr<std::int32_t>("contextLength")};
}

// Sets the shapes that follow from X and Filter, in both ops.
Status InferWindows(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Filter", 2));
  const Shape& x = c.ShapeOf("X");
  const Shape& filter = c.ShapeOf("Filter");
  const Window window = WindowOf(c);
  if (c.Attr<std::int32_t>("contextStride") != 1)
    return c.Error("contextStride (", c.Attr<std::int32_t>("contextStride"), ") must be 1");
  if (x[1] != kUnknownDim && !Compatible(filter[0], window.length * x[1])) {
    return c.Error("height of Filter (", filter[0], ") must be contextLength (", window.length,
                   ") times the width of X (", x[1], ")");
  }
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {x[0], filter[1]});
}

Status InferSequenceConv(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(InferWindows(c));
  if (c.Attr<bool>("paddingTrainable")) {
    const Window window = WindowOf(c);
    if (!c.HasInput("PaddingData")) return c.Error("paddingTrainable needs input PaddingData");
    const Shape padding = {window.before() + window.after(), c.ShapeOf("X")[1]};
    if (!Compatible(c.ShapeOf("PaddingData"), padding))
      return c.Error("shape of PaddingData (", c.ShapeOf("PaddingData"), ") must be ", padding);
  }
  return OkStatus();
}

Status InferFusedConv(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(InferWindows(c));
  const Shape &filter = c.ShapeOf("Filter"), &bias = c.ShapeOf("Bias");
  if (!Compatible(bias, Shape{filter[1]}) && !Compatible(bias, Shape{1, filter[1]}))
    return c.Error("Bias (", bias, ") must be ", Shape{filter[1]}, " or ", Shape{1, filter[1]});
  return c.SetShape("ColMat", {c.ShapeOf("X")[0], filter[0]});
}

// Calls visit(position in the windows, row of X or -1, row of PaddingData or -1) for each row of each window.
template <typename Visit>
void EachWindowRow(const Offsets& x, const Window& window, Visit&& visit) {
  Dim at = 0;
  for (Dim s = 0; s < x.count(); ++s) {
    for (Dim i = 0; i < x.length(s); ++i) {
      for (Dim r = i + window.start; r < i + window.start + window.length; ++r, ++at) {
        if (r < 0) {
          visit(at, Dim{-1}, window.before() + r);
        } else if (r >= x.length(s)) {
          visit(at, Dim{-1}, window.before() + r - x.length(s));
        } else {
          visit(at, x.begin(s) + r, Dim{-1});
        }
      }
    }
  }
}

// Copies the windows to the rows of a matrix. If `padding` is null, it is zero.
template <typename T>
void FillWindows(const Offsets& offsets, const Window& window, const T* x, const T* padding, Dim width,
                 T* to) {
  EachWindowRow(offsets, window, [&](Dim at, Dim row, Dim pad) {
    if (row >= 0) {
      std::copy_n(x + row * width, width, to + at * width);
    } else if (padding != nullptr) {
      std::copy_n(padding + pad * width, width, to + at * width);
    } else {
      std::fill_n(to + at * width, width, T{0});
    }
  });
}

template <typename Device, typename T>
class SequenceConvKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(filter_);
    padding_ = k.Attr<bool>("paddingTrainable") ? k.Input("PaddingData") : Operand();
    k.Bind(out_);
    window_ = WindowOf(k);
    threads_ = k.threads();
    windows_.Prepare(k, k.Input("X").shape.Count() * window_.length);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets offsets, x_.Innermost(k));
    const Dim rows = k[x_.operand()].shape()[0], width = k[x_.operand()].shape()[1];
    const T* const padding = padding_ ? std::as_const(k[padding_]).template Data<T>() : nullptr;
    FillWindows(offsets, window_, std::as_const(k[x_.operand()]).template Data<T>(), padding, width,
                windows_.At(k));
    const Dim height = window_.length * width, channels = k[filter_].shape()[1];
    return Gemm<T>(RowMajor<const T>(windows_.At(k), rows, height),
                   RowMajor(std::as_const(k[filter_]).template Data<T>(), height, channels),
                   RowMajor(k[out_].template Data<T>(), rows, channels), {.threads = threads_});
  }

 private:
  SequenceInput x_;
  In<"Filter"> filter_;
  Out<"Out"> out_;
  Operand padding_;
  Window window_;
  int threads_ = 1;
  Scratch<T> windows_;
};

template <typename Device, typename T>
class FusedSequenceConvKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(filter_, bias_, out_);
    window_ = WindowOf(k);
    threads_ = k.threads();
    windows_.Prepare(k, "ColMat", k.Input("X").shape.Count() * window_.length);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets offsets, x_.Innermost(k));
    const Dim rows = k[out_].shape()[0], channels = k[out_].shape()[1], height = k[filter_].shape()[0];
    FillWindows<T>(offsets, window_, std::as_const(k[x_.operand()]).template Data<T>(), nullptr,
                   k[x_.operand()].shape()[1], windows_.At(k));
    T* const out = k[out_].template Data<T>();
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(windows_.At(k), rows, height),
                                     RowMajor(std::as_const(k[filter_]).template Data<T>(), height, channels),
                                     RowMajor(out, rows, channels), {.threads = threads_}));
    AddToRows(std::as_const(k[bias_]).template Data<T>(), rows, channels, out);
    for (Dim i = 0; i < rows * channels; ++i) out[i] = MaxOrNan(out[i], T{0});
    return OkStatus();
  }

 private:
  SequenceInput x_;
  In<"Filter"> filter_;
  In<"Bias"> bias_;
  Out<"Out"> out_;
  Window window_;
  int threads_ = 1;
  OutputOrScratch<T> windows_;
};

template <typename Device, typename T>
class SequenceConvGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(filter_);
    padding_ = k.Attr<bool>("paddingTrainable") ? k.Input("PaddingData") : Operand();
    k.Bind(dout_, dx_, dfilter_, dpadding_);
    window_ = WindowOf(k);
    threads_ = k.threads();
    const Shape& x = k.Input("X").shape;
    if (x.rank() != 2 || k[filter_].shape.rank() != 2)
      return k.Error("X (", x, ") and Filter (", k[filter_].shape, ") must have rank 2");
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Filter", {window_.length * x[1], k[filter_].shape[1]}));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", {x[0], k[filter_].shape[1]}));
    if (padding_)
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "PaddingData", {window_.before() + window_.after(), x[1]}));
    if (dpadding_ && !padding_) return k.Error("PaddingData@GRAD is requested, but PaddingData is not used");
    windows_.Prepare(k, x.Count() * window_.length);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets offsets, x_.Innermost(k));
    const Dim rows = k[x_.operand()].shape()[0], width = k[x_.operand()].shape()[1];
    const Dim height = window_.length * width, channels = k[filter_].shape()[1];
    const MatrixView<const T> dout = RowMajor(std::as_const(k[dout_]).template Data<T>(), rows, channels);
    T* const windows = windows_.At(k);
    if (dfilter_) {
      const T* const padding = padding_ ? std::as_const(k[padding_]).template Data<T>() : nullptr;
      FillWindows(offsets, window_, std::as_const(k[x_.operand()]).template Data<T>(), padding, width,
                  windows);
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(RowMajor<const T>(windows, rows, height)), dout,
                                       RowMajor(k[dfilter_].template Data<T>(), height, channels),
                                       {.threads = threads_}));
    }
    if (!dx_ && !dpadding_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(
        Gemm<T>(dout, Transposed(RowMajor(std::as_const(k[filter_]).template Data<T>(), height, channels)),
                RowMajor(windows, rows, height), {.threads = threads_}));
    AddWindows(k, offsets, windows, width);
    return OkStatus();
  }

 private:
  // Sums the gradient of each row over the windows that contain it.
  void AddWindows(KernelRun& k, const Offsets& offsets, const T* dwindows, Dim width) {
    for (const Operand output : std::initializer_list<Operand>{dx_, dpadding_}) {
      if (output) std::ranges::fill(k[output].template Span<T>(), T{0});
    }
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dpadding = dpadding_ ? k[dpadding_].template Data<T>() : nullptr;
    EachWindowRow(offsets, window_, [&](Dim at, Dim row, Dim pad) {
      T* const to = row >= 0 ? dx : dpadding;
      if (to == nullptr) return;
      T* const sum = to + std::max(row, pad) * width;
      for (Dim j = 0; j < width; ++j) sum[j] += dwindows[at * width + j];
    });
  }

  SequenceInput x_;
  In<"Filter"> filter_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Filter@GRAD"> dfilter_;
  Out<"PaddingData@GRAD"> dpadding_;
  Operand padding_;
  Window window_;
  int threads_ = 1;
  Scratch<T> windows_;
};

// As in Fluid, PaddingData is an argument only if it is used.
Result<std::vector<Op>> SequenceConvGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  Op grad("sequence_conv_grad");
  std::vector<std::string> slots = {"X", "Filter"};
  if (forward.GetOr("paddingTrainable", false)) slots.emplace_back("PaddingData");
  bool wanted = false;
  for (const std::string& slot : slots) {
    const std::string name = request.grad_of(forward.InputName(slot));
    grad.AddInput(slot, forward.Input(slot));
    grad.AddOutput(slot + kGradSuffix, OneOrNone(name));
    wanted = wanted || !name.empty();
  }
  if (!wanted) return std::vector<Op>{};
  grad.AddInput("Out@GRAD", {request.grad_of(forward.OutputName("Out"))});
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterSequenceConv(OpRegistry& ops) {
  ops.Add("sequence_conv")
      .Doc("A convolution along each sequence.", kDoc)
      .Input("X", "rows in sequences", Floats())
      .Input("PaddingData", "the rows beyond the ends of a sequence", SameTypeAs("X"), Optional())
      .Input("Filter", "[contextLength * width of X, channels]", SameTypeAs("X"))
      .Output("Out", "one row of channels for each row of X", SameTypeAs("X"), Apart())
      .Attr("paddingTrainable", false, "whether PaddingData is used")
      .RequiredAttr("contextLength", AttrKind::kInt, "the number of rows per window", AtLeast(1))
      .Attr("contextStart", 0, "the first row of a window, relative to the row of Out")
      .Attr("contextStride", 1, "must be 1: one window per row")
      .InferShape(InferSequenceConv)
      .Kernel<Cpu, SequenceConvKernel, float, double>()
      .Grad(
          {.reads = {"X", "PaddingData", "Filter"}, .yields = {"X", "PaddingData", "Filter"}, .apart = {"X"}})
      .GradMadeBy(SequenceConvGrad)
      .GradKernel<Cpu, SequenceConvGradKernel, float, double>();
  ops.Add("fusion_seqconv_eltadd_relu")
      .Doc("A convolution along each sequence, with a bias and relu.", kFusedDoc)
      .Input("X", "rows in sequences", Floats())
      .Input("Filter", "[contextLength * width of X, channels]", SameTypeAs("X"))
      .Input("Bias", "[channels] or [1, channels]", SameTypeAs("X"))
      .Output("Out", "one row of channels for each row of X", SameTypeAs("X"), Apart())
      .Output("ColMat", "the window of each row of X", SameTypeAs("X"), Intermediate() | Apart())
      .RequiredAttr("contextLength", AttrKind::kInt, "the number of rows per window", AtLeast(1))
      .Attr("contextStart", 0, "the first row of a window, relative to the row of Out")
      .Attr("contextStride", 1, "must be 1: one window per row")
      .InferShape(InferFusedConv)
      .Kernel<Cpu, FusedSequenceConvKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
