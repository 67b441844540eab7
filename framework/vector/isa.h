// The instruction sets for which the kernels of this folder are compiled. The best one that the processor has
// is used, or the one that PENSTOCK_ISA names if that is less.
#pragma once

namespace penstock::vec {

enum class Isa { kBase, kSse4, kAvx2, kAvx512 };  // kBase: loops for any x86-64; NEON on ARM

// Kernels use no more than `most` from now on. Call it while no kernel runs.
void CapIsa(Isa most);
// The set that kernels use.
Isa IsaInUse();

// Applies PENSTOCK_ISA. A value that the setting does not take is ignored here:
// env::CheckAll reports it.
void CapIsaBySetting();

}  // namespace penstock::vec
