// Finds the runs of a program in a trace, and the time of each instruction of its plan.
//
//   const Steps steps = StepsOf(plan, RunsOf(process));
//   steps.runs.size()                        // how often the program ran
//   steps.median_ns[i]                       // of plan.block->instructions[i]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/graph/specialise.h"
#include "tools/profile/runs.h"

namespace penstock::profile {

// For each op of a run, the instruction that it is; -1: it is none of the plan's.
using InstructionOf = std::vector<int>;

// A run is one of the program's if it has each op of the plan's block, at its position and with its type.
// What passes insert and leave out may differ: the plan of the run may have had other fetches.
// Returns an empty list if the run is another program's.
InstructionOf Match(const exec::Specialisation& plan, const Run& run);

struct Steps {
  std::vector<Run> runs;                // those of the program
  std::vector<InstructionOf> matches;   // of each run
  std::vector<std::int64_t> median_ns;  // by instruction: the time of the op itself; -1: no run has it
  std::size_t median_run = 0;           // the run with the median duration; of two, the shorter one
};
Steps StepsOf(const exec::Specialisation& plan, std::span<const Run> runs);

// The median; of two, the smaller one. `values` is not empty.
std::int64_t MedianOf(std::vector<std::int64_t> values);

}  // namespace penstock::profile
