// One row of one step of a GRU of doubles, forward and backward, without its matrix products. The functions
// for floats are those of framework/vector/gates.h, which describes the arguments; a call finds the one of
// its element type.
#pragma once

#include "framework/op/kernel.h"
#include "framework/vector/gates.h"
#include "operators/sequence/gate_activation.h"

namespace penstock {

// Completes the sums of `count` gates from `at` on, and activates them.
inline void GruActivate(const vec::GruGates<double>& g, const vec::GruRow<double>& row, GateActivation f,
                        std::size_t at, std::size_t count) {
  for (std::size_t j = at; j < at + count; ++j) {
    const double sum = row.input[j] + (g.bias != nullptr ? g.bias[j] : 0);
    row.gates[j] = row.has_product ? row.gates[j] + sum : sum;
  }
  Activate(f, g.bounds_sigmoids, row.gates + at, static_cast<Dim>(count));
}

inline void GruReset(const vec::GruGates<double>& g, const vec::GruRow<double>& row) {
  GruActivate(g, row, g.gate, 0, 2 * g.width);
  for (std::size_t j = 0; j < g.width; ++j)
    row.reset[j] = row.before == nullptr ? 0 : row.gates[g.width + j] * row.before[j];
}

inline void GruOut(const vec::GruGates<double>& g, const vec::GruRow<double>& row) {
  GruActivate(g, row, g.candidate, 2 * g.width, g.width);
  for (std::size_t j = 0; j < g.width; ++j) {
    const double u = g.origin ? 1 - row.gates[j] : row.gates[j];
    const double old = row.before == nullptr ? 0 : row.before[j];
    row.out[j] = old + u * (row.gates[2 * g.width + j] - old);
  }
}

inline void GruOutGrad(const vec::GruGates<double>& g, const vec::GruGradRow<double>& row) {
  const auto width = static_cast<Dim>(g.width);
  for (Dim j = 0; j < width; ++j) {
    const double dout = row.dout[j] + (row.dout_again != nullptr ? row.dout_again[j] : 0);
    const double change = dout * (row.gates[2 * width + j] - (row.before == nullptr ? 0 : row.before[j]));
    const double u = g.origin ? 1 - row.gates[j] : row.gates[j];
    row.dgates[j] = g.origin ? -change : change;
    row.dgates[2 * width + j] = dout * u;
    row.dbefore[j] = dout * (1 - u);
  }
  ActivateGrad(g.gate, row.gates, row.dgates, width);
  ActivateGrad(g.candidate, row.gates + 2 * width, row.dgates + 2 * width, width);
}

inline void GruResetGrad(const vec::GruGates<double>& g, const vec::GruGradRow<double>& row) {
  const auto width = static_cast<Dim>(g.width);
  for (Dim j = 0; j < width; ++j) {
    row.dgates[width + j] = row.before == nullptr ? 0 : row.dreset[j] * row.before[j];
    row.dbefore[j] += row.dreset[j] * row.gates[width + j];
  }
  ActivateGrad(g.gate, row.gates + width, row.dgates + width, width);
}

}  // namespace penstock
