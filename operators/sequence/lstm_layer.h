// One layer of an LSTM over sequences of equal length, in one direction: forward pass and gradient.
#pragma once

#include <algorithm>
#include <vector>

#include "operators/common/gemm.h"
#include "operators/sequence/lstm_cell.h"
#include "operators/sequence/recurrent.h"

namespace penstock {

// The sizes of a pass. Rows are ordered by step; each step has `batch` rows.
struct LstmSizes {
  Dim steps = 0, batch = 0, input = 0, hidden = 0;
  bool reversed = false;  // from the last step to the first
  int threads = 1;
  Dim rows() const { return steps * batch; }
  Dim step(Dim i) const { return reversed ? steps - 1 - i : i; }  // the step that runs at place i
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
    const Dim width = 4 * sizes.hidden;
    gates_.resize(static_cast<std::size_t>(sizes.rows() * width));
    for (std::vector<T>* rows : {&before_, &cell_before_, &active_})
      rows->resize(static_cast<std::size_t>(sizes.rows() * sizes.hidden));
    transposed_.resize(static_cast<std::size_t>(width * sizes.hidden));
    Transpose(w.of_hidden, width, sizes.hidden, transposed_.data());
    bias_.assign(w.bias, w.bias + width);
    AddRowsTo(w.bias + width, 1, width, bias_.data());
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(
        RowMajor(input, sizes.rows(), sizes.input), Transposed(RowMajor(w.of_input, width, sizes.input)),
        RowMajor(gates_.data(), sizes.rows(), width), {.threads = sizes.threads}));
    return ForShares(sizes, [&](const Share& s) {
      for (Dim i = 0; i < sizes.steps; ++i)
        PENSTOCK_RETURN_IF_ERROR(ForwardStep(sizes, sizes.step(i), s, hidden, cell, out));
      return OkStatus();
    });
  }

  // Call it after Forward with the same arguments. `dhidden` and `dcell` hold the gradients of the final
  // states, and afterwards those of the initial states. Adds to `dinput` and `dw`; either may be null.
  Status Backward(const LstmSizes& sizes, const LstmWeights<const T>& w, const T* input, In dout, T* dhidden,
                  T* dcell, T* dinput, const LstmWeights<T>* dw) {
    const Dim width = 4 * sizes.hidden;
    PENSTOCK_RETURN_IF_ERROR(ForShares(sizes, [&](const Share& s) {
      for (Dim i = sizes.steps - 1; i >= 0; --i)
        PENSTOCK_RETURN_IF_ERROR(BackwardStep(sizes, sizes.step(i), s, w.of_hidden, dout, dhidden, dcell));
      return OkStatus();
    }));
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
    SumRows(dgates.data, sizes.rows(), width, bias_.data());
    for (const Dim vector : {0, 1}) AddRowsTo(bias_.data(), 1, width, dw->bias + vector * width);
    return OkStatus();
  }

 private:
  // The sequences that run through all steps on one thread.
  struct Share {
    Dim begin = 0, count = 0;
    GemmOptions options;
  };
  template <typename Run>
  static Status ForShares(const LstmSizes& sizes, const Run& run) {
    const Dim shares = SharesOf(sizes.batch);
    return EachShare(shares, sizes.threads, [&](Dim share) {
      const Dim begin = share * sizes.batch / shares, end = (share + 1) * sizes.batch / shares;
      return run(Share{begin, end - begin, {.threads = ThreadsOfShare(shares, sizes.threads)}});
    });
  }

  vec::LstmGates<T> Cell(const LstmSizes& sizes) const {
    return {.width = static_cast<std::size_t>(sizes.hidden),
            .bounds_sigmoids = false,
            .bias = bias_.data(),
            .parts = {.candidate = 2, .input = 0, .forget = 1, .output = 3}};
  }

  Status ForwardStep(const LstmSizes& sizes, Dim t, const Share& s, T* hidden, T* cell, const Out& out) {
    const Dim n = sizes.hidden, first = t * sizes.batch + s.begin;
    std::copy_n(hidden + s.begin * n, s.count * n, before_.data() + first * n);
    std::copy_n(cell + s.begin * n, s.count * n, cell_before_.data() + first * n);
    GemmOptions adds = s.options;
    adds.add = true;
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(hidden + s.begin * n, s.count, n),
                                     RowMajor<const T>(transposed_.data(), n, 4 * n),
                                     RowMajor(gates_.data() + first * 4 * n, s.count, 4 * n), adds));
    const vec::LstmGates<T> gates = Cell(sizes);
    for (Dim i = 0; i < s.count; ++i) {
      const Dim row = first + i, sequence = s.begin + i;
      LstmForward(gates, {.gates = gates_.data() + row * 4 * n,
                          .has_product = true,
                          .before = cell_before_.data() + row * n,
                          .cell = cell + sequence * n,
                          .active = active_.data() + row * n,
                          .out = hidden + sequence * n});
      std::copy_n(hidden + sequence * n, n, out.data + row * out.stride);
    }
    return OkStatus();
  }

  // Replaces the activated gates of the step by the gradients of the sums.
  Status BackwardStep(const LstmSizes& sizes, Dim t, const Share& s, const T* of_hidden, const In& dout,
                      T* dhidden, T* dcell) {
    const Dim n = sizes.hidden, first = t * sizes.batch + s.begin;
    const vec::LstmGates<T> gates = Cell(sizes);
    for (Dim i = 0; i < s.count; ++i) {
      const Dim row = first + i, sequence = s.begin + i;
      LstmBackward(gates, {.gates = gates_.data() + row * 4 * n,
                           .before = cell_before_.data() + row * n,
                           .active = active_.data() + row * n,
                           .dout = dout.data + row * dout.stride,
                           .dout_again = dhidden + sequence * n,
                           .dcell = dcell + sequence * n,
                           .dgates = gates_.data() + row * 4 * n});
    }
    return Gemm<T>(RowMajor<const T>(gates_.data() + first * 4 * n, s.count, 4 * n),
                   RowMajor(of_hidden, 4 * n, n), RowMajor(dhidden + s.begin * n, s.count, n), s.options);
  }

  std::vector<T> gates_, before_, cell_before_, active_;  // for each row
  std::vector<T> transposed_, bias_;                      // of_hidden; the sum of both vectors
};

}  // namespace penstock
