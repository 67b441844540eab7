// gru: gated recurrent units over sequences.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/grad_shapes.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/gru_steps.h"
#include "operators/sequence/recurrent.h"
#include "operators/sequence/step_batches.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
u = gate(x_u + b_u + h_before . W_u)
r = gate(x_r + b_r + h_before . W_r)
c = activation(x_c + b_c + (r * h_before) . W_c)
h = (1 - u) * h_before + u * c;  with origin_mode  h = u * h_before + (1 - u) * c

The columns of Input are x_u, x_r, x_c; those of Bias are b_u, b_r, b_c. Weight is two matrices in one buffer:
[width, 2 * width] for W_u and W_r, then [width, width] for W_c. h_before is the result for the previous row
of the same sequence (with is_reverse, the next row). At the first step it is H0, with one row per sequence,
or zero. BatchGate (u, r, c), BatchResetHiddenPrev (r * h_before) and BatchHidden (h) are in the order in
which the steps run, the longest sequence first.)";

Status InferGru(InferContext& c) {
  const Shape& input = c.ShapeOf("Input");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Weight", 2));
  const Dim width = c.ShapeOf("Weight")[0];
  const auto require = [&c](const char* slot, const Shape& expected) {
    if (!c.HasInput(slot) || Compatible(c.ShapeOf(slot), expected)) return OkStatus();
    return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be ", expected);
  };
  if (width == kUnknownDim) return c.Error("the height of Weight (", c.ShapeOf("Weight"), ") must be known");
  PENSTOCK_RETURN_IF_ERROR(require("Weight", {width, 3 * width}));
  PENSTOCK_RETURN_IF_ERROR(require("Input", {kUnknownDim, 3 * width}));
  PENSTOCK_RETURN_IF_ERROR(require("Bias", {1, 3 * width}));
  PENSTOCK_RETURN_IF_ERROR(require("H0", {kUnknownDim, width}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("BatchGate", {input[0], 3 * width}));
  for (const char* slot : {"BatchResetHiddenPrev", "BatchHidden", "Hidden"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {input[0], width}));
  c.ShareLod("Input", "Hidden");
  return OkStatus();
}

// The sizes and attributes of the op, from its Input and Weight.
template <typename T>
GruSteps<T> MakeSteps(const KernelSetup& k) {
  GruSteps<T> steps;
  const Shape& weight = k.Input("Weight").shape;
  steps.SetWidth(weight.rank() == 2 ? weight[0] : 0);
  steps.cell.gate = GateActivationOf(k.Attr<std::string>("gate_activation"));
  steps.cell.candidate = GateActivationOf(k.Attr<std::string>("activation"));
  steps.cell.origin = k.Attr<bool>("origin_mode");
  steps.threads = k.threads();
  return steps;
}

template <typename Device, typename T>
class GruKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_.Prepare(k, "Input");
    steps_ = MakeSteps<T>(k);
    reversed_ = k.Attr<bool>("is_reverse");
    k.Bind(weight_, bias_);
    h0_.Prepare(k, "H0", steps_.width);
    k.Bind(gates_, reset_, batch_hidden_, hidden_);
    first_.Prepare(k, h0_.rows() * steps_.width);
    if (gates_ && reset_ && batch_hidden_ && hidden_) return OkStatus();
    return k.Error("outputs BatchGate, BatchResetHiddenPrev, BatchHidden and Hidden must be given");
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, input_.Innermost(k));
    batches_.Make(sequences, reversed_);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    const Dim width = steps_.width;
    if (h0 != nullptr) batches_.GatherSequences(h0, width, first_.At(k));
    const auto read = [&k](const Operand& from) { return std::as_const(k[from]).template Data<T>(); };
    return steps_.ForwardAll(steps_.WithBias(bias_ ? read(bias_) : nullptr), batches_,
                             {.input = read(input_.operand()),
                              .weight = read(weight_),
                              .batch_first = h0 == nullptr ? nullptr : first_.At(k),
                              .batch_gates = k[gates_].template Data<T>(),
                              .batch_reset = k[reset_].template Data<T>(),
                              .batch_hidden = k[batch_hidden_].template Data<T>(),
                              .hidden = k[hidden_].template Data<T>()});
  }

 private:
  GruSteps<T> steps_;
  SequenceInput input_;
  InitialState<T> h0_;
  In<"Weight"> weight_;
  In<"Bias"> bias_;
  Out<"BatchGate"> gates_;
  Out<"BatchResetHiddenPrev"> reset_;
  Out<"BatchHidden"> batch_hidden_;
  Out<"Hidden"> hidden_;
  bool reversed_ = false;
  StepBatches batches_;
  Scratch<T> first_;  // H0 in the order of the batches
};

