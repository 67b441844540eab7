// Runs a block of a program for an op that owns it (a pserver's optimize block, while, conditional_block).
#pragma once

#include "framework/base/status.h"

namespace penstock {

class Program;
class Scope;

class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  // Variables are looked up in `scope` and its parents; the block's own temporaries live in the runner.
  // Thread-safe for different scopes.
  virtual Status RunBlock(const Program& program, int block, Scope& scope) = 0;
};

}  // namespace penstock
