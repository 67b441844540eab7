// gru_unit: one step of a gated recurrent unit.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/gru_steps.h"
#include "operators/sequence/recurrent.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
One step of gru for each row: HiddenPrev is h_before, Hidden is h, Gate holds u, r, c, and ResetHiddenPrev is
r * h_before. Activations are numbers: 0 identity, 1 sigmoid, 2 tanh, 3 relu.)";

// Converts the numbers that kDoc lists.
AttrCheck ActivationNumber() { return OneOf({"0", "1", "2", "3"}); }

Status InferGruUnit(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("HiddenPrev", 2));
  const Shape& input = c.ShapeOf("Input");
  const Shape& before = c.ShapeOf("HiddenPrev");
  const Dim width = before[1];
  if (width == kUnknownDim) return c.Error("the width of HiddenPrev (", before, ") must be known");
  if (!Compatible(input, Shape{before[0], 3 * width}))
    return c.Error("shape of Input (", input, ") must be ", Shape{before[0], 3 * width});
  const Shape weight = {width, 3 * width}, bias = {1, 3 * width};
  if (!Compatible(c.ShapeOf("Weight"), weight))
    return c.Error("shape of Weight (", c.ShapeOf("Weight"), ") must be ", weight);
  if (c.HasInput("Bias") && !Compatible(c.ShapeOf("Bias"), bias))
    return c.Error("shape of Bias (", c.ShapeOf("Bias"), ") must be ", bias);
  const Dim rows = input[0] == kUnknownDim ? before[0] : input[0];
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Gate", {rows, 3 * width}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ResetHiddenPrev", {rows, width}));
  return c.SetShape("Hidden", {rows, width});
}

template <typename T>
GruSteps<T> MakeStep(const KernelSetup& k) {
  GruSteps<T> steps;
  steps.SetWidth(k.Input("HiddenPrev").shape[1]);
  steps.cell.gate = static_cast<GateActivation>(k.Attr<std::int32_t>("gate_activation"));
  steps.cell.candidate = static_cast<GateActivation>(k.Attr<std::int32_t>("activation"));
  steps.cell.bounds_sigmoids = false;
  steps.cell.origin = k.Attr<bool>("origin_mode");
  steps.threads = k.threads();
  return steps;
}

template <typename Device, typename T>
class GruUnitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    steps_ = MakeStep<T>(k);
    k.Bind(input_, before_, weight_, bias_, gates_, reset_, hidden_);
    if (gates_ && reset_ && hidden_) return OkStatus();
    return k.Error("outputs Gate, ResetHiddenPrev and Hidden must be given");
  }

  Status Run(KernelRun& k) override {
    const auto read = [&k](const Operand& from) { return std::as_const(k[from]).template Data<T>(); };
    const T* const input = read(input_);
    return steps_.Forward(steps_.WithBias(bias_ ? read(bias_) : nullptr), read(weight_),
                          {.rows = k[input_].shape()[0],
                           .before = read(before_),
                           .gates = k[gates_].template Data<T>(),
                           .reset = k[reset_].template Data<T>(),
                           .out = k[hidden_].template Data<T>(),
                           .options = {.threads = steps_.threads}},
                          [&](Dim i) { return input + i * 3 * steps_.width; });
  }

 private:
  GruSteps<T> steps_;
  In<"Input"> input_;
  In<"HiddenPrev"> before_;
  In<"Weight"> weight_;
  In<"Bias"> bias_;
  Out<"Gate"> gates_;
  Out<"ResetHiddenPrev"> reset_;
  Out<"Hidden"> hidden_;
};