template <typename Device, typename T>
class GruGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_.Prepare(k, "Input");
    steps_ = MakeSteps<T>(k);
    reversed_ = k.Attr<bool>("is_reverse");
    k.Bind(weight_);
    h0_.Prepare(k, "H0", steps_.width);
    k.Bind(gates_, reset_, hidden_, dhidden_, dweight_, dbias_, dh0_);
    const Dim rows = k.Input("Input").shape.rank() == 2 ? k.Input("Input").shape[0] : 0;
    PENSTOCK_RETURN_IF_ERROR(RequireShapes(k, rows));
    transposed_.Prepare(k, 3 * steps_.width * steps_.width);
    first_.Prepare(k, h0_.rows() * steps_.width);
    dgates_.Prepare(k, "Input@GRAD", rows * 3 * steps_.width);
    if (!dweight_) return OkStatus();
    for (Scratch<T>* factor : {&before_, &resets_}) factor->Prepare(k, rows * steps_.width);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, input_.Innermost(k));
    batches_.Make(sequences, reversed_);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    const Dim width = steps_.width, shares = batches_.shares(), places = batches_.places_of_share();
    if (h0 != nullptr) batches_.GatherSequences(h0, width, first_.At(k));
    steps_.TransposeWeight(Read(k, weight_), transposed_.At(k));
    const Arrays arrays = {.batch_gates = Read(k, gates_),
                           .batch_hidden = Read(k, hidden_),
                           .batch_first = h0 == nullptr ? nullptr : first_.At(k),
                           .dhidden = Read(k, dhidden_),
                           .transposed = transposed_.At(k),
                           .dgates = dgates_.At(k)};
    const Dim count = (5 * places + 3) * width;
    T* const buffer = buffer_.Hold(shares * count);
    PENSTOCK_RETURN_IF_ERROR(EachShare(batches_.shares(), steps_.threads, [&](Dim share) {
      return RunShare(arrays, share, buffer + share * count);
    }));
    return Finish(k, h0, arrays.dgates, buffer, count);
  }

 private:
  // Rows are in the order of the argument, or where the name says so in that of the batches. Null: absent.
  struct Arrays {
    const T *batch_gates, *batch_hidden, *batch_first, *dhidden, *transposed;
    T* dgates;
  };

  const T* Read(KernelRun& k, const Operand& from) const { return std::as_const(k[from]).template Data<T>(); }

  Status RequireShapes(const KernelSetup& k, Dim rows) const {
    const Dim width = steps_.width;
    const auto require = [&k](std::string_view slot, const Shape& expected) {
      if (k.Input(slot).shape == expected) return OkStatus();
      return k.Error("shape of ", slot, " (", k.Input(slot).shape, ") must be ", expected);
    };
    for (const char* slot : {"Input", "BatchGate"})
      PENSTOCK_RETURN_IF_ERROR(require(slot, {rows, 3 * width}));
    for (const char* slot : {"BatchResetHiddenPrev", "BatchHidden", "Hidden@GRAD"})
      PENSTOCK_RETURN_IF_ERROR(require(slot, {rows, width}));
    for (const std::string slot : {"H0", "Bias"}) {
      if (k.Output(slot + kGradSuffix) && !k.Input(slot))
        return k.Error(slot, kGradSuffix, " is requested, but ", slot, " is not given");
    }
    if (k.Input("Bias")) PENSTOCK_RETURN_IF_ERROR(require("Bias", {1, 3 * width}));
    return require("Weight", {width, 3 * width});
  }

  // `buffer`: the sum of dgates over the rows, then dbefore, dreset and dgates of a step, a row for each
  // place.
  Status RunShare(const Arrays& a, Dim share, T* buffer) const {
    const Dim width = steps_.width, places = batches_.places_of_share();
    T *const sum = buffer, *const dbefore = sum + 3 * width, *const dreset = dbefore + places * width;
    T* const dgates = dreset + places * width;
    std::fill(buffer, dreset, T{0});
    for (Dim t = batches_.steps() - 1; t >= 0; --t) {
      const Dim size = batches_.size(t, share);
      if (size == 0) continue;
      const T* before = a.batch_first == nullptr ? nullptr : a.batch_first + share * width;
      if (t > 0) before = a.batch_hidden + batches_.Position(t - 1, share, 0) * width;
      const auto row = [&](Dim i) { return batches_.row(batches_.Position(t, share, i)); };
      PENSTOCK_RETURN_IF_ERROR(
          steps_.Backward(a.transposed,
                          {.rows = size,
                           .apart = batches_.shares(),
                           .gates = a.batch_gates + batches_.Position(t, share, 0) * 3 * width,
                           .before = before,
                           .dgates = dgates,
                           .dbefore = dbefore,
                           .hands_back = true,
                           .dreset = dreset,
                           .options = {.threads = ThreadsOfShare(batches_.shares(), steps_.threads)}},
                          [&](Dim i) { return a.dhidden + row(i) * width; }));
      AddRowsTo<T>(dgates, size, 3 * width, sum);
      for (Dim i = 0; i < size; ++i)
        std::copy_n(dgates + i * 3 * width, 3 * width, a.dgates + row(i) * 3 * width);
    }
    return OkStatus();
  }

  // Writes the gradient of H0: dbefore of the shares. It may have the memory of the gradient of Hidden, which
  // all shares must have read by then.
  void HandBack(const T* sums, Dim count, Tensor& dh0) const {
    const Dim width = steps_.width, shares = batches_.shares();
    std::ranges::fill(dh0.Span<T>(), T{0});
    for (Dim place = 0; place < batches_.places(); ++place) {
      const T* const dbefore = sums + place % shares * count + (3 + place / shares) * width;
      std::copy_n(dbefore, width, dh0.Data<T>() + batches_.sequence(place) * width);
    }
  }

  // `sums`: those of the shares, `count` elements apart.
  Status Finish(KernelRun& k, const T* h0, const T* dgates, const T* sums, Dim count) {
    const Dim width = steps_.width;
    if (dbias_) {
      T* const dbias = k[dbias_].template Data<T>();
      std::fill_n(dbias, 3 * width, T{0});
      for (Dim share = 0; share < batches_.shares(); ++share)
        AddRowsTo(sums + share * count, 1, 3 * width, dbias);
    }
    if (dh0_) HandBack(sums, count, k[dh0_]);
    if (!dweight_) return OkStatus();
    batches_.CopyPrevious(Read(k, hidden_), true, h0, width, before_.At(k));
    batches_.Scatter(Read(k, reset_), width, resets_.At(k));
    return steps_.BackwardWeight(before_.At(k), resets_.At(k), dgates, batches_.rows(),
                                 k[dweight_].template Data<T>());
  }

  GruSteps<T> steps_;
  SequenceInput input_;
  InitialState<T> h0_;
  In<"Weight"> weight_;
  In<"BatchGate"> gates_;
  In<"BatchResetHiddenPrev"> reset_;
  In<"BatchHidden"> hidden_;
  In<"Hidden@GRAD"> dhidden_;
  Out<"Weight@GRAD"> dweight_;
  Out<"Bias@GRAD"> dbias_;
  Out<"H0@GRAD"> dh0_;
  bool reversed_ = false;
  StepBatches batches_;
  Scratch<T> transposed_, first_;  // the weights; H0 in the order of the batches
  Scratch<T> before_, resets_;     // the left factors of the products for the weights
  OutputOrScratch<T> dgates_;      // Input@GRAD
  RowBuffer<T> buffer_;
};

}  // namespace

