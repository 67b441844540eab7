// attention_lstm: long short-term memory that attends to all rows of the sequence at each step.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/nan.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/gate_activation.h"
#include "operators/sequence/recurrent.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
At each step of a sequence, with the cell and the hidden state of the previous step:

  score[i] = relu(X[i] . w_x + AttentionBias + cell_before . w_c), AttentionWeight being w_x followed by w_c
  score[i] = relu(score[i] * AttentionScalar + AttentionScalarBias), if AttentionScalar is given
  x        = the sum of softmax(score)[i] * X[i] over all rows of the sequence
  f, i, o, c = the columns of (hidden_before, x) . LSTMWeight + LSTMBias
  cell     = gate(f) * cell_before + gate(i) * candidate(c)
  hidden   = gate(o) * cell_activation(cell)

The initial cell is C0 and the initial hidden state H0, each with one row per sequence; without H0 it is zero.
AttentionedX holds X . w_x + AttentionBias; AttentionFCOut, LSTMX and LSTMOUT are buffers of one step.
Inference programs use this op in place of several others, so it has no gradient.)";

Status RequireOne(InferContext& c, const char* slot) {
  if (!c.HasInput(slot) || Compatible(c.ShapeOf(slot), Shape{1, 1})) return OkStatus();
  return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be [1, 1]");
}

