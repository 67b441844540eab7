// fc, fusion_repeated_fc_relu: fully connected layers, each as one op.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/nan.h"
#include "operators/common/parallel.h"
#include "operators/math/matmul_device.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = flatten(Input, in_num_col_dims) . W + Bias, followed by relu if activation_type is relu

flatten(T, n) views T as a matrix; the first n dimensions of T form its rows. Out has the first
in_num_col_dims dimensions of Input, then the width of W. With padding_weights, W has four unused rows and
four unused columns at the end. Inference programs use this op in place of mul, elementwise_add and relu, so
it has no gradient.)";

constexpr char kRepeatedDoc[] = R"(
ReluOut[0] = relu(X . W[0] + Bias[0])
ReluOut[i] = relu(ReluOut[i - 1] . W[i] + Bias[i])

Out is the result of the last layer; ReluOut holds the results of the others. Inference programs use this op
in place of a chain of layers, so it has no gradient.)";

// The number of unused rows, and of unused columns, of W with padding_weights.
constexpr Dim kWeightPadding = 4;

Dim Less(Dim extent, Dim padding) { return extent == kUnknownDim ? extent : extent - padding; }

// Whether `bias` holds one element for each of `width` columns, as [width] or [1, width].
bool IsBiasOf(const Shape& bias, Dim width) {
  return Compatible(bias, Shape{width}) || Compatible(bias, Shape{1, width});
}

Status InferFc(InferContext& c) {
  const Shape &input = c.ShapeOf("Input"), &w = c.ShapeOf("W");
  const int rows_to = c.Attr<std::int32_t>("in_num_col_dims");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Input", rows_to));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("W", 2));
  const Dim padding = c.Attr<bool>("padding_weights") ? kWeightPadding : 0;
  for (const Dim extent : w.dims()) {
    if (extent != kUnknownDim && extent < padding)
      return c.Error("with padding_weights, W (", w, ") must have at least ", padding, " rows and columns");
  }
  const Dim width = input.Product(rows_to, input.rank()), height = Less(w[0], padding);
  const Dim out = Less(w[1], padding);
  if (!Compatible(width, height))
    return c.Error("width of Input (", width, ") must equal height of W (", height, ")");
  if (c.HasInput("Bias") && !IsBiasOf(c.ShapeOf("Bias"), out))
    return c.Error("Bias (", c.ShapeOf("Bias"), ") must be ", Shape{out}, " or ", Shape{1, out});
  c.ShareLod("Input", "Out");
  return c.SetShape("Out", Concat(input.First(rows_to), Shape{out}));
}

// One layer: out = x . w + bias, and relu.
template <typename Device, typename T>
class FcLayer {
 public:
  Status Prepare(KernelSetup& k, const MatrixSlot& x, const MatrixSlot& w, const Operand& bias,
                 const MatrixSlot& out, bool relu) {
    out_ = out;
    relu_ = relu;
    return product_.PrepareWithRow(k, x, w, out, bias);
  }
  Status Run(KernelRun& k) {
    PENSTOCK_RETURN_IF_ERROR(product_.Run(k));
    if (!relu_) return OkStatus();
    T* const out = k[out_.operand].template Data<T>();
    ForElements(out_.rows * out_.columns, StreamNs<T>(2), [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) out[i] = MaxOrNan(out[i], T{0});
    });
    return OkStatus();
  }

 private:
  MatMul<Device, T> product_;
  MatrixSlot out_;
  bool relu_ = false;
};

template <typename Device, typename T>
class FcKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const int rows_to = k.Attr<std::int32_t>("in_num_col_dims");
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot x, AsMatrix(k, k.Input("Input"), rows_to));
    PENSTOCK_ASSIGN_OR_RETURN(MatrixSlot w, AsMatrix(k, k.Input("W"), 1));
    PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot out, AsMatrix(k, k.Output("Out"), rows_to));
    if (k.Attr<bool>("padding_weights")) {
      w.rows -= kWeightPadding;
      w.columns -= kWeightPadding;
    }
    return layer_.Prepare(k, x, w, k.Input("Bias"), out, k.Attr<std::string>("activation_type") == "relu");
  }
  Status Run(KernelRun& k) override { return layer_.Run(k); }

 private:
  FcLayer<Device, T> layer_;
};

