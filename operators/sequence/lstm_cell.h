// One row of one step of an LSTM of doubles, forward and backward, without its matrix products. The
// functions for floats are those of framework/vector/gates.h, which describes the arguments; a call finds
// the one of its element type.
#pragma once

#include <algorithm>

#include "framework/op/kernel.h"
#include "framework/vector/gates.h"
#include "operators/common/nan.h"
#include "operators/sequence/gate_activation.h"

namespace penstock {

inline void LstmForward(const vec::LstmGates<double>& g, const vec::LstmRow<double>& row) {
  const auto width = static_cast<Dim>(g.width);
  double* const c = row.gates + g.parts.candidate * g.width;
  double* const i = row.gates + g.parts.input * g.width;
  double* const f = row.gates + g.parts.forget * g.width;
  double* const o = row.gates + g.parts.output * g.width;
  for (Dim j = 0; j < 4 * width; ++j) {
    double sum = row.input != nullptr ? row.input[j] : 0;
    if (g.bias != nullptr) sum += g.bias[j];
    row.gates[j] = row.has_product ? row.gates[j] + sum : sum;
  }
  if (g.peepholes != nullptr && row.before != nullptr) {
    for (Dim j = 0; j < width; ++j) i[j] += row.before[j] * g.peepholes[j];
    for (Dim j = 0; j < width; ++j) f[j] += row.before[j] * g.peepholes[width + j];
  }
  Activate(g.candidate, g.bounds_sigmoids, c, width);
  Activate(g.gate, g.bounds_sigmoids, i, width);
  Activate(g.gate, g.bounds_sigmoids, f, width);
  for (Dim j = 0; j < width; ++j) {
    double cell = c[j] * i[j];
    if (row.before != nullptr) cell += row.before[j] * f[j];
    row.cell[j] = g.clip > 0 ? std::clamp(cell, -g.clip, g.clip) : cell;
    if (g.peepholes != nullptr) o[j] += row.cell[j] * g.peepholes[2 * width + j];
  }
  Activate(g.gate, g.bounds_sigmoids, o, width);
  std::copy_n(row.cell, width, row.out);
  Activate(g.cell, g.bounds_sigmoids, row.out, width);
  if (row.active != nullptr) std::copy_n(row.out, width, row.active);
  for (Dim j = 0; j < width; ++j) row.out[j] *= o[j];
}

// d * f'(x), given y = f(x)
inline double GateGrad(GateActivation f, double y, double d) {
  ActivateGrad(f, &y, &d, 1);
  return d;
}

inline void LstmBackward(const vec::LstmGates<double>& g, const vec::LstmGradRow<double>& row) {
  const std::size_t width = g.width;
  const double* const checks = g.peepholes;
  for (std::size_t j = 0; j < width; ++j) {
    const std::size_t at_c = g.parts.candidate * width + j, at_i = g.parts.input * width + j;
    const std::size_t at_f = g.parts.forget * width + j, at_o = g.parts.output * width + j;
    const double c = row.gates[at_c], i = row.gates[at_i], f = row.gates[at_f], o = row.gates[at_o];
    const double before = row.before != nullptr ? row.before[j] : 0;
    const double dout = row.dout[j] + (row.dout_again != nullptr ? row.dout_again[j] : 0);
    double dcell = row.dcell[j] + (row.dcell_direct != nullptr ? row.dcell_direct[j] : 0);
    const double d_o = GateGrad(g.gate, o, dout * row.active[j]);
    dcell += GateGrad(g.cell, row.active[j], dout * o);
    if (checks != nullptr) dcell += d_o * checks[2 * width + j];
    if (g.clip > 0) {
      const double cell = row.cell[j];
      dcell = Choose(cell > -g.clip && cell < g.clip, dcell, 0.0, cell);
    }
    const double di = GateGrad(g.gate, i, dcell * c);
    const double df = GateGrad(g.gate, f, row.before != nullptr ? dcell * before : 0);
    row.dgates[at_c] = GateGrad(g.candidate, c, dcell * i);
    row.dgates[at_i] = di;
    row.dgates[at_f] = df;
    row.dgates[at_o] = d_o;
    row.dcell[j] = dcell * f;
    if (checks != nullptr) row.dcell[j] += di * checks[j] + df * checks[width + j];
    if (row.dpeepholes == nullptr) continue;
    row.dpeepholes[2 * width + j] += d_o * row.cell[j];
    if (row.before == nullptr) continue;
    row.dpeepholes[j] += di * before;
    row.dpeepholes[width + j] += df * before;
  }
}

}  // namespace penstock
