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
    k.Bind(gates_);
    if (k[gates_].shape.rank() != 2 || k[gates_].shape[1] % 4 != 0)
      return k.Error("BatchGate (", k[gates_].shape, ") must be [rows, 4 * width]");
    s_.Prepare(k, k[gates_].shape);
    out_.Prepare(k, s_.output());
    dout_ = k.Input(StrCat(s_.output(), kGradSuffix));
    k.Bind(cell_, dcell_, active_, hidden_, weight_, project_, bias_);
    h0_.Prepare(k, "H0", s_.recurrent);
    c0_.Prepare(k, "C0", s_.width);
    k.Bind(dweight_, dproject_, dbias_, dh0_, dc0_);
    PENSTOCK_RETURN_IF_ERROR(RequireShapes(k));
    const Dim gates = 4 * s_.width;
    transposed_.Prepare(k, gates * s_.recurrent);
    if (s_.projected) {
      transposed_project_.Prepare(k, s_.width * s_.recurrent);
      dprojected_.Prepare(k, s_.rows * s_.recurrent);
    }
    if (dweight_) before_.Prepare(k, s_.rows * s_.recurrent);
    dgates_.Prepare(k, "Input@GRAD", s_.rows * gates);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, out_.Innermost(k));
    batches_.Make(sequences, s_.reversed);
    PENSTOCK_ASSIGN_OR_RETURN(const T* const h0, h0_.Find(k, sequences.count()));
    PENSTOCK_ASSIGN_OR_RETURN(const T* const c0, c0_.Find(k, sequences.count()));
    for (const Operand first : std::initializer_list<Operand>{dh0_, dc0_}) {
      if (first) std::ranges::fill(k[first].template Span<T>(), T{0});
    }
    const Arrays arrays = ArraysOf(k, h0, c0);
    const vec::LstmGates<T> gates = s_.WithBias(Read(k, bias_));
    const Dim places = batches_.places_of_share(), shares = batches_.shares();
    T* buffer = steps_.Hold(shares * StepSums::Count(s_, places));
    PENSTOCK_RETURN_IF_ERROR(EachShare(batches_.shares(), s_.threads, [&](Dim share) {
      StepSums sums(s_, places, buffer + share * StepSums::Count(s_, places));
      return RunShare({gates, arrays, share, sums});
    }));
    return Finish(k, arrays, buffer);
  }

 private:
  // Rows are in the order of the argument, or where the name says so in that of the batches. Null: absent.
  struct Arrays {
    const T *batch_gates, *batch_active, *cell, *out, *dout, *dcell, *h0, *c0;
    const T *transposed, *transposed_project;  // the weights, so that products go by rows of both factors
    T *dgates, *batch_dprojected, *dh0, *dc0;
  };
  // What a share keeps from step to step: what a step hands back, a row for each place; sums over all rows.
  struct StepSums {
    StepSums(const LstmSetup<T>& s, Dim places, T* at) {
      const auto take = [&at](Dim count) { return std::exchange(at, at + count); };
      dout = take(places * s.recurrent);
      dcell = take(places * s.width);
      bias = take(7 * s.width);
      dgates = take(places * 4 * s.width);
      dhidden = take(places * s.width);
      std::fill(dout, dgates, T{0});
    }
    static Dim Count(const LstmSetup<T>& s, Dim places) {
      return places * (s.recurrent + 6 * s.width) + 7 * s.width;
    }
    static Dim BiasAt(const LstmSetup<T>& s, Dim places) { return places * (s.recurrent + s.width); }
    T *dout, *dcell, *bias, *dgates, *dhidden;
  };
  struct Share {
    const vec::LstmGates<T>& gates;
    const Arrays& arrays;
    Dim share;
    StepSums& sums;
  };

  const T* Read(KernelRun& k, const Operand& from) const {
    return from ? std::as_const(k[from]).template Data<T>() : nullptr;
  }
  Arrays ArraysOf(KernelRun& k, const T* h0, const T* c0) const {
    T* const transposed = transposed_.At(k);
    Transpose(Read(k, weight_), s_.recurrent, 4 * s_.width, transposed);
    T* const transposed_project = s_.projected ? transposed_project_.At(k) : nullptr;
    if (s_.projected) Transpose(Read(k, project_), s_.width, s_.recurrent, transposed_project);
    const auto written = [&k](const Operand& to) { return to ? k[to].template Data<T>() : nullptr; };
    return {.batch_gates = Read(k, gates_),
            .batch_active = Read(k, active_),
            .cell = Read(k, cell_),
            .out = Read(k, out_.operand()),
            .dout = Read(k, dout_),
            .dcell = Read(k, dcell_),
            .h0 = h0,
            .c0 = c0,
            .transposed = transposed,
            .transposed_project = transposed_project,
            .dgates = dgates_.At(k),
            .batch_dprojected = s_.projected ? dprojected_.At(k) : nullptr,
            .dh0 = written(dh0_),
            .dc0 = written(dc0_)};
  }

  Status RequireShapes(const KernelSetup& k) const {
    const Shape cells = {s_.rows, s_.width}, outs = {s_.rows, s_.recurrent};
    const auto require = [&k](std::string_view slot, const Shape& expected) {
      const Argument& operand = k.Input(slot);
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

  Status RunShare(const Share& s) const {
    for (Dim t = batches_.steps() - 1; t >= 0; --t) {
      if (const Dim size = batches_.size(t, s.share); size > 0) PENSTOCK_RETURN_IF_ERROR(RunStep(s, t, size));
    }
    return OkStatus();
  }

  Status RunStep(const Share& s, Dim t, Dim size) const {
    const Dim gates = 4 * s_.width;
    if (s_.projected) PENSTOCK_RETURN_IF_ERROR(BackThroughProjection(s, t, size));
    for (Dim i = 0; i < size; ++i) RunRow(s, t, i);
    AddRowsTo<T>(s.sums.dgates, size, gates, s.sums.bias);
    if (t == 0 && s.arrays.dh0 == nullptr) return OkStatus();
    // What the step hands back to the outputs of the previous step, or to H0.
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(s.sums.dgates, size, gates),
                                     RowMajor(s.arrays.transposed, gates, s_.recurrent),
                                     RowMajor(s.sums.dout, size, s_.recurrent), Options()));
    for (Dim i = 0; t == 0 && i < size; ++i) {
      const Dim sequence = batches_.sequence(batches_.Place(s.share, i));
      std::copy_n(s.sums.dout + i * s_.recurrent, s_.recurrent, s.arrays.dh0 + sequence * s_.recurrent);
    }
    return OkStatus();
  }

  void RunRow(const Share& s, Dim t, Dim i) const {
    const Dim width = s_.width, position = batches_.Position(t, s.share, i);
    const Dim row = batches_.row(position), sequence = batches_.sequence(batches_.Place(s.share, i));
    const Arrays& a = s.arrays;
    const T* before = a.c0 == nullptr ? nullptr : a.c0 + sequence * width;
    if (t > 0) before = a.cell + batches_.row(batches_.Position(t - 1, s.share, i)) * width;
    T* const dgates = s.sums.dgates + i * 4 * width;
    T* const dcell = s.sums.dcell + i * width;
    LstmBackward(s.gates, {.gates = a.batch_gates + position * 4 * width,
                           .before = before,
                           .cell = a.cell + row * width,
                           .active = a.batch_active + position * width,
                           .dout = s_.projected ? s.sums.dhidden + i * width : a.dout + row * width,
                           .dout_again = s_.projected ? nullptr : s.sums.dout + i * width,
                           .dcell_direct = a.dcell == nullptr ? nullptr : a.dcell + row * width,
                           .dcell = dcell,
                           .dgates = dgates,
                           .dpeepholes = s_.peepholes ? s.sums.bias + 4 * width : nullptr});
    std::copy_n(dgates, 4 * width, a.dgates + row * 4 * width);
    if (t == 0 && a.dc0 != nullptr) std::copy_n(dcell, width, a.dc0 + sequence * width);
  }

  // Computes the gradient of the product with ProjWeight, and that of the hidden state before the projection.
  Status BackThroughProjection(const Share& s, Dim t, Dim size) const {
    const Dim recurrent = s_.recurrent;
    for (Dim i = 0; i < size; ++i) {
      const Dim position = batches_.Position(t, s.share, i), row = batches_.row(position);
      const T* const out = s.arrays.out + row * recurrent;
      T* const d = s.arrays.batch_dprojected + position * recurrent;
      for (Dim j = 0; j < recurrent; ++j)
        d[j] = s.arrays.dout[row * recurrent + j] + s.sums.dout[i * recurrent + j];
      if (s_.projection_clip > T{0}) {
        for (Dim j = 0; j < recurrent; ++j)
          d[j] = Choose(std::abs(out[j]) < s_.projection_clip, d[j], T{0}, out[j]);
      }
      ActivateGrad(s_.projection, out, d, recurrent);
    }
    const T* const d = s.arrays.batch_dprojected + batches_.Position(t, s.share, 0) * recurrent;
    return Gemm<T>(RowMajor(d, size, recurrent, batches_.shares() * recurrent),
                   RowMajor(s.arrays.transposed_project, recurrent, s_.width),
                   RowMajor(s.sums.dhidden, size, s_.width), Options());
  }

  GemmOptions Options() const { return {.threads = ThreadsOfShare(batches_.shares(), s_.threads)}; }

  // Computes the gradients that sum over all steps. `sums`: those of the shares.
  Status Finish(KernelRun& k, const Arrays& arrays, const T* sums) {
    const Dim rows = batches_.rows(), width = 4 * s_.width, places = batches_.places_of_share();
    if (dbias_) {
      const Dim count = k[bias_].shape().Count();
      T* const dbias = k[dbias_].template Data<T>();
      std::fill_n(dbias, count, T{0});
      for (Dim share = 0; share < batches_.shares(); ++share)
        AddRowsTo(sums + share * StepSums::Count(s_, places) + StepSums::BiasAt(s_, places), 1, count, dbias);
    }
    if (dproject_) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(RowMajor(Read(k, hidden_), rows, s_.width)),
                                       RowMajor<const T>(arrays.batch_dprojected, rows, s_.recurrent),
                                       RowMajor(k[dproject_].template Data<T>(), s_.width, s_.recurrent),
                                       {.threads = s_.threads}));
    }
    if (!dweight_) return OkStatus();
    T* const before = before_.At(k);
    batches_.CopyPrevious(arrays.out, false, arrays.h0, s_.recurrent, before);
    return Gemm<T>(Transposed(RowMajor<const T>(before, rows, s_.recurrent)),
                   RowMajor<const T>(arrays.dgates, rows, width),
                   RowMajor(k[dweight_].template Data<T>(), s_.recurrent, width), {.threads = s_.threads});
  }

  LstmSetup<T> s_;
  SequenceInput out_;
  InitialState<T> h0_, c0_;
  In<"BatchGate"> gates_;
  In<"Cell"> cell_;
  In<"Cell@GRAD"> dcell_;
  In<"BatchCellPreAct"> active_;
  In<"BatchHidden"> hidden_;
  In<"Weight"> weight_;
  In<"ProjWeight"> project_;
  In<"Bias"> bias_;
  Operand dout_;
  Out<"Weight@GRAD"> dweight_;
  Out<"ProjWeight@GRAD"> dproject_;
  Out<"Bias@GRAD"> dbias_;
  Out<"H0@GRAD"> dh0_;
  Out<"C0@GRAD"> dc0_;
  StepBatches batches_;
  Scratch<T> transposed_, transposed_project_, dprojected_, before_;
  OutputOrScratch<T> dgates_;  // Input@GRAD
  RowBuffer<T> steps_;
};

}  // namespace

void DeclareLstmGrad(OpDef& forward) {
  forward.GradKernel<Cpu, LstmGradKernel, float, double>();
  forward.GradDef().KernelTypeFrom("BatchGate").InferShape(InferLstmGrad);
}

}  // namespace penstock
