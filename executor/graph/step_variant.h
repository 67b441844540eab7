// A step for types of its inputs that the plan did not expect, or could not know: extents that depend on
// values. A run makes it when it meets such types, and keeps it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "executor/graph/specialise.h"

namespace penstock::exec {

struct StepVariant {
  std::vector<TensorDesc>
      inputs;  // of all arguments in their order; a missing one is no tensor of known shape
  std::unique_ptr<Kernel> kernel;
  // Dense outputs of known shape. None has a place or a view: the plan's are for the types that it expects.
  std::vector<OutputSlot> outputs;
  std::vector<TensorDesc> types;        // of the outputs, by OutputSlot::type
  std::vector<std::size_t> workspaces;  // offset of each in the shared workspace
  std::size_t workspace_bytes = 0;
  std::vector<LodCopy> lod_copies;
};

// Errors name the op.
//
//   inputs    of all arguments of the instruction, in their order
//   scratch   by slot of the block, kept by the caller: so a variant takes no time for slots of other ops
Result<StepVariant> MakeVariant(const CompiledBlock& block, const Instruction& instruction,
                                std::vector<TensorDesc> inputs, const Services& services,
                                std::vector<TensorDesc>& scratch);

}  // namespace penstock::exec
