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
  steps.clips = true;
  const Shape& weight = k.Input("Weight").shape;
  steps.width = weight.rank() == 2 ? weight[0] : 0;
  steps.gate = GateActivationOf(k.Attr<std::string>("gate_activation"));
  steps.candidate = GateActivationOf(k.Attr<std::string>("activation"));
  steps.origin = k.Attr<bool>("origin_mode");
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
    weight_ = k.Input("Weight");
    bias_ = k.Input("Bias");
    h0_.Prepare(k, "H0", steps_.width);
    gates_ = k.Output("BatchGate");
    reset_ = k.Output("BatchResetHiddenPrev");
    batch_hidden_ = k.Output("BatchHidden");
    hidden_ = k.Output("Hidden");
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
    StartGates(k);
    T* const hidden = k[batch_hidden_].template Data<T>();
    PENSTOCK_RETURN_IF_ERROR(steps_.ForwardAll(
        batches_, std::as_const(k[weight_]).template Data<T>(), k[gates_].template Data<T>(),
        h0 == nullptr ? nullptr : first_.At(k), k[reset_].template Data<T>(), hidden));
    batches_.Scatter(hidden, width, k[hidden_].template Data<T>());
    return OkStatus();
  }

 private:
  // BatchGate = Input + Bias
  void StartGates(KernelRun& k) {
    const Dim width = 3 * steps_.width;
    T* const gates = k[gates_].template Data<T>();
    batches_.Gather(std::as_const(k[input_.operand()]).template Data<T>(), width, gates);
    if (!bias_) return;
    AddToRows(std::as_const(k[bias_]).template Data<T>(), batches_.rows(), width, gates);
  }

  GruSteps<T> steps_;
  SequenceInput input_;
  InitialState<T> h0_;
  Operand weight_, bias_, gates_, reset_, batch_hidden_, hidden_;
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
    weight_ = k.Input("Weight");
    h0_.Prepare(k, "H0", steps_.width);
    gates_ = k.Input("BatchGate");
    reset_ = k.Input("BatchResetHiddenPrev");
    hidden_ = k.Input("BatchHidden");
    dhidden_ = k.Input("Hidden@GRAD");
    dinput_ = k.Output("Input@GRAD");
    dweight_ = k.Output("Weight@GRAD");
    dbias_ = k.Output("Bias@GRAD");
    dh0_ = k.Output("H0@GRAD");
    const Dim rows = input_.operand().shape.rank() == 2 ? input_.operand().shape[0] : 0;
    PENSTOCK_RETURN_IF_ERROR(RequireShapes(k, rows));
    for (Scratch<T>* scratch : {&before_, &douts_, &dbefore_, &dreset_})
      scratch->Prepare(k, rows * steps_.width);
    dgates_.Prepare(k, rows * 3 * steps_.width);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, input_.Innermost(k));
    batches_.Make(sequences, reversed_);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    const Dim width = steps_.width;
    batches_.GatherPrevious(std::as_const(k[hidden_]).template Data<T>(), h0, width, before_.At(k));
    batches_.Gather(std::as_const(k[dhidden_]).template Data<T>(), width, douts_.At(k));
    if (dh0_) std::ranges::fill(k[dh0_].template Span<T>(), T{0});
    for (Dim t = batches_.steps() - 1; t >= 0; --t) PENSTOCK_RETURN_IF_ERROR(RunStep(k, t, h0 != nullptr));
    return Finish(k);
  }

 private:
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

  Status RunStep(KernelRun& k, Dim t, bool has_first) {
    const Dim width = steps_.width, begin = batches_.begin(t), size = batches_.size(t);
    T* const dbefore = dbefore_.At(k);
    PENSTOCK_RETURN_IF_ERROR(steps_.Backward(std::as_const(k[weight_]).template Data<T>(), size,
                                             std::as_const(k[gates_]).template Data<T>() + begin * 3 * width,
                                             t > 0 || has_first ? before_.At(k) + begin * width : nullptr,
                                             {.out = douts_.At(k) + begin * width,
                                              .gates = dgates_.At(k) + begin * 3 * width,
                                              .before = dbefore,
                                              .reset = dreset_.At(k)}));
    if (t > 0) {
      T* const to = douts_.At(k) + batches_.begin(t - 1) * width;
      for (Dim j = 0; j < size * width; ++j) to[j] += dbefore[j];
    } else if (dh0_) {
      T* const dh0 = k[dh0_].template Data<T>();
      for (Dim p = 0; p < size; ++p)
        std::copy_n(dbefore + p * width, width, dh0 + batches_.sequence(p) * width);
    }
    return OkStatus();
  }

  Status Finish(KernelRun& k) {
    const Dim rows = batches_.rows(), width = 3 * steps_.width;
    if (dinput_) batches_.Scatter(dgates_.At(k), width, k[dinput_].template Data<T>());
    if (dbias_) SumRows(dgates_.At(k), rows, width, k[dbias_].template Data<T>());
    if (!dweight_) return OkStatus();
    return steps_.BackwardWeight(before_.At(k), std::as_const(k[reset_]).template Data<T>(), dgates_.At(k),
                                 rows, k[dweight_].template Data<T>());
  }

  GruSteps<T> steps_;
  SequenceInput input_;
  InitialState<T> h0_;
  Operand weight_, gates_, reset_, hidden_, dhidden_, dinput_, dweight_, dbias_, dh0_;
  bool reversed_ = false;
  StepBatches batches_;
  Scratch<T> before_, douts_, dgates_;  // in the order of the batches
  Scratch<T> dbefore_, dreset_;         // of one step
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
             .yields = {"Input", "H0", "Weight", "Bias"}})
      .GradKernel<Cpu, GruGradKernel, float, double>()
      .GradDef()
      .InferShape(GradsWithLodUndeclared({"Input", "H0", "Weight", "Bias"}));
}

}  // namespace penstock
