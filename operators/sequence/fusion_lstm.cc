// fusion_lstm, fused_embedding_fc_lstm: long short-term memory over sequences, including the computation of
// its input.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/fused_gates.h"
#include "operators/sequence/lstm_steps.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
XX = X . WeightX + the first 4 * width elements of Bias

Hidden and Cell are those of lstm with Input = XX, Weight = WeightH and a Bias of zeros, followed by the last
elements of Bias if use_peepholes is set. BatchedInput (the activated gates), BatchedHidden and BatchedCell
are in the order in which the steps run, the longest sequence first. ReorderedH0 and ReorderedC0 are H0 and C0
in the order of the first step; without H0 and C0 they have no rows. CheckedCell is a buffer of Fluid's, here
zeros. Inference programs use this op in place of mul, elementwise_add and lstm, so it has no gradient.)";

constexpr char kEmbeddingDoc[] = R"(
XX[i] = Embeddings[Ids[i]]

Hidden and Cell are those of lstm with Input = XX, Weight = WeightH and a Bias of zeros, followed by the last
elements of Bias if use_peepholes is set: a row of Embeddings already includes the product of an embedding
with the input weights, and all biases. The other outputs are those of fusion_lstm. An id outside the table is
an error. Inference programs use this op in place of lookup_table, mul, elementwise_add and lstm, so it has no
gradient.)";

constexpr Dim kGates = 4;

Status InferBias(InferContext& c, Dim width) {
  const Shape expected = {1, (c.Attr<bool>("use_peepholes") ? 7 : 4) * width};
  if (Compatible(c.ShapeOf("Bias"), expected)) return OkStatus();
  return c.Error("shape of Bias (", c.ShapeOf("Bias"), ") must be ", expected);
}

// Sets the shapes of the results of the steps.
Status InferSteps(InferContext& c, Dim rows, Dim width) {
  PENSTOCK_RETURN_IF_ERROR(InferBias(c, width));
  for (const char* slot : {"Cell", "BatchedHidden", "BatchedCell"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {rows, width}));
  const Dim sequences = c.HasInput("C0") ? c.ShapeOf("C0")[0] : 0;
  return c.SetShape("ReorderedC0", {sequences, width});
}

Status InferFusionLstm(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(const Dim width, InferFusedGates(c, kGates));
  PENSTOCK_RETURN_IF_ERROR(InferSteps(c, c.ShapeOf("X")[0], width));
  c.ShareLod("X", "Cell");
  return c.SetShape("CheckedCell", {2, width});
}

Status InferEmbeddingLstm(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(const Dim width, InferRecurrentWidth(c, kGates));
  const Shape &ids = c.ShapeOf("Ids"), &table = c.ShapeOf("Embeddings");
  if (!Compatible(ids, Shape{kUnknownDim, 1})) return c.Error("Ids (", ids, ") must be [rows, 1]");
  if (!Compatible(table, Shape{kUnknownDim, kGates * width}))
    return c.Error("shape of Embeddings (", table, ") must be [rows, ", kGates * width, "]");
  for (const char* slot : {"XX", "BatchedInput"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {ids[0], kGates * width}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Hidden", {ids[0], width}));
  const Dim sequences = c.HasInput("H0") ? c.ShapeOf("H0")[0] : 0;
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ReorderedH0", {sequences, width}));
  for (const char* slot : {"XX", "Hidden", "Cell"}) c.ShareLod("Ids", slot);
  return InferSteps(c, ids[0], width);
}

// Computes all steps, given their input.
template <typename T>
class FusedLstmSteps {
 public:
  // `input` names the slot whose sequences the steps follow.
  void Prepare(KernelSetup& k, std::string_view input) {
    input_.Prepare(k, input);
    const Dim rows = k.Input(input).shape[0], width = k.Input("WeightH").shape[0];
    s_.Prepare(k, {rows, kGates * width});
    k.Bind(weight_, bias_, hidden_, cell_);
    h0_.Prepare(k, "H0", width);
    c0_.Prepare(k, "C0", width);
    gates_.Prepare(k, "BatchedInput", kGates * rows * width);
    k.Bind(batch_out_, batch_cell_, first_out_, first_cell_);
  }

  Status Run(KernelRun& k, const T* inputs) {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, input_.Innermost(k));
    batches_.Make(sequences, s_.reversed);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    PENSTOCK_ASSIGN_OR_RETURN(const T* const c0, c0_.Find(k, sequences.count()));
    const auto written = [&k](const Operand& to) { return to ? k[to].template Data<T>() : nullptr; };
    if (h0 != nullptr && first_out_) batches_.GatherSequences(h0, s_.width, written(first_out_));
    if (c0 != nullptr && first_cell_) batches_.GatherSequences(c0, s_.width, written(first_cell_));
    // Bias is part of the input already.
    const T* const bias = std::as_const(k[bias_]).template Data<T>();
    return steps_.Run(s_, s_.WithBias(bias, false), batches_,
                      {.input = inputs,
                       .weight = std::as_const(k[weight_]).template Data<T>(),
                       .h0 = h0,
                       .c0 = c0,
                       .batch_gates = gates_.At(k),
                       .cell = written(cell_),
                       .out = written(hidden_),
                       .batch_cell = written(batch_cell_),
                       .batch_out = written(batch_out_)});
  }

 private:
  LstmSetup<T> s_;
  SequenceInput input_;
  InitialState<T> h0_, c0_;
  In<"WeightH"> weight_;
  In<"Bias"> bias_;
  Out<"Hidden"> hidden_;
  Out<"Cell"> cell_;
  Out<"BatchedHidden"> batch_out_;
  Out<"BatchedCell"> batch_cell_;
  Out<"ReorderedH0"> first_out_;
  Out<"ReorderedC0"> first_cell_;
  StepBatches batches_;
  OutputOrScratch<T> gates_;  // in the order of the batches
  LstmSteps<T> steps_;
};

template <typename Device, typename T>
class FusionLstmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    steps_.Prepare(k, "X");
    product_.Prepare(k, kGates * k.Input("WeightH").shape[0]);
    k.Bind(checked_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (checked_) std::ranges::fill(k[checked_].template Span<T>(), T{0});
    PENSTOCK_ASSIGN_OR_RETURN(const T* const inputs, product_.Run(k));
    return steps_.Run(k, inputs);
  }

 private:
  FusedLstmSteps<T> steps_;
  GateProduct<T> product_;
  Out<"CheckedCell"> checked_;
};

