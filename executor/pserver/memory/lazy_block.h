// A block of the server's program that is compiled when it first runs, because the runner needs the values
// that the startup program and the trainers set. Later runs in the same scope look up no variable and take no
// lock of the executor. One run at a time.
#pragma once

#include <memory>

#include "framework/runtime/block_runner.h"

namespace penstock::pserver {

class LazyBlock {
 public:
  // All runs must name the same block, and a runner that outlives this object.
  Status Run(BlockRunner& runner, const Program& program, int block, Scope& scope) {
    if (prepared_ == nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(prepared_, runner.PrepareBlock(program, block, {}));
    }
    return prepared_->Run(scope);
  }

 private:
  std::unique_ptr<PreparedBlock> prepared_;
};

}  // namespace penstock::pserver
