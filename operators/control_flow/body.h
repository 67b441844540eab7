// What the ops share that run a block: the block as compiled, and what each of its runs leaves for the
// block's gradient.
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

// The one truth value of a condition. kInvalidArgument: it is no bool, or not one; kFailedPrecondition: it
// has no value.
Result<bool> ConditionHolds(KernelRun& k, const Operand& condition, std::string_view op);

// Shape inference of a gradient through a block: each of `slot`@GRAD is of the kind, type and shape of what
// it is the gradient of.
Status LikeForward(InferContext& c, const std::string& slot);

// A block that an op runs forward.
class Body {
 public:
  // Attribute sub_block; slot Out names what the block writes outside.
  Status Prepare(KernelSetup& k);
  // Whether some block of the program is this one's gradient.
  bool has_gradient() const { return has_gradient_; }
  // One run whose own variables nobody needs afterwards.
  Status Run(KernelRun& k);
  // One run; what its gradient reads of it, and nothing else: variables of the block, and the values that
  // outer variables had before the block wrote over them.
  Result<std::shared_ptr<Scope>> RunForGradient(KernelRun& k);

 private:
  std::unique_ptr<PreparedBlock> block_;
  std::unique_ptr<Scope> scope_;  // of Run
  bool has_gradient_ = false;
  std::vector<std::string> keeps_;
  std::vector<std::string> overwritten_;
};

// The gradient of a Body. `yields` are the forward variables whose gradients the block gives, `of` those
// whose gradients it reads, each with the operand that is its gradient outside.
class BodyGradient {
 public:
  struct Pair {
    std::string inside;    // the gradient's name in the block
    Operand outside;       // absent: nobody has it, or nobody wants it
    Operand forward;       // absent for what is only read
    bool carried = false;  // what a run gives is what the run before it starts from
    // The gradient of a variable that a run writes over without reading it: of what it was before, there is
    // none.
    bool used_up = false;
    bool hands_back = false;  // and somebody before it asks for that gradient
    Variable rest = {};       // what is left of that for the run at hand
  };
  // Attribute sub_block. `of_names`: how the block calls the gradients in slot `of_slot`.
  Status Prepare(KernelSetup& k, const char* forward_slot, const char* of_slot,
                 const std::vector<std::string>& of_names);
  // Nothing is given so far.
  void Begin(KernelRun& k);
  // One run, over what its forward run left. Adds to what is given.
  Status Run(KernelRun& k, const Scope& left);
  // What no run has given becomes zeros.
  Status End(KernelRun& k);

 private:
  Status BindInside(KernelRun& k, const Scope& left, Scope& scope);

  std::unique_ptr<PreparedBlock> block_;
  std::vector<std::string> left_names_;
  std::vector<Pair> yields_, reads_;
  bool ran_ = false;
};

}  // namespace penstock
