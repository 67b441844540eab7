// One layer of an LSTM over sequences of equal length, in one direction: forward pass and gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "operators/common/gemm.h"

namespace penstock {

// The sizes of a pass. Rows are ordered by step; each step has `batch` rows.
struct LstmSizes {
  Dim steps = 0, batch = 0, input = 0, hidden = 0;
  bool reversed = false;  // from the last step to the first
  int threads = 1;
  Dim rows() const { return steps * batch; }
};

// Weights whose rows belong to the input gate, forget gate, candidate and output gate, in this order.
template <typename T>
struct LstmWeights {
  T* of_input;   // [4 hidden, input]
  T* of_hidden;  // [4 hidden, hidden]
  T* bias;       // two vectors [4 hidden], which are added
};

template <typename T>
class LstmLayer {
 public:
  // Rows of the layer's output, or of its gradient, `stride` elements apart.
  struct Out {
    T* data;
    Dim stride;
  };
  struct In {
    const T* data;
    Dim stride;
  };

  // `hidden` and `cell` hold the initial states of each sequence, and afterwards the final states.
  Status Forward(const LstmSizes& sizes, const LstmWeights<const T>& w, const T* input, T* hidden, T* cell,
                 Out out) {
    const Dim n = sizes.batch * sizes.hidden;
    gates_.resize(static_cast<std::size_t>(4 * sizes.rows() * sizes.hidden));
    before_.resize(static_cast<std::size_t>(sizes.rows() * sizes.hidden));
    cell_before_.resize(before_.size());
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(input, sizes.rows(), sizes.input),
                                     Transposed(RowMajor(w.of_input, 4 * sizes.hidden, sizes.input)),
                                     RowMajor(gates_.data(), sizes.rows(), 4 * sizes.hidden),
                                     {.threads = sizes.threads}));
    for (Dim i = 0; i < sizes.steps; ++i) {
      const Dim t = sizes.reversed ? sizes.steps - 1 - i : i;
      T* const gates = gates_.data() + 4 * t * n;
      std::copy_n(hidden, n, before_.data() + t * n);
      std::copy_n(cell, n, cell_before_.data() + t * n);
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(static_cast<const T*>(hidden), sizes.batch, sizes.hidden),
                                       Transposed(RowMajor(w.of_hidden, 4 * sizes.hidden, sizes.hidden)),
                                       RowMajor(gates, sizes.batch, 4 * sizes.hidden),
                                       {.add = true, .threads = sizes.threads}));
      for (Dim b = 0; b < sizes.batch; ++b) {
        Step(sizes.hidden, w.bias, gates + 4 * b * sizes.hidden, hidden + b * sizes.hidden,
             cell + b * sizes.hidden);
        std::copy_n(hidden + b * sizes.hidden, sizes.hidden, out.data + (t * sizes.batch + b) * out.stride);
      }
    }
    return OkStatus();
  }

  // Call it after Forward with the same arguments. `dhidden` and `dcell` hold the gradients of the final
  // states, and afterwards those of the initial states. Adds to `dinput` and `dw`; either may be null.
  Status Backward(const LstmSizes& sizes, const LstmWeights<const T>& w, const T* input, In dout, T* dhidden,
                  T* dcell, T* dinput, const LstmWeights<T>* dw) {
    const Dim n = sizes.batch * sizes.hidden, width = 4 * sizes.hidden;
    for (Dim i = sizes.steps - 1; i >= 0; --i) {
      const Dim t = sizes.reversed ? sizes.steps - 1 - i : i;
      for (Dim b = 0; b < sizes.batch; ++b) {
        const Dim row = t * sizes.batch + b;
        StepGrad(sizes.hidden, gates_.data() + width * row, cell_before_.data() + sizes.hidden * row,
                 dout.data + row * dout.stride, dhidden + b * sizes.hidden, dcell + b * sizes.hidden);
      }
      PENSTOCK_RETURN_IF_ERROR(
          Gemm<T>(RowMajor(static_cast<const T*>(gates_.data() + 4 * t * n), sizes.batch, width),
                  RowMajor(w.of_hidden, width, sizes.hidden), RowMajor(dhidden, sizes.batch, sizes.hidden),
                  {.threads = sizes.threads}));
    }
    const GemmOptions add = {.add = true, .threads = sizes.threads};
    const MatrixView<const T> dgates = RowMajor(static_cast<const T*>(gates_.data()), sizes.rows(), width);
    if (dinput != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(dgates, RowMajor(w.of_input, width, sizes.input),
                                       RowMajor(dinput, sizes.rows(), sizes.input), add));
    }
    if (dw == nullptr) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(dgates), RowMajor(input, sizes.rows(), sizes.input),
                                     RowMajor(dw->of_input, width, sizes.input), add));
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(
        Transposed(dgates), RowMajor(static_cast<const T*>(before_.data()), sizes.rows(), sizes.hidden),
        RowMajor(dw->of_hidden, width, sizes.hidden), add));
    for (Dim row = 0; row < sizes.rows(); ++row) {
      for (Dim i = 0; i < width; ++i) {
        dw->bias[i] += gates_[static_cast<std::size_t>(row * width + i)];
        dw->bias[width + i] += gates_[static_cast<std::size_t>(row * width + i)];
      }
    }
    return OkStatus();
  }

 private:
  static T Sigmoid(T x) { return T{1} / (T{1} + std::exp(-x)); }

  // Computes one step of one sequence. `gates` holds the sums, and afterwards the activated gates.
  static void Step(Dim width, const T* bias, T* gates, T* hidden, T* cell) {
    for (Dim i = 0; i < 4 * width; ++i) {
      const T sum = gates[i] + bias[i] + bias[4 * width + i];
      gates[i] = i / width == 2 ? std::tanh(sum) : Sigmoid(sum);
    }
    for (Dim i = 0; i < width; ++i) {
      cell[i] = gates[width + i] * cell[i] + gates[i] * gates[2 * width + i];
      hidden[i] = gates[3 * width + i] * std::tanh(cell[i]);
    }
  }
  // The gradient of Step. `gates` holds the activated gates, and afterwards the gradients of the sums.
  static void StepGrad(Dim width, T* gates, const T* cell_before, const T* dout, const T* dhidden, T* dcell) {
    for (Dim i = 0; i < width; ++i) {
      T &in = gates[i], &forget = gates[width + i], &candidate = gates[2 * width + i],
        &output = gates[3 * width + i];
      const T squashed = std::tanh(forget * cell_before[i] + in * candidate);
      const T dh = dout[i] + dhidden[i];
      const T dc = dcell[i] + dh * output * (T{1} - squashed * squashed);
      const T dcandidate = dc * in * (T{1} - candidate * candidate);
      output = dh * squashed * output * (T{1} - output);
      dcell[i] = dc * forget;
      forget = dc * cell_before[i] * forget * (T{1} - forget);
      in = dc * candidate * in * (T{1} - in);
      candidate = dcandidate;
    }
  }

  std::vector<T> gates_, before_, cell_before_;  // for each row
};

}  // namespace penstock