Status InferAttentionLstm(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("LSTMWeight", 2));
  const Shape &x = c.ShapeOf("X"), &weight = c.ShapeOf("LSTMWeight");
  if (x[1] == kUnknownDim || weight[1] == kUnknownDim || weight[1] % 4 != 0)
    return c.Error("the widths of X (", x, ") and LSTMWeight (", weight,
                   ") must be known, the latter four times that of the cell");
  const Dim width = weight[1] / 4;
  const auto require = [&c](const char* slot, const Shape& expected) {
    if (!c.HasInput(slot) || Compatible(c.ShapeOf(slot), expected)) return OkStatus();
    return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be ", expected);
  };
  PENSTOCK_RETURN_IF_ERROR(require("LSTMWeight", {width + x[1], 4 * width}));
  PENSTOCK_RETURN_IF_ERROR(require("LSTMBias", {1, 4 * width}));
  PENSTOCK_RETURN_IF_ERROR(require("AttentionWeight", {x[1] + width, 1}));
  PENSTOCK_RETURN_IF_ERROR(require("C0", {kUnknownDim, width}));
  PENSTOCK_RETURN_IF_ERROR(require("H0", {kUnknownDim, width}));
  for (const char* slot : {"AttentionBias", "AttentionScalar", "AttentionScalarBias"})
    PENSTOCK_RETURN_IF_ERROR(RequireOne(c, slot));
  if (c.HasInput("AttentionScalarBias") && !c.HasInput("AttentionScalar"))
    return c.Error("AttentionScalarBias needs input AttentionScalar");
  for (const char* slot : {"Hidden", "Cell"}) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {x[0], width}));
    c.ShareLod("X", slot);
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("AttentionedX", {x[0], 1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("AttentionFCOut", {kUnknownDim, 1}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("LSTMX", {1, x[1]}));
  return c.SetShape("LSTMOUT", {1, 4 * width});
}

template <typename Device, typename T>
class AttentionLstmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    for (const char* slot : {"AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT"})
      PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, slot));
    k.Bind(attention_, attention_bias_, scalar_, scalar_bias_, weight_, bias_, hidden_, cell_, scores_x_,
           mean_, gates_);
    depth_ = k.Input("X").shape[1];
    width_ = k[weight_].shape[1] / 4;
    h0_.Prepare(k, "H0", width_);
    c0_.Prepare(k, "C0", width_);
    gate_ = GateActivationOf(k.Attr<std::string>("gate_activation"));
    cell_activation_ = GateActivationOf(k.Attr<std::string>("cell_activation"));
    candidate_ = GateActivationOf(k.Attr<std::string>("candidate_activation"));
    options_ = {.threads = k.threads()};
    return scores_.Prepare(k, "AttentionFCOut", DTypeOfT<T>::kValue, {0, 1});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, x_.Innermost(k));
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    PENSTOCK_ASSIGN_OR_RETURN(const T* const c0, c0_.Find(k, sequences.count()));
    T* const scores = scores_.Make(k, sequences.longest()).template Data<T>();
    std::fill_n(scores, sequences.longest(), T{0});
    for (const Operand buffer : std::initializer_list<Operand>{mean_, gates_})
      std::ranges::fill(k[buffer].template Span<T>(), T{0});
    PENSTOCK_RETURN_IF_ERROR(ScoreRows(k));
    T* const hidden = k[hidden_].template Data<T>();
    T* const cell = k[cell_].template Data<T>();
    for (Dim s = 0; s < sequences.count(); ++s) {
      const T* before = h0 == nullptr ? nullptr : h0 + s * width_;
      const T* state = c0 + s * width_;
      for (Dim row = sequences.begin(s); row < sequences.end(s); ++row) {
        Attend(k, sequences.begin(s), sequences.length(s), state, scores);
        PENSTOCK_RETURN_IF_ERROR(MakeGates(k, before));
        Step(k[gates_].template Data<T>(), state, cell + row * width_, hidden + row * width_);
        before = hidden + row * width_;
        state = cell + row * width_;
      }
    }
    return OkStatus();
  }

 private:
  const T* Read(KernelRun& k, const Operand& operand) const {
    return std::as_const(k[operand]).template Data<T>();
  }

  // Computes AttentionedX, which is the same in all steps.
  Status ScoreRows(KernelRun& k) {
    const Dim rows = k[x_.operand()].shape()[0];
    T* const scores = k[scores_x_].template Data<T>();
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(Read(k, x_.operand()), rows, depth_),
                                     RowMajor(Read(k, attention_), depth_, 1), RowMajor(scores, rows, 1),
                                     options_));
    if (attention_bias_) AddToRows(Read(k, attention_bias_), rows, 1, scores);
    return OkStatus();
  }

  // Computes LSTMX: the mean of the rows of a sequence, weighted by their scores.
  void Attend(KernelRun& k, Dim begin, Dim length, const T* state, T* scores) const {
    const T* const of_state = Read(k, attention_) + depth_;
    const T shift = SumOf<T>(width_, [=](Dim j) { return state[j] * of_state[j]; });
    const T* const of_rows = Read(k, scores_x_) + begin;
    const T factor = scalar_ ? *Read(k, scalar_) : T{1};
    const T bias = scalar_bias_ ? *Read(k, scalar_bias_) : T{0};
    for (Dim i = 0; i < length; ++i) {
      scores[i] = MaxOrNan(of_rows[i] + shift, T{0});
      if (scalar_) scores[i] = MaxOrNan(scores[i] * factor + bias, T{0});
    }
    const T top = *std::max_element(scores, scores + length);
    T sum = 0;
    for (Dim i = 0; i < length; ++i) sum += scores[i] = std::exp(scores[i] - top);
    T* const mean = k[mean_].template Data<T>();
    std::fill_n(mean, depth_, T{0});
    const T* x = Read(k, x_.operand()) + begin * depth_;
    for (Dim i = 0; i < length; ++i, x += depth_) {
      scores[i] /= sum;
      for (Dim j = 0; j < depth_; ++j) mean[j] += scores[i] * x[j];
    }
  }

  // Computes LSTMOUT: the gates before their activation.
  Status MakeGates(KernelRun& k, const T* before) {
    const Dim gates = 4 * width_;
    const T* const weight = Read(k, weight_);
    const MatrixView<T> out = RowMajor(k[gates_].template Data<T>(), 1, gates);
    std::copy_n(Read(k, bias_), gates, out.data);
    GemmOptions adds = options_;
    adds.add = true;
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(Read(k, mean_), 1, depth_),
                                     RowMajor(weight + width_ * gates, depth_, gates), out, adds));
    if (before == nullptr) return OkStatus();
    return Gemm<T>(RowMajor(before, 1, width_), RowMajor(weight, width_, gates), out, adds);
  }

  void Step(T* gates, const T* state, T* cell, T* hidden) const {
    T *const forget = gates, *const input = gates + width_, *const output = gates + 2 * width_;
    T* const candidate = gates + 3 * width_;
    ActivateClipped(gate_, gates, 3 * width_);
    ActivateClipped(candidate_, candidate, width_);
    for (Dim j = 0; j < width_; ++j) cell[j] = forget[j] * state[j] + input[j] * candidate[j];
    std::copy_n(cell, width_, hidden);
    ActivateClipped(cell_activation_, hidden, width_);
    for (Dim j = 0; j < width_; ++j) hidden[j] *= output[j];
  }

  SequenceInput x_;
  InitialState<T> h0_, c0_;
  In<"AttentionWeight"> attention_;
  In<"AttentionBias"> attention_bias_;
  In<"AttentionScalar"> scalar_;
  In<"AttentionScalarBias"> scalar_bias_;
  In<"LSTMWeight"> weight_;
  In<"LSTMBias"> bias_;
  Out<"Hidden"> hidden_;
  Out<"Cell"> cell_;
  Out<"AttentionedX"> scores_x_;
  Out<"LSTMX"> mean_;
  Out<"LSTMOUT"> gates_;
  RowsOutput scores_;
  Dim depth_ = 0, width_ = 0;  // widths of a row of X and of the cell
  GateActivation gate_ = GateActivation::kSigmoid, cell_activation_ = GateActivation::kTanh;
  GateActivation candidate_ = GateActivation::kTanh;
  GemmOptions options_;
};

}  // namespace

