// The steps of a frame for types of inputs that its plan did not expect: the latest few of each step.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/graph/step_variant.h"

namespace penstock::exec {

class StepVariants {
 public:
  // Returns the step's variant for the current types of its inputs, which is made if they are new.
  // `variables`: by slot. kFailedPrecondition E-run-uninitialized: an input has no value; errors of
  // MakeVariant. The variant is valid until the next call for the same step.
  Result<StepVariant*> For(const Specialisation& plan, std::size_t step, Variable* const* variables,
                           const Services& services);

 private:
  std::vector<std::vector<StepVariant>> of_step_;  // the most recently used last; empty until needed
  std::vector<TensorDesc> slots_;                  // scratch of MakeVariant
};

}  // namespace penstock::exec
