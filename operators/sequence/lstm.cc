// lstm, lstmp: long short-term memory over sequences, without and with a projection.
#include "operators/sequence/lstm.h"

#include <string>
#include <utility>

#include "operators/common/require_shape.h"
#include "operators/sequence/lstm_steps.h"

namespace penstock {
namespace {

constexpr char kLstmDoc[] = R"(
c' = candidate(x_c + b_c + h_before . W_c)
i  = gate(x_i + b_i + h_before . W_i + w_ic * cell_before)
f  = gate(x_f + b_f + h_before . W_f + w_fc * cell_before)
cell = c' * i + cell_before * f
o  = gate(x_o + b_o + h_before . W_o + w_oc * cell)
h  = o * cell_activation(cell)

The columns of Input are x_c, x_i, x_f, x_o; those of Weight are W_c, W_i, W_f, W_o; those of Bias are b_c,
b_i, b_f, b_o, followed by w_ic, w_fc, w_oc if use_peepholes is set. h_before and cell_before are the results
for the previous row of the same sequence (with is_reverse, the next row). At the first step they are H0 and
C0, with one row per sequence, or zero. BatchGate (c', i, f, o) and BatchCellPreAct (cell_activation(cell))
are in the order in which the steps run, the longest sequence first.)";

constexpr char kLstmpDoc[] = R"(
Like lstm, but the recurrent state and the output of the op are a projection of h:

p = clip(proj_activation(h . ProjWeight), proj_clip);  c', i, f and o use p_before . W instead of h_before . W

The cell is clipped to [-cell_clip, cell_clip] before o and h are computed, and p is clipped likewise by
proj_clip; 0 disables clipping. H0 is the initial projection. BatchHidden holds h in the order in which the
steps run.)";

Status InferLstm(InferContext& c) {
  const bool projected = c.op().type() == "lstmp";
  const Shape& input = c.ShapeOf("Input");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Weight", 2));
  const Dim gates = input[1] == kUnknownDim ? c.ShapeOf("Weight")[1] : input[1];
  if (gates == kUnknownDim || gates % 4 != 0) {
    return c.Error("width of Input (", gates, ") must be four times that of the cell");
  }
  const Dim width = gates / 4;
  if (projected) PENSTOCK_RETURN_IF_ERROR(c.RequireRank("ProjWeight", 2));
  const Dim recurrent = projected ? c.ShapeOf("ProjWeight")[1] : width;
  const Dim bias = (c.Attr<bool>("use_peepholes") ? 7 : 4) * width;
  const auto require = [&c](const char* slot, const Shape& expected) {
    if (!c.HasInput(slot) || Compatible(c.ShapeOf(slot), expected)) return OkStatus();
    return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be ", expected);
  };
  PENSTOCK_RETURN_IF_ERROR(require("Weight", {recurrent, gates}));
  PENSTOCK_RETURN_IF_ERROR(require("Bias", {1, bias}));
  PENSTOCK_RETURN_IF_ERROR(require("ProjWeight", {width, recurrent}));
  PENSTOCK_RETURN_IF_ERROR(require("H0", {kUnknownDim, recurrent}));
  PENSTOCK_RETURN_IF_ERROR(require("C0", {kUnknownDim, width}));
  const char* const out = projected ? "Projection" : "Hidden";
  for (const char* slot : {out, "Cell"}) {
    if (!c.HasOutput(slot)) return c.Error("output ", slot, " is missing");
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {input[0], slot == out ? recurrent : width}));
    c.ShareLod("Input", slot);
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("BatchGate", {input[0], gates}));
  if (projected) PENSTOCK_RETURN_IF_ERROR(c.SetShape("BatchHidden", {input[0], width}));
  return c.SetShape("BatchCellPreAct", {input[0], width});
}

template <typename Device, typename T>
class LstmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_.Prepare(k, "Input");
    s_.Prepare(k, k.Input("Input").shape);
    k.Bind(weight_, project_, bias_);
    h0_.Prepare(k, "H0", s_.recurrent);
    c0_.Prepare(k, "C0", s_.width);
    k.Bind(gates_, active_, hidden_, cell_);
    out_ = k.Output(s_.output());
    if (!gates_ || !active_ || !hidden_ == s_.projected)
      return k.Error("outputs BatchGate, BatchCellPreAct", s_.projected ? " and BatchHidden" : "",
                     " must be given: the gradient reads them");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, input_.Innermost(k));
    batches_.Make(sequences, s_.reversed);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    PENSTOCK_ASSIGN_OR_RETURN(const T* const c0, c0_.Find(k, sequences.count()));
    const auto read = [&k](const Operand& from) { return std::as_const(k[from]).template Data<T>(); };
    return steps_.Run(s_, s_.WithBias(read(bias_)), batches_,
                      {.input = read(input_.operand()),
                       .weight = read(weight_),
                       .project = s_.projected ? read(project_) : nullptr,
                       .h0 = h0,
                       .c0 = c0,
                       .batch_gates = k[gates_].template Data<T>(),
                       .batch_active = k[active_].template Data<T>(),
                       .batch_hidden = s_.projected ? k[hidden_].template Data<T>() : nullptr,
                       .cell = k[cell_].template Data<T>(),
                       .out = k[out_].template Data<T>()});
  }

 private:
  LstmSetup<T> s_;
  SequenceInput input_;
  InitialState<T> h0_, c0_;
  In<"Weight"> weight_;
  In<"ProjWeight"> project_;
  In<"Bias"> bias_;
  Out<"BatchGate"> gates_;
  Out<"BatchCellPreAct"> active_;
  Out<"BatchHidden"> hidden_;
  Out<"Cell"> cell_;
  Operand out_;
  StepBatches batches_;
  LstmSteps<T> steps_;
};