void RegisterAttentionLstm(OpRegistry& ops) {
  ops.Add("attention_lstm")
      .Doc("Long short-term memory that attends to all rows of the sequence at each step.", kDoc)
      .Input("X", "[rows, width of X], in sequences", Floats())
      .Input("C0", "[sequences, width], the initial cell", SameTypeAs("X"))
      .Input("H0", "[sequences, width], the initial hidden state; zero if absent", SameTypeAs("X"),
             Optional())
      .Input("AttentionWeight", "[width of X + width, 1]", SameTypeAs("X"))
      .Input("AttentionBias", "[1, 1]", SameTypeAs("X"), Optional())
      .Input("AttentionScalar", "[1, 1]", SameTypeAs("X"), Optional())
      .Input("AttentionScalarBias", "[1, 1]; requires AttentionScalar", SameTypeAs("X"), Optional())
      .Input("LSTMWeight",
             "[width + width of X, 4 * width]: columns of the forget, input, output and candidate gates",
             SameTypeAs("X"))
      .Input("LSTMBias", "[1, 4 * width]", SameTypeAs("X"))
      .Output("Hidden", "[rows, width], the hidden state after each step", SameTypeAs("X"), Apart())
      .Output("Cell", "[rows, width], the cell after each step", SameTypeAs("X"), Apart())
      .Output("AttentionedX", "[rows, 1], the contribution of X to the scores", SameTypeAs("X"),
              Intermediate() | Apart())
      .Output("AttentionFCOut", "[longest sequence, 1], the attention weights of the last step",
              SameTypeAs("X"), Intermediate() | Apart())
      .Output("LSTMX", "[1, width of X], the weighted mean of the last step", SameTypeAs("X"),
              Intermediate() | Apart())
      .Output("LSTMOUT", "[1, 4 * width], the gates of the last step", SameTypeAs("X"),
              Intermediate() | Apart())
      .Attr("gate_activation", "sigmoid", "the activation of the input, forget and output gates",
            GateActivationNames())
      .Attr("cell_activation", "tanh", "the activation of the cell output", GateActivationNames())
      .Attr("candidate_activation", "tanh", "the activation of the candidate", GateActivationNames())
      .InferShape(InferAttentionLstm)
      .Kernel<Cpu, AttentionLstmKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