template <typename Device, typename T>
class EmbeddingLstmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    steps_.Prepare(k, "Ids");
    k.Bind(ids_, table_);
    xx_.Prepare(k, "XX", k[ids_].shape[0] * k[table_].shape[1]);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const Dim height = k[table_].shape()[0], width = k[table_].shape()[1];
    const T* const table = std::as_const(k[table_]).template Data<T>();
    T* xx = xx_.At(k);
    for (const std::int64_t id : std::as_const(k[ids_]).template Span<std::int64_t>()) {
      if (id < 0 || id >= height)
        return InvalidArgument("E-op-index", "fused_embedding_fc_lstm: id ", id, " is outside the table of ",
                               height, " rows");
      xx = std::copy_n(table + id * width, width, xx);
    }
    return steps_.Run(k, xx_.At(k));
  }

 private:
  FusedLstmSteps<T> steps_;
  In<"Ids"> ids_;
  In<"Embeddings"> table_;
  OutputOrScratch<T> xx_;
};

// Declares the slots and attributes of both ops that follow their input; `type` names the slot that gives the
// element type.
void DeclareSteps(OpDef& def, const std::string& type) {
  def.Input("WeightH", "[width, 4 * width], as lstm's Weight", SameTypeAs(type))
      .Input("Bias", "[1, 4 * width], or [1, 7 * width] with peepholes", SameTypeAs(type))
      .Input("H0", "the initial hidden state; zero if absent", SameTypeAs(type), Optional())
      .Input("C0", "the initial cell; zero if absent", SameTypeAs(type), Optional())
      .Output("Hidden", "[rows, width], the results of the steps", SameTypeAs(type), Apart())
      .Output("Cell", "the cell after each step", SameTypeAs(type), Apart())
      .Output("XX", "the input of the steps", SameTypeAs(type), Intermediate() | Apart())
      .Output("BatchedInput", "the activated gates", SameTypeAs(type), Intermediate() | Apart())
      .Output("BatchedHidden", "Hidden in the order of the steps", SameTypeAs(type), Intermediate() | Apart())
      .Output("BatchedCell", "Cell in the order of the steps", SameTypeAs(type), Intermediate() | Apart())
      .Output("ReorderedH0", "H0 in the order of the first step", SameTypeAs(type), Intermediate() | Apart())
      .Output("ReorderedC0", "C0 in the order of the first step", SameTypeAs(type), Intermediate() | Apart())
      .Attr("use_peepholes", true, "whether to use peephole connections")
      .Attr("is_reverse", false, "whether each sequence is processed from its last row to its first")
      .Attr("use_seq", true, kNoEffect)
      .Attr("gate_activation", "sigmoid", "the activation of the input, forget and output gates",
            GateActivationNames())
      .Attr("cell_activation", "tanh", "the activation of the cell output", GateActivationNames())
      .Attr("candidate_activation", "tanh", "the activation of the candidate", GateActivationNames());
}

}  // namespace

void RegisterFusionLstm(OpRegistry& ops) {
  OpDef& fused = ops.Add("fusion_lstm");
  fused.Doc("Long short-term memory over sequences, including the product with the input weights.", kDoc)
      .Input("X", "[rows, width of X], in sequences", Floats())
      .Input("WeightX", "[width of X, 4 * width]", SameTypeAs("X"));
  DeclareSteps(fused, "X");
  fused.Output("CheckedCell", "[2, width], zeros", SameTypeAs("X"), Intermediate() | Apart())
      .InferShape(InferFusionLstm)
      .Kernel<Cpu, FusionLstmKernel, float, double>()
      .NoGrad();
  OpDef& embedded = ops.Add("fused_embedding_fc_lstm");
  embedded.Doc("Long short-term memory over sequences of ids, whose input is rows of a table.", kEmbeddingDoc)
      .Input("Ids", "[rows, 1], in sequences", Only(DType::kInt64))
      .Input("Embeddings", "[rows, 4 * width]", Floats());
  DeclareSteps(embedded, "Embeddings");
  embedded.InferShape(InferEmbeddingLstm)
      .KernelTypeFrom("Embeddings")
      .Kernel<Cpu, EmbeddingLstmKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
