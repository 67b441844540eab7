// The two barriers between which a trainer's step receives its parameters.
#pragma once

#include <optional>

#include "executor/graph/compiled_block.h"

namespace penstock::exec {

struct StepEnds {  // instructions
  int send_barrier = -1;
  int fetch_barrier = -1;
};

// Returns nullopt if the block has no such step, or several, or if its communicator ends the steps.
std::optional<StepEnds> FindStep(const CompiledBlock& block);

}  // namespace penstock::exec
