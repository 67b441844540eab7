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
#include "operators/sequence/gru_cell.h"
#include "operators/sequence/recurrent.h"

namespace penstock {

template <typename T>
struct GruSteps {
  Dim width = 0;
  vec::GruGates<T> cell;  // without the bias
  int threads = 1;

  void SetWidth(Dim to) {
    width = to;
    cell.width = static_cast<std::size_t>(to);
  }
  vec::GruGates<T> WithBias(const T* bias) const {
    vec::GruGates<T> with = cell;
    with.bias = bias;
    return with;
  }

  // One step. Row i of an array begins at i * apart * (the width of its rows).
  struct Step {
    Dim rows = 0, apart = 1;
    const T* before = nullptr;  // null: zeros
    T *gates, *reset, *out;     // outputs: the activated gates; reset gate * before
    GemmOptions options;
  };
  // `input_of(i)` returns the input of row i, three times `width` elements.
  template <typename InputOf>
  Status Forward(const vec::GruGates<T>& gates, const T* weight, const Step& s,
                 const InputOf& input_of) const {
    const bool has_before = s.before != nullptr;
    const Dim stride = 3 * width;
    if (has_before) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(s.before, s.rows, width, s.apart * width),
                                       RowMajor(weight, width, 2 * width),
                                       RowMajor(s.gates, s.rows, 2 * width, s.apart * stride), s.options));
    }
    const auto row = [&](Dim i) {
      const Dim at = i * s.apart;
      return vec::GruRow<T>{.gates = s.gates + at * stride,
                            .has_product = has_before,
                            .input = input_of(i),
                            .before = has_before ? s.before + at * width : nullptr,
                            .reset = s.reset + at * width,
                            .out = s.out + at * width};
    };
    for (Dim i = 0; i < s.rows; ++i) GruReset(gates, row(i));
    if (has_before) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(s.reset, s.rows, width, s.apart * width),
                                       RowMajor(weight + 2 * width * width, width, width),
                                       RowMajor(s.gates + 2 * width, s.rows, width, s.apart * stride),
                                       s.options));
    }
    for (Dim i = 0; i < s.rows; ++i) GruOut(gates, row(i));
    return OkStatus();
  }

  // Rows are in the order of the argument, or where the name says so in that of the batches.
  struct Arrays {
    const T *input, *weight;
    const T* batch_first;                         // the initial hidden state; null: zeros
    T *batch_gates, *batch_reset, *batch_hidden;  // outputs
    T* hidden;                                    // output
  };
  // Computes all steps.
  Status ForwardAll(const vec::GruGates<T>& gates, const StepBatches& batches, const Arrays& a) const {
    return EachShare(batches.shares(), threads, [&](Dim share) {
      const T* before = a.batch_first == nullptr ? nullptr : a.batch_first + share * width;
      for (Dim t = 0; t < batches.steps() && batches.size(t, share) > 0; ++t) {
        const Dim first = batches.Position(t, share, 0);
        const Step step = {.rows = batches.size(t, share),
                           .apart = batches.shares(),
                           .before = before,
                           .gates = a.batch_gates + first * 3 * width,
                           .reset = a.batch_reset + first * width,
                           .out = a.batch_hidden + first * width,
                           .options = {.threads = ThreadsOfShare(batches.shares(), threads)}};
        PENSTOCK_RETURN_IF_ERROR(Forward(gates, a.weight, step, [&](Dim i) {
          return a.input + batches.row(batches.Position(t, share, i)) * 3 * width;
        }));
        for (Dim i = 0; i < step.rows; ++i) {
          const Dim position = batches.Position(t, share, i);
          std::copy_n(a.batch_hidden + position * width, width, a.hidden + batches.row(position) * width);
        }
        before = step.out;
      }
      return OkStatus();
    });
  }

  // Fills `to`, 3 * width * width elements: the transposes of both weights, one after the other.
  void TransposeWeight(const T* weight, T* to) const {
    Transpose(weight, width, 2 * width, to);
    Transpose(weight + 2 * width * width, width, width, to + 2 * width * width);
  }

  // The gradient of one step. Row i of gates and before begins at i * apart * (their width); those of the
  // others follow each other.
  struct GradStep {
    Dim rows = 0, apart = 1;
    const T *gates, *before;  // before null: zeros
    T* dgates;                // output
    T* dbefore;  // output; input, if hands_back: what the next step adds to the gradient of the output
    bool hands_back = false;
    T* dreset;  // scratch, as large as dbefore
    GemmOptions options;
  };
  // `transposed`: as TransposeWeight makes it. `dout_of(i)` returns the gradient of row i of the output.
  template <typename DoutOf>
  Status Backward(const T* transposed, const GradStep& s, const DoutOf& dout_of) const {
    const Dim stride = 3 * width;
    const auto row = [&](Dim i) {
      T* const dbefore = s.dbefore + i * width;
      return vec::GruGradRow<T>{.gates = s.gates + i * s.apart * stride,
                                .before = s.before == nullptr ? nullptr : s.before + i * s.apart * width,
                                .dout = dout_of(i),
                                .dout_again = s.hands_back ? dbefore : nullptr,
                                .dreset = s.dreset + i * width,
                                .dgates = s.dgates + i * stride,
                                .dbefore = dbefore};
    };
    for (Dim i = 0; i < s.rows; ++i) GruOutGrad(cell, row(i));
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(s.dgates + 2 * width, s.rows, width, stride),
                                     RowMajor(transposed + 2 * width * width, width, width),
                                     RowMajor(s.dreset, s.rows, width), s.options));
    for (Dim i = 0; i < s.rows; ++i) GruResetGrad(cell, row(i));
    GemmOptions adds = s.options;
    adds.add = true;
    return Gemm<T>(RowMajor<const T>(s.dgates, s.rows, 2 * width, stride),
                   RowMajor(transposed, 2 * width, width), RowMajor(s.dbefore, s.rows, width), adds);
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
};

}  // namespace penstock
