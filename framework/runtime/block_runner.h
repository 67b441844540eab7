// Runs a block of a program for the op that owns it (a pserver's optimize block, while, conditional_block).
//
//   PENSTOCK_ASSIGN_OR_RETURN(body_, k.services().blocks->PrepareBlock(program, 1, {"h"}));   // in Prepare
//   Scope step(&k.scope());                                                                 // in Run
//   PENSTOCK_RETURN_IF_ERROR(body_->Run(step));
//   step.FindLocal("h")
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace penstock {

class Program;
class Scope;

// A compiled block.
class PreparedBlock {
 public:
  virtual ~PreparedBlock() = default;
  // Looks up outer variables in `scope` and its parents. Stops between two ops when its run is cancelled.
  // Fast when called again with the same scope, or with scopes of the same shapes. One run at a time.
  virtual Status Run(Scope& scope) = 0;
};

class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  // Looks up variables in `scope` and its parents; the runner keeps the block's own temporaries. Thread-safe
  // for different scopes.
  virtual Status RunBlock(const Program& program, int block, Scope& scope) = 0;
  // Compiles a block for an op that runs it repeatedly. Variables of the block in `keeps` live in the scope
  // of the run, where they can be read afterwards. The runner must outlive the result.
  virtual Result<std::unique_ptr<PreparedBlock>> PrepareBlock(const Program& program, int block,
                                                              std::vector<std::string> keeps) = 0;
};

}  // namespace penstock
