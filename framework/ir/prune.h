// Programs for inference out of programs for training.
//
//   Program test = CloneForTest(main);                       // the forward part, in test mode
//   PENSTOCK_ASSIGN_OR_RETURN(Program net, PruneTo(test, {"x"}, {"fc_1.tmp_2"}));
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

// Without the ops that carry a backward, optimize or learning-rate role, and without the variables that only
// those named; `is_test` is set wherever an op has it. Ops of block 0 are looked at; a block that none of
// those left starts goes too, and the blocks behind it get new numbers.
Program CloneForTest(const Program& program);

// Only the ops of block 0 that the targets need, given the feeds, the blocks they start, and the variables
// they name. A variable that is fed needs no op that writes it. `target_ops` of block 0 are kept in any case.
// kInvalidArgument: a target that the program does not have.
Result<Program> PruneTo(const Program& program, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& targets, const std::set<OpId>& target_ops = {});

}  // namespace penstock
