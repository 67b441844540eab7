// PENSTOCK_ISA for all kernels.
#pragma once

namespace penstock {

// Caps the instruction sets of our kernels and of oneDNN's as PENSTOCK_ISA says. Once in a process, before
// the first kernel: oneDNN takes no cap later.
void CapIsaOfKernels();

}  // namespace penstock
