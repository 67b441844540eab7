// A GRU over the rows of a batch: one step, forward and backward, for gru and gru_unit; all steps of
// sequences, for gru and fusion_gru.
//
// K. Cho et al.: "Learning phrase representations using RNN encoder-decoder for statistical machine
// translation", EMNLP 2014.
//
// A gate row holds the update gate, the reset gate and the candidate, each `width` elements. The weights are
// two matrices one after the other: [width, 2 * width] for the gates, [width, width] for the candidate.
#pragma once

#include <algorithm>

#include "operators/common/gemm.h"
#include "operators/sequence/gate_activation.h"
#include "operators/sequence/step_batches.h"

namespace penstock {

template <typename T>
struct GruSteps {
  Dim width = 0;
  GateActivation gate = GateActivation::kSigmoid;
  GateActivation candidate = GateActivation::kTanh;
  bool clips = false;   // whether arguments of sigmoids are clipped: gru does, gru_unit does not
  bool origin = false;  // h = u * before + (1 - u) * c; otherwise h = (1 - u) * before + u * c
  int threads = 1;

  MatrixView<const T> GateWeight(const T* weight) const { return RowMajor(weight, width, 2 * width); }
  MatrixView<const T> StateWeight(const T* weight) const {
    return RowMajor(weight + 2 * width * width, width, width);
  }

  void Apply(GateActivation f, T* x, Dim count) const {
    clips ? ActivateClipped(f, x, count) : Activate(f, x, count);
  }

  // Computes one step. `gates` holds input plus bias, and afterwards the activated gates. A null `before`
  // means zero.
  Status Forward(const T* weight, Dim rows, T* gates, const T* before, T* reset, T* out) const {
    const Dim stride = 3 * width;
    if (before != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(before, rows, width), GateWeight(weight),
                                       RowMajor(gates, rows, 2 * width, stride),
                                       {.add = true, .threads = threads}));
    }
    for (Dim r = 0; r < rows; ++r) {
      T* const row = gates + r * stride;
      Apply(gate, row, 2 * width);
      for (Dim j = 0; j < width; ++j)
        reset[r * width + j] = before == nullptr ? T{0} : row[width + j] * before[r * width + j];
    }
    if (before != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(reset, rows, width), StateWeight(weight),
                                       RowMajor(gates + 2 * width, rows, width, stride),
                                       {.add = true, .threads = threads}));
    }
    for (Dim r = 0; r < rows; ++r) {
      T* const row = gates + r * stride;
      Apply(candidate, row + 2 * width, width);
      for (Dim j = 0; j < width; ++j) {
        const T u = origin ? T{1} - row[j] : row[j];
        const T old = before == nullptr ? T{0} : before[r * width + j];
        out[r * width + j] = old + u * (row[2 * width + j] - old);
      }
    }
    return OkStatus();
  }

  // Computes all steps. The rows of `gates`, `reset` and `hidden` are in the order of the batches. `first` is
  // the initial hidden state, in the order of the places of step 0; null means zero.
  Status ForwardAll(const StepBatches& batches, const T* weight, T* gates, const T* first, T* reset,
                    T* hidden) const {
    const T* before = first;
    for (Dim t = 0; t < batches.steps(); ++t) {
      const Dim begin = batches.begin(t);
      PENSTOCK_RETURN_IF_ERROR(Forward(weight, batches.size(t), gates + begin * 3 * width, before,
                                       reset + begin * width, hidden + begin * width));
      before = hidden + begin * width;
    }
    return OkStatus();
  }

  struct Gradients {
    const T* out;  // input: the gradient of the step's output
    T* gates;      // output: the gradient of input plus bias
    T* before;     // output: the gradient of the previous hidden state; scratch if `before` is null
    T* reset;      // scratch, as large as `before`
  };
  Status Backward(const T* weight, Dim rows, const T* gates, const T* before, const Gradients& d) const {
    for (Dim r = 0; r < rows; ++r) BackwardOut(r, gates, before, d);
    const MatrixView<T> dreset = RowMajor(d.reset, rows, width);
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(d.gates + 2 * width, rows, width, 3 * width),
                                     Transposed(StateWeight(weight)), dreset, {.threads = threads}));
    for (Dim r = 0; r < rows; ++r) BackwardReset(r, gates, before, d);
    return Gemm<T>(RowMajor<const T>(d.gates, rows, 2 * width, 3 * width), Transposed(GateWeight(weight)),
                   RowMajor(d.before, rows, width), {.add = true, .threads = threads});
  }

  // Computes the gradient of the weights over all rows. `before` and `reset` are the left factors of the two
  // products.
  Status BackwardWeight(const T* before, const T* reset, const T* dgates, Dim rows, T* dweight) const {
    const Dim stride = 3 * width;
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(RowMajor(before, rows, width)),
                                     RowMajor(dgates, rows, 2 * width, stride),
                                     RowMajor(dweight, width, 2 * width), {.threads = threads}));
    return Gemm<T>(Transposed(RowMajor(reset, rows, width)),
                   RowMajor(dgates + 2 * width, rows, width, stride),
                   RowMajor(dweight + 2 * width * width, width, width), {.threads = threads});
  }

 private:
  void BackwardOut(Dim r, const T* gates, const T* before, const Gradients& d) const {
    const T* const row = gates + r * 3 * width;
    T* const drow = d.gates + r * 3 * width;
    for (Dim j = 0; j < width; ++j) {
      const T dout = d.out[r * width + j];
      const T old = before == nullptr ? T{0} : before[r * width + j];
      const T change = dout * (row[2 * width + j] - old);
      const T u = origin ? T{1} - row[j] : row[j];
      drow[j] = origin ? -change : change;
      drow[2 * width + j] = dout * u;
      d.before[r * width + j] = dout * (T{1} - u);
    }
    ActivateGrad(gate, row, drow, width);
    ActivateGrad(candidate, row + 2 * width, drow + 2 * width, width);
  }

  void BackwardReset(Dim r, const T* gates, const T* before, const Gradients& d) const {
    const T* const row = gates + r * 3 * width;
    T* const drow = d.gates + r * 3 * width;
    for (Dim j = 0; j < width; ++j) {
      const T dreset = d.reset[r * width + j];
      drow[width + j] = before == nullptr ? T{0} : dreset * before[r * width + j];
      d.before[r * width + j] += dreset * row[width + j];
    }
    ActivateGrad(gate, row + width, drow + width, width);
  }
};

}  // namespace penstock
