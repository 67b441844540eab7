// sequence_softmax: softmax over the rows of each sequence.
#include <algorithm>
#include <cmath>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = exp(X[i] - m) / sum over j of exp(X[j] - m)

i and j are rows of one innermost sequence, and m is its largest element. X has one element per row. An empty
sequence yields no elements.)";

Status InferSequenceSoftmax(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  if (!Compatible(x.RowWidth(), 1)) return c.Error("a row of X (", x, ") must have one element");
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class SequenceSoftmaxKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(out_);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));
    const T* const from = k[x_.operand()].template Data<T>();
    T* const out = k[out_].template Data<T>();
    for (Dim s = 0; s < x.count(); ++s) {
      if (x.length(s) == 0) continue;
      const T largest = *std::max_element(from + x.begin(s), from + x.end(s));
      T sum = 0;
      for (Dim i = x.begin(s); i < x.end(s); ++i) sum += out[i] = std::exp(from[i] - largest);
      for (Dim i = x.begin(s); i < x.end(s); ++i) out[i] /= sum;
    }
    return OkStatus();
  }

 private:
  SequenceInput x_;
  Out<"Out"> out_;
};

// dX[i] = Out[i] * (dOut[i] - sum over j of dOut[j] * Out[j])
template <typename Device, typename T>
class SequenceSoftmaxGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(out_, dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out", k.Input("X").shape.Count()));
    return RequireCount(k, "Out@GRAD", k.Input("X").shape.Count());
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));
    const T* const out = k[out_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    for (Dim s = 0; s < x.count(); ++s) {
      T sum = 0;
      for (Dim i = x.begin(s); i < x.end(s); ++i) sum += out[i] * dout[i];
      for (Dim i = x.begin(s); i < x.end(s); ++i) dx[i] = out[i] * (dout[i] - sum);
    }
    return OkStatus();
  }

 private:
  SequenceInput x_;
  In<"Out"> out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

}  // namespace

void RegisterSequenceSoftmax(OpRegistry& ops) {
  ops.Add("sequence_softmax")
      .Doc("Softmax over the rows of each sequence.", kDoc)
      .Input("X", "rows of one element, in sequences", Floats())
      .Output("Out", "values that sum to 1 in each sequence", SameTypeAs("X"))
      .Attr("use_cudnn", false, kNoEffect)
      .Attr("data_format", "AnyLayout", kNoEffect)
      .InferShape(InferSequenceSoftmax)
      .Kernel<Cpu, SequenceSoftmaxKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Out"}, .yields = {"X"}})
      .GradKernel<Cpu, SequenceSoftmaxGradKernel, float, double>()
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"X"}));
}

}  // namespace penstock
