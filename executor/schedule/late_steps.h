// The slow but general path: prepares single ops for the shapes found while the block runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/schedule/frame.h"
#include "framework/runtime/services.h"

namespace penstock::exec {

// Prepares and runs single ops with their actual shapes: ops whose shapes depend on values, and all ops after
// a value whose shape differs from the one that its specialisation expected. Keeps each op's last kernel for
// reuse.
class LateSteps {
 public:
  Status Run(Frame& frame, int step, Scope& scope, const Services& services);

 private:
  struct Late {
    std::vector<VarInfo> inputs;  // of all arguments in order, as prepared
    Inferred inferred;
    std::vector<LodCopy> lod_copies;
    std::unique_ptr<Kernel> kernel;
    std::shared_ptr<Buffer> workspace;
    std::vector<std::byte*> workspaces;
  };

  Status Prepare(Frame& frame, const Instruction& instruction, std::vector<VarInfo> inputs,
                 const Services& services, Late& late);

  std::vector<Late> late_;      // by step; empty until needed
  std::vector<VarInfo> known_;  // by slot; scratch
};

}  // namespace penstock::exec