void AddCommonAttrs(OpDef& def) {
  def.Attr("use_peepholes", true, "whether to use peephole connections")
      .Attr("is_reverse", false, "whether each sequence is processed from its last row to its first");
}

void AddActivations(OpDef& def) {
  def.Attr("gate_activation", "sigmoid", "the activation of the input, forget and output gates",
           GateActivationNames())
      .Attr("cell_activation", "tanh", "the activation of the cell output", GateActivationNames())
      .Attr("candidate_activation", "tanh", "the activation of the candidate", GateActivationNames());
}

void AddLstm(OpRegistry& ops) {
  OpDef& def = ops.Add("lstm");
  def.Doc("Long short-term memory over sequences.", kLstmDoc)
      .Input("Input", "[rows, 4 * width], in sequences", Floats())
      .Input("H0", "the initial hidden state; zero if absent", SameTypeAs("Input"), Optional())
      .Input("C0", "the initial cell; zero if absent", SameTypeAs("Input"), Optional())
      .Input("Weight", "[width, 4 * width]", SameTypeAs("Input"))
      .Input("Bias", "[1, 4 * width], or [1, 7 * width] with peepholes", SameTypeAs("Input"))
      .Output("Hidden", "the hidden state after each step", SameTypeAs("Input"), Apart())
      .Output("Cell", "the cell after each step", SameTypeAs("Input"), Optional() | Apart())
      .Output("BatchGate", "the activated gates", SameTypeAs("Input"), Intermediate() | Apart())
      .Output("BatchCellPreAct", "the activated cells", SameTypeAs("Input"), Intermediate() | Apart());
  AddCommonAttrs(def);
  AddActivations(def);
  def.InferShape(InferLstm).Kernel<Cpu, LstmKernel, float, double>().Grad(
      {.reads = {"Input", "H0", "C0", "Weight", "Bias"},
       .reads_outputs = {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"},
       .yields = {"Input", "H0", "C0", "Weight", "Bias"},
       .of = {"Hidden", "Cell"},
       .apart = {"Input", "H0", "C0", "Weight", "Bias"}});
  DeclareLstmGrad(def);
}

void AddLstmp(OpRegistry& ops) {
  OpDef& def = ops.Add("lstmp");
  def.Doc("Long short-term memory over sequences, with a projection.", kLstmpDoc)
      .Input("Input", "[rows, 4 * width], in sequences", Floats())
      .Input("H0", "the initial projection; zero if absent", SameTypeAs("Input"), Optional())
      .Input("C0", "the initial cell; zero if absent", SameTypeAs("Input"), Optional())
      .Input("Weight", "[projection, 4 * width]", SameTypeAs("Input"))
      .Input("ProjWeight", "[width, projection]", SameTypeAs("Input"))
      .Input("Bias", "[1, 4 * width], or [1, 7 * width] with peepholes", SameTypeAs("Input"))
      .Output("Projection", "the projection of the hidden state after each step", SameTypeAs("Input"),
              Apart())
      .Output("Cell", "the cell after each step", SameTypeAs("Input"), Optional() | Apart())
      .Output("BatchGate", "the activated gates", SameTypeAs("Input"), Intermediate() | Apart())
      .Output("BatchCellPreAct", "the activated cells", SameTypeAs("Input"), Intermediate() | Apart())
      .Output("BatchHidden", "the hidden state before the projection", SameTypeAs("Input"),
              Intermediate() | Apart());
  AddCommonAttrs(def);
  def.Attr("cell_clip", 0.0f, "the bound of the cell; 0: none", AtLeast(0))
      .Attr("proj_clip", 0.0f, "the bound of the projection; 0: none", AtLeast(0));
  AddActivations(def);
  def.Attr("proj_activation", "tanh", "the activation of the projection", GateActivationNames())
      .InferShape(InferLstm)
      .Kernel<Cpu, LstmKernel, float, double>()
      .Grad({.reads = {"Weight", "ProjWeight", "Bias", "H0", "C0"},
             .reads_outputs = {"Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"},
             .yields = {"Input", "Weight", "ProjWeight", "Bias", "H0", "C0"},
             .of = {"Projection", "Cell"},
             .apart = {"Input", "Weight", "ProjWeight", "Bias", "H0", "C0"}});
  DeclareLstmGrad(def);
}

}  // namespace

void RegisterLstm(OpRegistry& ops) {
  AddLstm(ops);
  AddLstmp(ops);
}

}  // namespace penstock
