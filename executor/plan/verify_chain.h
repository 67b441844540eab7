// VerifyPlan's rules for an instruction that runs a chain of ops by rows (executor/graph/row_chain.h).
#pragma once

#include <string>

#include "executor/graph/row_chain.h"
#include "executor/graph/specialise.h"

namespace penstock::exec {

// What is wrong with the chain of a step; empty: nothing.
//
//   * The inputs and outputs of the chain are the arguments of the instruction.
//   * An op reads inputs of the chain and results of ops before it.
//   * An op writes each result; only one does, and none writes an input.
//   * The ops run on the same rows, and leave the types that the plan has. This is checked if the plan has a
//     kernel for the step.
std::string FaultOfChain(const Specialisation& plan, std::size_t step);

// Whether the ops of a step's chain let an output lie in the memory of an input (MayLieIn); both are slots of
// the plan's block.
bool ChainComputesInPlace(const Specialisation& plan, std::size_t step, int output, int input);

}  // namespace penstock::exec
