// All steps of an LSTM over sequences, forward, for lstm, lstmp and the fused ops.
#pragma once

#include <algorithm>
#include <utility>

#include "operators/common/gemm.h"
#include "operators/sequence/lstm.h"

namespace penstock {

template <typename T>
class LstmSteps {
 public:
  // Rows are in the order of the argument, or in that of the batches where the name says so. H0 and C0 have
  // one row per sequence.
  struct Arrays {
    const T* input;
    const T* weight;
    const T* project = nullptr;                     // null: no projection
    const T *h0, *c0;                               // null: zeros
    T* batch_gates;                                 // output: the activated gates
    T* batch_active = nullptr;                      // output: the activated cells; null if nobody reads them
    T* batch_hidden = nullptr;                      // output: what is projected
    T *cell, *out;                                  // outputs
    T *batch_cell = nullptr, *batch_out = nullptr;  // copies of these; null if nobody reads them
  };

  Status Run(const LstmSetup<T>& setup, const vec::LstmGates<T>& gates, const StepBatches& batches,
             const Arrays& arrays) {
    T* const outs = outs_.Hold(batches.shares() * batches.places_of_share() * setup.recurrent);
    return EachShare(batches.shares(), setup.threads, [&](Dim share) {
      return RunShare(
          {setup, gates, batches, arrays, share, outs + share * batches.places_of_share() * setup.recurrent});
    });
  }

 private:
  struct Share {
    const LstmSetup<T>& setup;
    const vec::LstmGates<T>& gates;
    const StepBatches& batches;
    const Arrays& arrays;
    Dim share;
    T* outs;  // of the step before, one row for each place
    GemmOptions Options() const { return {.threads = ThreadsOfShare(batches.shares(), setup.threads)}; }
  };

  static Status RunShare(const Share& s) {
    const Dim recurrent = s.setup.recurrent;
    bool has_before = s.arrays.h0 != nullptr;
    for (Dim t = 0; t < s.batches.steps(); ++t) {
      const Dim size = s.batches.size(t, s.share);
      if (size == 0) break;
      if (t == 0 && has_before) {
        for (Dim i = 0; i < size; ++i) {
          const Dim sequence = s.batches.sequence(s.batches.Place(s.share, i));
          std::copy_n(s.arrays.h0 + sequence * recurrent, recurrent, s.outs + i * recurrent);
        }
      }
      PENSTOCK_RETURN_IF_ERROR(RunStep(s, t, size, has_before));
      has_before = true;
    }
    return OkStatus();
  }

  static Status RunStep(const Share& s, Dim t, Dim size, bool has_before) {
    const Dim width = s.setup.width, recurrent = s.setup.recurrent, apart = s.batches.shares();
    const Dim first = s.batches.Position(t, s.share, 0);
    T* const gates = s.arrays.batch_gates + first * 4 * width;
    if (has_before) {
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(s.outs, size, recurrent),
                                       RowMajor(s.arrays.weight, recurrent, 4 * width),
                                       RowMajor(gates, size, 4 * width, apart * 4 * width), s.Options()));
    }
    for (Dim i = 0; i < size; ++i) RunRow(s, t, i, has_before);
    if (s.arrays.project == nullptr) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(Project(s, s.arrays.batch_hidden + first * width, size));
    for (Dim i = 0; i < size; ++i) KeepOut(s, t, i);
    return OkStatus();
  }

  static void RunRow(const Share& s, Dim t, Dim i, bool has_before) {
    const Dim width = s.setup.width, position = s.batches.Position(t, s.share, i);
    const Dim row = s.batches.row(position);
    const Arrays& a = s.arrays;
    const bool projects = a.project != nullptr;
    const T* before =
        a.c0 == nullptr ? nullptr : a.c0 + s.batches.sequence(s.batches.Place(s.share, i)) * width;
    if (t > 0) before = a.cell + s.batches.row(s.batches.Position(t - 1, s.share, i)) * width;
    LstmForward(s.gates, {.gates = a.batch_gates + position * 4 * width,
                          .has_product = has_before,
                          .input = a.input + row * 4 * width,
                          .before = before,
                          .cell = a.cell + row * width,
                          .active = a.batch_active == nullptr ? nullptr : a.batch_active + position * width,
                          .out = projects ? a.batch_hidden + position * width : s.outs + i * width});
    if (a.batch_cell != nullptr) std::copy_n(a.cell + row * width, width, a.batch_cell + position * width);
    if (!projects) KeepOut(s, t, i);
  }

  static Status Project(const Share& s, const T* hidden, Dim size) {
    const Dim width = s.setup.width, recurrent = s.setup.recurrent;
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(hidden, size, width, s.batches.shares() * width),
                                     RowMajor(s.arrays.project, width, recurrent),
                                     RowMajor(s.outs, size, recurrent), s.Options()));
    ActivateClipped(s.setup.projection, s.outs, size * recurrent);
    const T clip = s.setup.projection_clip;
    if (clip <= T{0}) return OkStatus();
    for (Dim j = 0; j < size * recurrent; ++j) s.outs[j] = std::clamp(s.outs[j], -clip, clip);
    return OkStatus();
  }

  // Copies an output of the step to the arguments.
  static void KeepOut(const Share& s, Dim t, Dim i) {
    const Dim recurrent = s.setup.recurrent, position = s.batches.Position(t, s.share, i);
    const T* const out = s.outs + i * recurrent;
    std::copy_n(out, recurrent, s.arrays.out + s.batches.row(position) * recurrent);
    if (s.arrays.batch_out != nullptr) std::copy_n(out, recurrent, s.arrays.batch_out + position * recurrent);
  }

  RowBuffer<T> outs_;
};

}  // namespace penstock
