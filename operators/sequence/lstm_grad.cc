// lstm_grad, lstmp_grad: the steps of lstm.cc, run backwards.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "operators/common/nan.h"
#include "operators/sequence/lstm.h"

namespace penstock {
namespace {

// lstmp_grad has no input Input; its shape is that of the gates.
Status InferLstmGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Input@GRAD", c.ShapeOf("BatchGate")));
  c.SetDType("Input@GRAD", c.DTypeOf("BatchGate"));
  c.ShareLodUndeclared(c.HasInput("ProjWeight") ? "Projection" : "Hidden", 0, "Input@GRAD", 0);
  for (const std::string slot : {"Weight", "ProjWeight", "Bias", "H0", "C0"})
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll(slot, slot + kGradSuffix));
  return OkStatus();
}

template <typename Device, typename T>
class LstmGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    gates_ = k.Input("BatchGate");
    if (gates_.shape.rank() != 2 || gates_.shape[1] % 4 != 0)
      return k.Error("BatchGate (", gates_.shape, ") must be [rows, 4 * width]");
    s_.Prepare(k, gates_.shape);
    out_.Prepare(k, s_.output());
    dout_ = k.Input(StrCat(s_.output(), kGradSuffix));
    cell_ = k.Input("Cell");
    dcell_ = k.Input("Cell@GRAD");
    active_ = k.Input("BatchCellPreAct");
    hidden_ = k.Input("BatchHidden");
    weight_ = k.Input("Weight");
    project_ = k.Input("ProjWeight");
    bias_ = k.Input("Bias");
    h0_.Prepare(k, "H0", s_.recurrent);
    c0_.Prepare(k, "C0", s_.width);
    dinput_ = k.Output("Input@GRAD");
    dweight_ = k.Output("Weight@GRAD");
    dproject_ = k.Output("ProjWeight@GRAD");
    dbias_ = k.Output("Bias@GRAD");
    dh0_ = k.Output("H0@GRAD");
    dc0_ = k.Output("C0@GRAD");
    PENSTOCK_RETURN_IF_ERROR(RequireShapes(k));
    for (Scratch<T>* cells : {&states_, &dstates_, &dhidden_}) cells->Prepare(k, s_.rows * s_.width);
    for (Scratch<T>* outs : {&outs_, &before_, &douts_}) outs->Prepare(k, s_.rows * s_.recurrent);
    dgates_.Prepare(k, s_.rows * 4 * s_.width);
    dbiases_.Prepare(k, bias_.shape.Count());
    dfirst_.Prepare(k, h0_.rows() * s_.recurrent);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, out_.Innermost(k));
    batches_.Make(sequences, s_.reversed);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    PENSTOCK_ASSIGN_OR_RETURN(c0_rows_, c0_.Find(k, sequences.count()));
    Start(k, h0);
    for (Dim t = batches_.steps() - 1; t >= 0; --t) PENSTOCK_RETURN_IF_ERROR(RunStep(k, t));
    return Finish(k);
  }

 private:
  Status RequireShapes(const KernelSetup& k) const {
    const Shape cells = {s_.rows, s_.width}, outs = {s_.rows, s_.recurrent};
    const auto require = [&k](std::string_view slot, const Shape& expected) {
      const Operand& operand = k.Input(slot);
      if (!operand || operand.shape == expected) return OkStatus();
      return k.Error("shape of ", slot, " (", operand.shape, ") must be ", expected);
    };
    for (const char* slot : {"Cell", "Cell@GRAD", "BatchCellPreAct", "BatchHidden"})
      PENSTOCK_RETURN_IF_ERROR(require(slot, cells));
    PENSTOCK_RETURN_IF_ERROR(require(s_.output(), outs));
    PENSTOCK_RETURN_IF_ERROR(require(StrCat(s_.output(), kGradSuffix), outs));
    PENSTOCK_RETURN_IF_ERROR(require("Weight", {s_.recurrent, 4 * s_.width}));
    PENSTOCK_RETURN_IF_ERROR(require("ProjWeight", {s_.width, s_.recurrent}));
    PENSTOCK_RETURN_IF_ERROR(require("Bias", {1, (s_.peepholes ? 7 : 4) * s_.width}));
    for (const std::string slot : {"H0", "C0", "ProjWeight"}) {
      if (k.Output(slot + kGradSuffix) && !k.Input(slot))
        return k.Error(slot, kGradSuffix, " is requested, but ", slot, " is not given");
    }
    if (s_.projected && !hidden_) return k.Error("input BatchHidden is missing");
    if (!cell_) return k.Error("input Cell is missing");
    return OkStatus();
  }

  void Start(KernelRun& k, const T* h0) {
    batches_.Gather(std::as_const(k[cell_]).template Data<T>(), s_.width, states_.At(k));
    batches_.Gather(std::as_const(k[out_.operand()]).template Data<T>(), s_.recurrent, outs_.At(k));
    batches_.GatherPrevious(outs_.At(k), h0, s_.recurrent, before_.At(k));
    batches_.Gather(std::as_const(k[dout_]).template Data<T>(), s_.recurrent, douts_.At(k));
    if (dcell_) {
      batches_.Gather(std::as_const(k[dcell_]).template Data<T>(), s_.width, dstates_.At(k));
    } else {
      std::fill_n(dstates_.At(k), batches_.rows() * s_.width, T{0});
    }
    for (const Operand* first : {&dh0_, &dc0_}) {
      if (*first) std::ranges::fill(k[*first].template Span<T>(), T{0});
    }
    const T* const bias = std::as_const(k[bias_]).template Data<T>();
    s_.cell.peepholes = s_.peepholes ? bias + 4 * s_.width : nullptr;
    std::fill_n(dbiases_.At(k), bias_.shape.Count(), T{0});
  }

  Status RunStep(KernelRun& k, Dim t) {
    const Dim begin = batches_.begin(t), size = batches_.size(t), width = s_.width;
    T* const douts = douts_.At(k) + begin * s_.recurrent;
    const T* dhidden = douts;
    if (s_.projected) {
      PENSTOCK_RETURN_IF_ERROR(BackThroughProjection(k, begin, size, douts));
      dhidden = dhidden_.At(k) + begin * width;
    }
    const T* const gates = std::as_const(k[gates_]).template Data<T>() + begin * 4 * width;
    const T* const active = std::as_const(k[active_]).template Data<T>() + begin * width;
    const T* const states = states_.At(k) + begin * width;
    T* const dgates = dgates_.At(k) + begin * 4 * width;
    T* const dstates = dstates_.At(k) + begin * width;
    T* const dchecks = s_.peepholes ? dbiases_.At(k) + 4 * width : nullptr;
    for (Dim p = 0; p < size; ++p) {
      s_.cell.Backward(gates + p * 4 * width, StateBefore(k, t, p), states + p * width, active + p * width,
                       dhidden + p * width,
                       {.gates = dgates + p * 4 * width, .state = dstates + p * width, .checks = dchecks});
      HandBack(k, t, p, dstates + p * width);
    }
    return HandBackOuts(k, t, dgates);
  }

  // Turns douts into the gradient of the product with ProjWeight, and dhidden into the gradient of the hidden
  // state before the projection.
  Status BackThroughProjection(KernelRun& k, Dim begin, Dim size, T* douts) {
    const T* const outs = outs_.At(k) + begin * s_.recurrent;
    const Dim count = size * s_.recurrent;
    if (s_.projection_clip > T{0}) {
      for (Dim j = 0; j < count; ++j) {
        douts[j] = Choose(std::abs(outs[j]) < s_.projection_clip, douts[j], T{0}, outs[j]);
      }
    }
    ActivateGrad(s_.projection, outs, douts, count);
    const T* const project = std::as_const(k[project_]).template Data<T>();
    return Gemm<T>(RowMajor<const T>(douts, size, s_.recurrent),
                   Transposed(RowMajor(project, s_.width, s_.recurrent)),
                   RowMajor(dhidden_.At(k) + begin * s_.width, size, s_.width), {.threads = s_.threads});
  }

  const T* StateBefore(KernelRun& k, Dim t, Dim place) const {
    if (t > 0) return states_.At(k) + (batches_.begin(t - 1) + place) * s_.width;
    return c0_rows_ == nullptr ? nullptr : c0_rows_ + batches_.sequence(place) * s_.width;
  }

  // The gradient of the previous cell goes to the previous step, or to C0.
  void HandBack(KernelRun& k, Dim t, Dim place, const T* dbefore) {
    if (t > 0) {
      T* const to = dstates_.At(k) + (batches_.begin(t - 1) + place) * s_.width;
      for (Dim j = 0; j < s_.width; ++j) to[j] += dbefore[j];
    } else if (dc0_) {
      std::copy_n(dbefore, s_.width, k[dc0_].template Data<T>() + batches_.sequence(place) * s_.width);
    }
  }

  // The same for the output of the previous step, or H0.
  Status HandBackOuts(KernelRun& k, Dim t, const T* dgates) {
    const Dim size = batches_.size(t);
    if (t == 0 && !dh0_) return OkStatus();
    T* const to = t > 0 ? douts_.At(k) + batches_.begin(t - 1) * s_.recurrent : dfirst_.At(k);
    const T* const weight = std::as_const(k[weight_]).template Data<T>();
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(
        RowMajor(dgates, size, 4 * s_.width), Transposed(RowMajor(weight, s_.recurrent, 4 * s_.width)),
        RowMajor(to, size, s_.recurrent), {.add = t > 0, .threads = s_.threads}));
    if (t > 0) return OkStatus();
    T* const dh0 = k[dh0_].template Data<T>();
    for (Dim p = 0; p < size; ++p)
      std::copy_n(to + p * s_.recurrent, s_.recurrent, dh0 + batches_.sequence(p) * s_.recurrent);
    return OkStatus();
  }

  // Computes the gradients that sum over all steps.
  Status Finish(KernelRun& k) {
    const Dim rows = batches_.rows(), width = 4 * s_.width;
    const T* const dgates = dgates_.At(k);
    if (dinput_) batches_.Scatter(dgates, width, k[dinput_].template Data<T>());
    if (dbias_) {
      T* const dbias = dbiases_.At(k);
      SumRows(dgates, rows, width, dbias);
      std::copy_n(dbias, bias_.shape.Count(), k[dbias_].template Data<T>());
    }
    if (dproject_) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(
          Transposed(RowMajor(std::as_const(k[hidden_]).template Data<T>(), rows, s_.width)),
          RowMajor<const T>(douts_.At(k), rows, s_.recurrent),
          RowMajor(k[dproject_].template Data<T>(), s_.width, s_.recurrent), {.threads = s_.threads}));
    }
    if (!dweight_) return OkStatus();
    return Gemm<T>(Transposed(RowMajor<const T>(before_.At(k), rows, s_.recurrent)),
                   RowMajor(dgates, rows, width),
                   RowMajor(k[dweight_].template Data<T>(), s_.recurrent, width), {.threads = s_.threads});
  }

  LstmSetup<T> s_;
  SequenceInput out_;
  InitialState<T> h0_, c0_;
  Operand gates_, dout_, cell_, dcell_, active_, hidden_, weight_, project_, bias_;
  Operand dinput_, dweight_, dproject_, dbias_, dh0_, dc0_;
  StepBatches batches_;
  // In the order of the batches.
  Scratch<T> states_, dstates_, dhidden_, outs_, before_, douts_, dgates_;
  Scratch<T> dbiases_, dfirst_;
  const T* c0_rows_ = nullptr;
};

}  // namespace

void DeclareLstmGrad(OpDef& forward) {
  forward.GradKernel<Cpu, LstmGradKernel, float, double>();
  forward.GradDef().KernelTypeFrom("BatchGate").InferShape(InferLstmGrad);
}

}  // namespace penstock