template <typename Device, typename T>
class GruUnitGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(before_);
    if (k[before_].shape.rank() != 2) return k.Error("rank of HiddenPrev (", k[before_].shape, ") must be 2");
    steps_ = MakeStep<T>(k);
    k.Bind(weight_, gates_, reset_, dhidden_, dinput_, dbefore_, dweight_, dbias_);
    const Dim width = steps_.width;
    rows_ = k[before_].shape[0];
    for (const char* slot : {"Input", "Gate"})
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, {rows_, 3 * width}));
    for (const char* slot : {"ResetHiddenPrev", "Hidden@GRAD"})
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, {rows_, width}));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Weight", {width, 3 * width}));
    if (dbias_ || k.Input("Bias")) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Bias", {1, 3 * width}));
    transposed_.Prepare(k, 3 * width * width);
    dgates_.Prepare(k, rows_ * 3 * width);
    dbefores_.Prepare(k, rows_ * width);
    dreset_.Prepare(k, rows_ * width);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const before = std::as_const(k[before_]).template Data<T>();
    T* const dgates = dgates_.At(k);
    T* const dbefore = dbefores_.At(k);
    const T* const dhidden = std::as_const(k[dhidden_]).template Data<T>();
    steps_.TransposeWeight(std::as_const(k[weight_]).template Data<T>(), transposed_.At(k));
    PENSTOCK_RETURN_IF_ERROR(steps_.Backward(transposed_.At(k),
                                             {.rows = rows_,
                                              .gates = std::as_const(k[gates_]).template Data<T>(),
                                              .before = before,
                                              .dgates = dgates,
                                              .dbefore = dbefore,
                                              .dreset = dreset_.At(k),
                                              .options = {.threads = steps_.threads}},
                                             [&](Dim i) { return dhidden + i * steps_.width; }));
    const Dim width = steps_.width;
    if (dinput_) std::copy_n(dgates, rows_ * 3 * width, k[dinput_].template Data<T>());
    if (dbefore_) std::copy_n(dbefore, rows_ * width, k[dbefore_].template Data<T>());
    if (dbias_) SumRows(dgates, rows_, 3 * width, k[dbias_].template Data<T>());
    if (!dweight_) return OkStatus();
    return steps_.BackwardWeight(before, std::as_const(k[reset_]).template Data<T>(), dgates, rows_,
                                 k[dweight_].template Data<T>());
  }

 private:
  GruSteps<T> steps_;
  Dim rows_ = 0;
  In<"HiddenPrev"> before_;
  In<"Weight"> weight_;
  In<"Gate"> gates_;
  In<"ResetHiddenPrev"> reset_;
  In<"Hidden@GRAD"> dhidden_;
  Out<"Input@GRAD"> dinput_;
  Out<"HiddenPrev@GRAD"> dbefore_;
  Out<"Weight@GRAD"> dweight_;
  Out<"Bias@GRAD"> dbias_;
  Scratch<T> transposed_, dgates_, dbefores_, dreset_;
};

}  // namespace

void RegisterGruUnit(OpRegistry& ops) {
  ops.Add("gru_unit")
      .Doc("One step of a gated recurrent unit.", kDoc)
      .Input("Input", "[rows, 3 * width]", Floats())
      .Input("HiddenPrev", "the previous hidden state", SameTypeAs("Input"))
      .Input("Weight", "[width, 3 * width]: two matrices in one buffer", SameTypeAs("Input"))
      .Input("Bias", "[1, 3 * width]", SameTypeAs("Input"), Optional())
      .Output("Gate", "the activated gates", SameTypeAs("Input"), Intermediate() | Apart())
      .Output("ResetHiddenPrev", "the previous hidden state times the reset gate", SameTypeAs("Input"),
              Intermediate() | Apart())
      .Output("Hidden", "the hidden state after the step", SameTypeAs("Input"), Apart())
      .Attr("activation", 2, "the activation of the candidate", ActivationNumber())
      .Attr("gate_activation", 1, "the activation of the update and reset gates", ActivationNumber())
      .Attr("origin_mode", false, "whether the update gate weights the previous state, not the candidate")
      .InferShape(InferGruUnit)
      .Kernel<Cpu, GruUnitKernel, float, double>()
      .Grad({.reads = {"Input", "HiddenPrev", "Weight", "Bias"},
             .reads_outputs = {"Gate", "ResetHiddenPrev"},
             .yields = {"Input", "HiddenPrev", "Weight", "Bias"},
             .of = {"Hidden"}})
      .GradKernel<Cpu, GruUnitGradKernel, float, double>();
}

}  // namespace penstock
