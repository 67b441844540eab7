// Checks a plan before it runs: what the passes have made of a block keeps the meaning of its ops.
//
//   * A temporary that a step reads is written by an earlier step.
//   * A step reads the type, and so the layout, that the last planned writer of the variable leaves.
//   * No step uses a variable that an operation in progress may still use: an await or an op that waits comes
//     before, and nothing is in progress when the run has ended.
//   * Temporaries that are alive at once lie apart in the arena, unless the step that first writes the one is
//     the last that uses the other. Each lies within the arena and holds all its writers' values.
//   * An instruction that runs a chain of ops does what these do one after the other (verify_chain.h).
//
// Takes time proportional to the arguments of the steps.
#pragma once

#include "executor/graph/specialise.h"

namespace penstock::exec {

// kInternal E-exec-plan: the plan breaks a rule. The error names the rule, the variable and the op: it is a
// defect of a pass, not of the program.
Status VerifyPlan(const Specialisation& plan);

}  // namespace penstock::exec
