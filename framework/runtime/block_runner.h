// Runs a block of a program for an op that owns it (a pserver's optimize block, while, conditional_block).
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

// A block, compiled.
class PreparedBlock {
 public:
  virtual ~PreparedBlock() = default;
  // Outer variables are looked up in `scope` and its parents. Stops between two ops when the run that it
  // belongs to is cancelled. Fast when called again with the same scope, or with others of the same shapes.
  virtual Status Run(Scope& scope) = 0;
};

class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  // Variables are looked up in `scope` and its parents; the block's own temporaries live in the runner.
  // Thread-safe for different scopes.
  virtual Status RunBlock(const Program& program, int block, Scope& scope) = 0;
  // For an op that runs a block again and again. Of the block's own variables, those in `keeps` live in the
  // scope it runs in, so that somebody finds them there afterwards. The runner must outlive the result.
  virtual Result<std::unique_ptr<PreparedBlock>> PrepareBlock(const Program& program, int block,
                                                              std::vector<std::string> keeps) = 0;
};

}  // namespace penstock
