// Shared by lstm, lstmp and their gradients.
#pragma once

#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/sequence/lstm_cell.h"
#include "operators/sequence/recurrent.h"
#include "operators/sequence/step_batches.h"

namespace penstock {

// The sizes and attributes of one op. lstmp projects the output of a step to `recurrent` elements, and the
// next step and other ops read the projection; lstm has no projection.
template <typename T>
struct LstmSetup {
  bool projected = false;
  Dim rows = 0, width = 0, recurrent = 0;
  bool reversed = false, peepholes = false;
  GateActivation projection = GateActivation::kIdentity;
  T projection_clip = 0;
  int threads = 1;
  vec::LstmGates<T> cell;  // without bias and peepholes

  // `gates`: the shape of the argument whose rows hold four times the cell's width.
  void Prepare(const KernelSetup& k, const Shape& gates) {
    projected = k.op().type().starts_with("lstmp");
    rows = gates[0];
    width = gates[1] / 4;
    const Shape& project = k.Input("ProjWeight").shape;
    recurrent = !projected ? width : project.rank() == 2 ? project[1] : 0;
    reversed = k.Attr<bool>("is_reverse");
    peepholes = k.Attr<bool>("use_peepholes");
    threads = k.threads();
    cell.width = static_cast<std::size_t>(width);
    cell.gate = GateActivationOf(k.Attr<std::string>("gate_activation"));
    cell.cell = GateActivationOf(k.Attr<std::string>("cell_activation"));
    cell.candidate = GateActivationOf(k.Attr<std::string>("candidate_activation"));
    if (!projected) return;
    cell.clip = static_cast<T>(k.Attr<float>("cell_clip"));
    projection_clip = static_cast<T>(k.Attr<float>("proj_clip"));
    projection = GateActivationOf(k.Attr<std::string>("proj_activation"));
  }
  // The cell with the first four times `width` elements of `bias` (if `adds`) and the peepholes that follow.
  vec::LstmGates<T> WithBias(const T* bias, bool adds = true) const {
    vec::LstmGates<T> with = cell;
    with.bias = adds ? bias : nullptr;
    with.peepholes = peepholes ? bias + 4 * width : nullptr;
    return with;
  }
  const char* output() const { return projected ? "Projection" : "Hidden"; }
};

// Declares the kernels and shapes of lstm_grad and lstmp_grad.
void DeclareLstmGrad(OpDef& forward);

}  // namespace penstock
