// One row of one step of an LSTM, forward and backward, without its matrix products.
//
// A gate row holds the candidate and the input, forget and output gates, each `width` elements.
#pragma once

#include <algorithm>

#include "framework/op/kernel.h"
#include "operators/common/nan.h"
#include "operators/sequence/gate_activation.h"

namespace penstock {

template <typename T>
struct LstmCell {
  Dim width = 0;
  GateActivation gate = GateActivation::kSigmoid;
  GateActivation cell = GateActivation::kTanh;
  GateActivation candidate = GateActivation::kTanh;
  T clip = 0;  // 0: the cell is not clipped

  // The peephole weights from the cell to the gates, three times `width`; null: no peepholes.
  const T* peepholes = nullptr;
  const T* check_input() const { return peepholes; }
  const T* check_forget() const { return peepholes + width; }
  const T* check_output() const { return peepholes + 2 * width; }

  // Computes the cell `state`, the activated cell `active` and the step's output `out`. `gates` holds the
  // sums of the products and the bias, and afterwards the activated gates. `before` is the previous cell;
  // null means zero.
  void Forward(T* gates, const T* before, T* state, T* active, T* out) const {
    T* const c = gates;
    T* const i = gates + width;
    T* const f = gates + 2 * width;
    T* const o = gates + 3 * width;
    if (peepholes != nullptr && before != nullptr) {
      for (Dim j = 0; j < width; ++j) i[j] += before[j] * check_input()[j];
      for (Dim j = 0; j < width; ++j) f[j] += before[j] * check_forget()[j];
    }
    ActivateClipped(candidate, c, width);
    ActivateClipped(gate, i, 2 * width);
    for (Dim j = 0; j < width; ++j) state[j] = c[j] * i[j];
    if (before != nullptr) {
      for (Dim j = 0; j < width; ++j) state[j] += before[j] * f[j];
    }
    if (clip > T{0}) {
      for (Dim j = 0; j < width; ++j) state[j] = std::clamp(state[j], -clip, clip);
    }
    if (peepholes != nullptr) {
      for (Dim j = 0; j < width; ++j) o[j] += state[j] * check_output()[j];
    }
    ActivateClipped(gate, o, width);
    std::copy_n(state, width, active);
    ActivateClipped(cell, active, width);
    for (Dim j = 0; j < width; ++j) out[j] = o[j] * active[j];
  }

  struct Gradients {
    T* gates;   // output: the gradient of the sums of the products and the bias
    T* state;   // input: the gradient of the cell; output: that of the previous cell
    T* checks;  // the gradient of the peepholes, to which this adds; null if it is not needed
  };
  // `gates` and `active` are the results of Forward; `dout` is the gradient of the step's output.
  void Backward(const T* gates, const T* before, const T* state, const T* active, const T* dout,
                const Gradients& d) const {
    const T* const c = gates;
    const T* const i = gates + width;
    const T* const f = gates + 2 * width;
    const T* const o = gates + 3 * width;
    T* const dc = d.gates;
    T* const di = d.gates + width;
    T* const df = d.gates + 2 * width;
    T* const d_o = d.gates + 3 * width;
    for (Dim j = 0; j < width; ++j) d_o[j] = dout[j] * active[j];
    ActivateGrad(gate, o, d_o, width);
    // At this point, dc holds the gradient of the activated cell.
    for (Dim j = 0; j < width; ++j) dc[j] = dout[j] * o[j];
    ActivateGrad(cell, active, dc, width);
    for (Dim j = 0; j < width; ++j) d.state[j] += dc[j];
    if (peepholes != nullptr) {
      for (Dim j = 0; j < width; ++j) d.state[j] += d_o[j] * check_output()[j];
    }
    if (clip > T{0}) {
      for (Dim j = 0; j < width; ++j)
        d.state[j] = Choose(state[j] > -clip && state[j] < clip, d.state[j], T{0}, state[j]);
    }
    for (Dim j = 0; j < width; ++j) dc[j] = d.state[j] * i[j];
    for (Dim j = 0; j < width; ++j) di[j] = d.state[j] * c[j];
    for (Dim j = 0; j < width; ++j) df[j] = before == nullptr ? T{0} : d.state[j] * before[j];
    ActivateGrad(candidate, c, dc, width);
    ActivateGrad(gate, i, di, 2 * width);
    for (Dim j = 0; j < width; ++j) d.state[j] *= f[j];
    if (peepholes != nullptr) BackwardChecks(before, state, d);
  }

 private:
  void BackwardChecks(const T* before, const T* state, const Gradients& d) const {
    const T* const di = d.gates + width;
    const T* const df = d.gates + 2 * width;
    const T* const d_o = d.gates + 3 * width;
    for (Dim j = 0; j < width; ++j) d.state[j] += di[j] * check_input()[j] + df[j] * check_forget()[j];
    if (d.checks == nullptr) return;
    for (Dim j = 0; j < width; ++j) d.checks[2 * width + j] += d_o[j] * state[j];
    if (before == nullptr) return;
    for (Dim j = 0; j < width; ++j) d.checks[j] += di[j] * before[j];
    for (Dim j = 0; j < width; ++j) d.checks[width + j] += df[j] * before[j];
  }
};

}  // namespace penstock