void RegisterGru(OpRegistry& ops) {
  ops.Add("gru")
      .Doc("Gated recurrent units over sequences.", kDoc)
      .Input("Input", "[rows, 3 * width], in sequences", Floats())
      .Input("H0", "the initial hidden state; zero if absent", SameTypeAs("Input"), Optional())
      .Input("Weight", "[width, 3 * width]: two matrices in one buffer", SameTypeAs("Input"))
      .Input("Bias", "[1, 3 * width]", SameTypeAs("Input"), Optional())
      .Output("BatchGate", "the activated gates", SameTypeAs("Input"), Intermediate() | Apart())
      .Output("BatchResetHiddenPrev", "the previous hidden state times the reset gate", SameTypeAs("Input"),
              Intermediate() | Apart())
      .Output("BatchHidden", "Hidden in the order of the steps", SameTypeAs("Input"),
              Intermediate() | Apart())
      .Output("Hidden", "the hidden state after each step", SameTypeAs("Input"), Apart())
      .Attr("activation", "tanh", "the activation of the candidate", GateActivationNames())
      .Attr("gate_activation", "sigmoid", "the activation of the update and reset gates",
            GateActivationNames())
      .Attr("is_reverse", false, "whether each sequence is processed from its last row to its first")
      .Attr("origin_mode", false, "whether the update gate weights the previous state, not the candidate")
      .InferShape(InferGru)
      .Kernel<Cpu, GruKernel, float, double>()
      .Grad({.reads = {"Input", "H0", "Weight", "Bias"},
             .reads_outputs = {"BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"},
             .yields = {"Input", "H0", "Weight", "Bias"},
             .apart = {"Input", "H0", "Weight", "Bias"}})
      .GradKernel<Cpu, GruGradKernel, float, double>()
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"Input", "H0", "Weight", "Bias"}));
}

}  // namespace penstock