Status InferRepeatedFc(InferContext& c) {
  const int layers = c.InputCount("W");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  if (layers < 2) return c.Error("there must be at least 2 layers, so 2 arguments of W, not ", layers);
  if (c.InputCount("Bias") != layers || c.OutputCount("ReluOut") != layers - 1)
    return c.Error("W has ", layers, " arguments, so Bias must have ", layers, ", not ", c.InputCount("Bias"),
                   ", and ReluOut ", layers - 1, ", not ", c.OutputCount("ReluOut"));
  Dim width = c.ShapeOf("X")[1];
  for (int i = 0; i < layers; ++i) {
    const Shape &w = c.ShapeOf("W", i), &bias = c.ShapeOf("Bias", i);
    if (w.rank() != 2 || !Compatible(w[0], width))
      return c.Error("W[", i, "] (", w, ") must be a matrix of ", width, " rows");
    width = w[1];
    if (!IsBiasOf(bias, width))
      return c.Error("Bias[", i, "] (", bias, ") must be ", Shape{width}, " or ", Shape{1, width});
    const bool last = i + 1 == layers;
    PENSTOCK_RETURN_IF_ERROR(
        c.SetShape(last ? "Out" : "ReluOut", last ? 0 : i, Shape{c.ShapeOf("X")[0], width}));
  }
  c.ShareLod("X", "Out");
  return OkStatus();
}

template <typename Device, typename T>
class RepeatedFcKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const auto weights = k.Inputs("W"), biases = k.Inputs("Bias"), inner = k.Outputs("ReluOut");
    layers_.resize(weights.size());
    PENSTOCK_ASSIGN_OR_RETURN(MatrixSlot x, AsMatrix(k, k.Input("X"), 1));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot w, AsMatrix(k, weights[i], 1));
      PENSTOCK_ASSIGN_OR_RETURN(const MatrixSlot out,
                                AsMatrix(k, i < inner.size() ? inner[i] : k.Output("Out"), 1));
      PENSTOCK_RETURN_IF_ERROR(layers_[i].Prepare(k, x, w, biases[i], out, true));
      x = out;
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    for (FcLayer<Device, T>& layer : layers_) PENSTOCK_RETURN_IF_ERROR(layer.Run(k));
    return OkStatus();
  }

 private:
  std::vector<FcLayer<Device, T>> layers_;
};

}  // namespace

void RegisterFc(OpRegistry& ops) {
  ops.Add("fc")
      .Doc("A fully connected layer.", kDoc)
      .Input("Input", "of rank above in_num_col_dims", Floats())
      .Input("W", "[width of Input, width of Out]", SameTypeAs("Input"))
      .Input("Bias", "[width of Out] or [1, width of Out]", SameTypeAs("Input"), Optional())
      .Output("Out", "the result of the layer", SameTypeAs("Input"), Apart())
      .Attr("in_num_col_dims", 1, "the number of leading dimensions of Input that form the rows", AtLeast(1))
      .Attr("activation_type", "", "the activation applied to the result; empty: none", OneOf({"", "relu"}))
      .Attr("padding_weights", false, "whether W has four unused rows and columns")
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("use_quantizer", false, kNoEffect)
      .Attr("Scale_in", 1.0f, kNoEffect)
      .Attr("Scale_weights", std::vector<float>{1.0f}, kNoEffect)
      .Attr("Scale_out", 1.0f, kNoEffect)
      .Attr("force_fp32_output", false, kNoEffect)
      .InferShape(InferFc)
      .Kernel<Cpu, FcKernel, float, double>()
      .NoGrad();
  ops.Add("fusion_repeated_fc_relu")
      .Doc("A chain of fully connected layers with relu.", kRepeatedDoc)
      .Input("X", "[rows, width]", Floats())
      .Input("W", "one matrix per layer", SameTypeAs("X"), Repeated())
      .Input("Bias", "[width] or [1, width] for each layer", SameTypeAs("X"), Repeated())
      .Output("ReluOut", "the results of all layers except the last", SameTypeAs("X"),
              Repeated() | Intermediate() | Apart())
      .Output("Out", "the result of the last layer", SameTypeAs("X"), Apart())
      .InferShape(InferRepeatedFc)
      .Kernel<Cpu, RepeatedFcKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
