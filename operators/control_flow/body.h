// Shared by the ops that run a block: the compiled block, and the values that each run keeps for the block's
// gradient.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/runtime/block_runner.h"
#include "framework/tensor/scope.h"

namespace penstock {

// Returns the value of a condition. kInvalidArgument: it is not a tensor of one bool. kFailedPrecondition: it
// has no value.
Result<bool> ConditionHolds(KernelRun& k, const NamedOperand& condition, std::string_view op);

// Shape inference for the gradient of an op that runs a block: gives each variable of `slot`@GRAD the kind,
// type and shape of its forward variable. A gradient that is declared as selected rows keeps that kind.
Status LikeForward(InferContext& c, const std::string& slot);

// A block that an op runs in the forward pass.
class Body {
 public:
  // Compiles the block in attribute sub_block. Slot Out must name the outer variables that the block writes.
  Status Prepare(KernelSetup& k);
  // Returns whether the program has a block that is the gradient of this one.
  bool has_gradient() const { return has_gradient_; }
  // Runs the block once. Its own variables are not kept.
  Status Run(KernelRun& k);
  // Runs the block once. Returns a scope with only the values that its gradient reads: variables of the
  // block, and the values of outer variables before the block overwrote them.
  Result<std::shared_ptr<Scope>> RunForGradient(KernelRun& k);

 private:
  std::unique_ptr<PreparedBlock> block_;
  std::unique_ptr<Scope> scope_;  // used by Run
  bool has_gradient_ = false;
  std::vector<std::string> keeps_;
  std::vector<std::string> overwritten_;
};

// The gradient of a Body. Its block yields the gradients of some forward variables and reads the gradients of
// others. A Pair connects the gradient's name in the block with its operand outside the block.
class BodyGradient {
 public:
  struct Pair {
    std::string inside;    // the gradient's name in the block
    Argument outside;      // absent: the gradient does not exist or is not needed outside
    Operand forward;       // absent for gradients that are only read
    bool carried = false;  // each run reads the gradient that the previous run yielded
    // The forward variable is overwritten by each run without being read. The gradient is therefore consumed
    // by one run, and is zero for earlier values of the variable.
    bool used_up = false;
    bool hands_back = false;  // used_up, and an op before this one writes the variable
    Variable rest = {};       // used_up: the gradient that the next run reads
  };
  // Compiles the block in attribute sub_block. `of_names`: the names in the block of the gradients in
  // `of_slot`.
  Status Prepare(KernelSetup& k, const char* forward_slot, const char* of_slot,
                 const std::vector<std::string>& of_names);
  // Call before the first run. Clears the gradients that the block yields.
  void Begin(KernelRun& k);
  // Runs the block once, over the scope that its forward run kept. Adds to the yielded gradients.
  Status Run(KernelRun& k, const Scope& left);
  // Call after the last run. Sets gradients that no run yielded to zeros.
  Status End(KernelRun& k);

 private:
  Status BindInside(KernelRun& k, const Scope& left, Scope& scope);

  std::unique_ptr<PreparedBlock> block_;
  std::vector<std::string> left_names_;
  std::vector<Pair> yields_, reads_;
  bool ran_ = false;
};

}  // namespace penstock
