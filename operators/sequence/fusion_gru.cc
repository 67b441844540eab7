// fusion_gru: gated recurrent units over sequences, including the product with the input weights.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/fused_gates.h"
#include "operators/sequence/gru_steps.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
XX = X . WeightX + Bias, and Hidden is that of gru with Input = XX and Weight = WeightH.

BatchedInput (the activated gates) and BatchedOut (Hidden) are in the order in which the steps run, the
longest sequence first. ReorderedH0 is H0 in the order of the first step; without H0 it has no rows.
Inference programs use this op in place of mul, elementwise_add and gru, so it has no gradient.)";

Status InferFusionGru(InferContext& c) {
  constexpr Dim kGates = 3;
  PENSTOCK_ASSIGN_OR_RETURN(const Dim width, InferFusedGates(c, kGates));
  if (c.HasInput("Bias") && !Compatible(c.ShapeOf("Bias"), Shape{1, kGates * width}))
    return c.Error("shape of Bias (", c.ShapeOf("Bias"), ") must be [1, ", kGates * width, "]");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("BatchedOut", {c.ShapeOf("X")[0], width}));
  return OkStatus();
}

template <typename Device, typename T>
class FusionGruKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    steps_.SetWidth(k.Input("WeightH").shape[0]);
    steps_.cell.gate = GateActivationOf(k.Attr<std::string>("gate_activation"));
    steps_.cell.candidate = GateActivationOf(k.Attr<std::string>("activation"));
    steps_.cell.origin = k.Attr<bool>("origin_mode");
    steps_.threads = k.threads();
    x_.Prepare(k, "X");
    reversed_ = k.Attr<bool>("is_reverse");
    k.Bind(weight_, hidden_);
    h0_.Prepare(k, "H0", steps_.width);
    const Dim count = k.Input("X").shape[0] * steps_.width;
    product_.Prepare(k, 3 * steps_.width);
    gates_.Prepare(k, "BatchedInput", 3 * count);
    outs_.Prepare(k, "BatchedOut", count);
    first_.Prepare(k, "ReorderedH0", h0_.rows() * steps_.width);
    reset_.Prepare(k, count);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, x_.Innermost(k));
    batches_.Make(sequences, reversed_);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    const Dim width = steps_.width;
    if (h0 != nullptr) batches_.GatherSequences(h0, width, first_.At(k));
    PENSTOCK_ASSIGN_OR_RETURN(const T* const inputs, product_.Run(k));
    return steps_.ForwardAll(steps_.cell, batches_,
                             {.input = inputs,
                              .weight = std::as_const(k[weight_]).template Data<T>(),
                              .batch_first = h0 == nullptr ? nullptr : first_.At(k),
                              .batch_gates = gates_.At(k),
                              .batch_reset = reset_.At(k),
                              .batch_hidden = outs_.At(k),
                              .hidden = k[hidden_].template Data<T>()});
  }

 private:
  GruSteps<T> steps_;
  SequenceInput x_;
  InitialState<T> h0_;
  In<"WeightH"> weight_;
  Out<"Hidden"> hidden_;
  bool reversed_ = false;
  StepBatches batches_;
  GateProduct<T> product_;
  OutputOrScratch<T> gates_, outs_, first_;
  Scratch<T> reset_;
};

}  // namespace

void RegisterFusionGru(OpRegistry& ops) {
  ops.Add("fusion_gru")
      .Doc("Gated recurrent units over sequences, including the product with the input weights.", kDoc)
      .Input("X", "[rows, width of X], in sequences", Floats())
      .Input("H0", "the initial hidden state; zero if absent", SameTypeAs("X"), Optional())
      .Input("WeightX", "[width of X, 3 * width]", SameTypeAs("X"))
      .Input("WeightH", "[width, 3 * width]: two matrices in one buffer, as gru's Weight", SameTypeAs("X"))
      .Input("Bias", "[1, 3 * width]", SameTypeAs("X"), Optional())
      .Output("ReorderedH0", "H0 in the order of the first step", SameTypeAs("X"), Intermediate() | Apart())
      .Output("XX", "X . WeightX + Bias", SameTypeAs("X"), Intermediate() | Apart())
      .Output("BatchedInput", "the activated gates", SameTypeAs("X"), Intermediate() | Apart())
      .Output("BatchedOut", "Hidden in the order of the steps", SameTypeAs("X"), Intermediate() | Apart())
      .Output("Hidden", "[rows, width], the results of the steps", SameTypeAs("X"), Apart())
      .Attr("activation", "tanh", "the activation of the candidate", GateActivationNames())
      .Attr("gate_activation", "sigmoid", "the activation of the update and reset gates",
            GateActivationNames())
      .Attr("is_reverse", false, "whether each sequence is processed from its last row to its first")
      .Attr("use_seq", true, kNoEffect)
      .Attr("origin_mode", false, "whether the update gate weights the previous state, not the candidate")
      .InferShape(InferFusionGru)
      .Kernel<Cpu, FusionGruKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
