// row_conv: the weighted sum of each row and the rows after it, element by element.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i, j] = sum over w of X[i + w, j] * Filter[w, j]

The sum covers the rows i + w that belong to the sequence of row i. X is rows in sequences, or
[sequences, steps, width] with sequences of equal length.)";

Status InferRowConv(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 1));
  if (x.rank() > 3) return c.Error("rank of X (", x, ") must be 2 or 3");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Filter", 2));
  if (!Compatible(c.ShapeOf("Filter")[1], x[x.rank() - 1]))
    return c.Error("width of Filter (", c.ShapeOf("Filter")[1], ") must equal that of X (", x[x.rank() - 1],
                   ")");
  return c.ShareAll("X", "Out");
}

// The rows of X, in sequences.
class RowSequences {
 public:
  void Prepare(const KernelSetup& k) {
    x_.Prepare(k, "X");
    const Shape& shape = k.Input("X").shape;
    width_ = shape[shape.rank() - 1];
  }
  const Operand& operand() const { return x_.operand(); }
  Dim width() const { return width_; }

  // Calls visit(first row, end) for each sequence.
  template <typename Visit>
  Status Each(KernelRun& k, Visit&& visit) const {
    const Shape& shape = k[operand()].shape();
    if (shape.rank() == 3) {
      for (Dim s = 0; s < shape[0]; ++s) visit(s * shape[1], (s + 1) * shape[1]);
      return OkStatus();
    }
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets offsets, x_.Innermost(k));
    for (Dim s = 0; s < offsets.count(); ++s) visit(offsets.begin(s), offsets.end(s));
    return OkStatus();
  }

 private:
  SequenceInput x_;
  Dim width_ = 0;
};

template <typename Device, typename T>
class RowConvKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k);
    k.Bind(filter_, out_);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_.operand()]).template Data<T>();
    const T* const filter = std::as_const(k[filter_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    std::ranges::fill(k[out_].template Span<T>(), T{0});
    const Dim width = x_.width(), context = k[filter_].shape()[0];
    return x_.Each(k, [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) {
        for (Dim w = 0; w < std::min(context, end - i); ++w) {
          for (Dim j = 0; j < width; ++j)
            out[i * width + j] += x[(i + w) * width + j] * filter[w * width + j];
        }
      }
    });
  }

 private:
  RowSequences x_;
  In<"Filter"> filter_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class RowConvGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Shape& x = k.Input("X").shape;
    if (x.rank() != 2 && x.rank() != 3) return k.Error("rank of X (", x, ") must be 2 or 3");
    x_.Prepare(k);
    k.Bind(filter_, dout_, dx_, dfilter_);
    if (k[filter_].shape.rank() != 2) return k.Error("rank of Filter (", k[filter_].shape, ") must be 2");
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Filter", {k[filter_].shape[0], x_.width()}));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", x));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    for (const Operand output : std::initializer_list<Operand>{dx_, dfilter_}) {
      if (output) std::ranges::fill(k[output].template Span<T>(), T{0});
    }
    const T* const x = std::as_const(k[x_.operand()]).template Data<T>();
    const T* const filter = std::as_const(k[filter_]).template Data<T>();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dfilter = dfilter_ ? k[dfilter_].template Data<T>() : nullptr;
    const Dim width = x_.width(), context = k[filter_].shape()[0];
    return x_.Each(k, [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) {
        for (Dim w = 0; w < std::min(context, end - i); ++w) {
          const T* const d = dout + i * width;
          if (dx != nullptr) {
            for (Dim j = 0; j < width; ++j) dx[(i + w) * width + j] += d[j] * filter[w * width + j];
          }
          if (dfilter != nullptr) {
            for (Dim j = 0; j < width; ++j) dfilter[w * width + j] += d[j] * x[(i + w) * width + j];
          }
        }
      }
    });
  }

 private:
  RowSequences x_;
  In<"Filter"> filter_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Filter@GRAD"> dfilter_;
};

}  // namespace

void RegisterRowConv(OpRegistry& ops) {
  ops.Add("row_conv")
      .Doc("The elementwise weighted sum of each row and the rows after it.", kDoc)
      .Input("X", "rows in sequences, or [sequences, steps, width]", Floats())
      .Input("Filter", "[context, width]: the weights of the row itself, then those of the rows after it",
             SameTypeAs("X"))
      .Output("Out", "the weighted sums", SameTypeAs("X"), Apart())
      .InferShape(InferRowConv)
      .Kernel<Cpu, RowConvKernel, float, double>()
      .Grad({.reads = {"X", "Filter"}, .yields = {"X", "Filter"}, .apart = {"X"}})
      .GradKernel<Cpu, RowConvGradKernel, float, double>()
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"X", "Filter"}));
}

}  // namespace penstock
