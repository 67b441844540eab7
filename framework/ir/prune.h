// Makes inference programs from training programs.
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

// Removes the ops with a backward, optimize or learning-rate role and the variables that only they name. Sets
// `is_test` on each op that has this attribute. Works on the ops of block 0. Removes blocks that no remaining
// op runs, and renumbers later blocks.
Program CloneForTest(const Program& program);

// Keeps only the ops of block 0 that are needed to compute the targets from the feeds, the blocks that these
// ops run, and the variables that they name. A fed variable needs no op that writes it. `target_ops`, ops of
// block 0, are always kept.
// kInvalidArgument: the program does not have a target.
Result<Program> PruneTo(const Program& program, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& targets, const std::set<OpId>& target_ops = {});

}  // namespace penstock
