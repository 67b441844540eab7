// fusion_seqexpand_concat_fc: a fully connected layer over rows of sequences concatenated with one row per
// sequence.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/gate_activation.h"
#include "operators/sequence/recurrent.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = fc_activation((X[0][i], X[1][s], X[2][s], ...) . FCWeight + FCBias)

s is the innermost sequence of X[0] to which row i belongs; the rows are concatenated. FCOut[s] is the part of
the product that the rows of s share, that of X[1], X[2], ... Inference programs use this op in place of
sequence_expand, concat, mul, elementwise_add and an activation, so it has no gradient.)";

Status InferExpandFc(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("FCWeight", 2));
  const Shape& weight = c.ShapeOf("FCWeight");
  const int count = c.InputCount("X");
  if (count < 2) return c.Error("X must have at least 2 arguments, not ", count);
  Dim height = 0;
  for (int i = 0; i < count; ++i) {
    const Shape& x = c.ShapeOf("X", i);
    if (x.rank() != 2 || x[1] == kUnknownDim)
      return c.Error("X[", i, "] (", x, ") must be a matrix of known width");
    if (i > 1 && !Compatible(x[0], c.ShapeOf("X", 1)[0]))
      return c.Error("X[", i, "] (", x, ") must have as many rows as X[1] (", c.ShapeOf("X", 1), ")");
    height += x[1];
  }
  if (!Compatible(weight[0], height))
    return c.Error("height of FCWeight (", weight[0], ") must be the sum of the widths of X (", height, ")");
  if (c.HasInput("FCBias")) {
    const Shape& bias = c.ShapeOf("FCBias");
    if (!Compatible(bias, Shape{weight[1]}) && !Compatible(bias, Shape{1, weight[1]}))
      return c.Error("FCBias (", bias, ") must be ", Shape{weight[1]}, " or ", Shape{1, weight[1]});
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("FCOut", {c.ShapeOf("X", 1)[0], weight[1]}));
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {c.ShapeOf("X")[0], weight[1]});
}

template <typename Device, typename T>
class ExpandFcKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    const auto inputs = k.Inputs("X");
    wholes_.assign(inputs.begin() + 1, inputs.end());
    k.Bind(weight_, bias_, out_);
    activation_ = GateActivationOf(k.Attr<std::string>("fc_activation"));
    options_ = {.threads = k.threads()};
    shared_.Prepare(k, "FCOut", inputs[1].shape[0] * k[out_].shape[1]);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, x_.Innermost(k));
    const Dim rows = k[out_].shape()[0], width = k[out_].shape()[1], depth = k[x_.operand()].shape()[1];
    if (k[wholes_.front()].shape()[0] != sequences.count())
      return LodError("fusion_seqexpand_concat_fc: X[1] has ", k[wholes_.front()].shape()[0],
                      " rows; X[0] has ", sequences.count(), " sequences");
    const T* const weight = std::as_const(k[weight_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(std::as_const(k[x_.operand()]).template Data<T>(), rows, depth),
                                     RowMajor(weight, depth, width), RowMajor(out, rows, width), options_));
    if (bias_) AddToRows(std::as_const(k[bias_]).template Data<T>(), rows, width, out);
    PENSTOCK_RETURN_IF_ERROR(RunWholes(k, weight + depth * width));
    const T* const shared = shared_.At(k);
    for (Dim s = 0; s < sequences.count(); ++s)
      AddToRows(shared + s * width, sequences.length(s), width, out + sequences.begin(s) * width);
    Activate(activation_, false, out, rows * width);
    return OkStatus();
  }

 private:
  // Computes FCOut; `weight` begins at the rows multiplied by X[1].
  Status RunWholes(KernelRun& k, const T* weight) {
    const Dim rows = k[wholes_.front()].shape()[0], width = k[out_].shape()[1];
    GemmOptions options = options_;
    for (const Operand& x : wholes_) {
      const Dim depth = k[x].shape()[1];
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(std::as_const(k[x]).template Data<T>(), rows, depth),
                                       RowMajor(weight, depth, width), RowMajor(shared_.At(k), rows, width),
                                       options));
      options.add = true;
      weight += depth * width;
    }
    return OkStatus();
  }

  SequenceInput x_;
  std::vector<Operand> wholes_;  // X[1], X[2], ...
  In<"FCWeight"> weight_;
  In<"FCBias"> bias_;
  Out<"Out"> out_;
  GateActivation activation_ = GateActivation::kIdentity;
  GemmOptions options_;
  OutputOrScratch<T> shared_;
};

}  // namespace

void RegisterFusionSeqexpandConcatFc(OpRegistry& ops) {
  ops.Add("fusion_seqexpand_concat_fc")
      .Doc("A fully connected layer over rows of sequences concatenated with one row per sequence.", kDoc)
      .Input("X", "rows in sequences, then matrices with one row per sequence", Floats(), Repeated())
      .Input("FCWeight", "[sum of the widths of X, width]", SameTypeAs("X"))
      .Input("FCBias", "[width] or [1, width]", SameTypeAs("X"), Optional())
      .Output("Out", "one row for each row of X[0]", SameTypeAs("X"), Apart())
      .Output("FCOut", "one row per sequence: the part of the product that its rows share", SameTypeAs("X"),
              Intermediate() | Apart())
      .Attr("fc_activation", "identity", "the activation applied to the result", GateActivationNames())
      .InferShape(InferExpandFc)
      .Kernel<Cpu, ExpandFcKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
